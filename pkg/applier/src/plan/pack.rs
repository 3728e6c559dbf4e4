//! Storage of a revision's objects: inline in the revision, or in immutable Secrets.
//!
//! A revision with a Secret is never stored inline, so that readers of revisions see no keys. Large revisions are
//! not inline either, as the API server refuses requests beyond 1.5 MB.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olm_bundle::escaped_json;
use olm_text::object::ObjectId;
use olm_text::quoted;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{MAX_PHASES, Phase};

/// Maximum total size of objects that are stored inline, in bytes.
pub const INLINE_LIMIT: usize = 256 * 1024;
/// Maximum size of the data of one Secret in bytes.
pub const SECRET_DATA_LIMIT: usize = 900 * 1024;
/// Maximum size of an unpacked object in bytes; [`pack`] refuses objects that [`unpack`] would refuse.
pub const UNPACKED_LIMIT: usize = 10 * 1024 * 1024;
/// Maximum size of a request in bytes that an API server accepts, independent of etcd's limit: larger objects cannot
/// be applied.
pub const REQUEST_LIMIT: usize = 3 * 1024 * 1024;
/// Maximum size of keys and values of an object's annotations in bytes, a constant of Kubernetes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;
/// Maximum length of a part of a name in an error, in bytes.
const MAX_NAME: usize = 253;

/// Error of [`pack`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The object is too large for a Secret.
    #[error(
        "object in phase {phase} index {index} exceeds maximum Secret data size ({size} bytes > {SECRET_DATA_LIMIT} bytes) even after compression"
    )]
    TooLarge {
        /// Index of the phase.
        phase: usize,
        /// Index of the object in the phase.
        index: usize,
        /// Compressed size in bytes.
        size: usize,
    },
    /// The object is larger than any API server accepts.
    #[error(
        "{object} in phase {phase} has {size} bytes, an API server takes at most {limit} bytes; a bundle with a smaller object is needed"
    )]
    RequestTooLarge {
        /// Kind and name of the object.
        object: String,
        /// Name of the phase.
        phase: String,
        /// Size of the object in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The annotations from the bundle are too large.
    #[error(
        "the annotations of the revision would have {size} bytes, an API server takes at most {ANNOTATIONS_LIMIT}; a bundle with \
         shorter properties is needed"
    )]
    Annotations {
        /// Size of all keys and values in bytes.
        size: usize,
    },
    /// The revision would have more phases than the schema allows.
    #[error(
        "the bundle needs {count} phases, a revision holds at most {MAX_PHASES}; a bundle with fewer objects is needed"
    )]
    TooManyPhases {
        /// Number of phases.
        count: usize,
    },
    /// The compression failed.
    #[error("cannot compress object in phase {phase} index {index}")]
    Compress {
        /// Index of the phase.
        phase: usize,
        /// Index of the object in the phase.
        index: usize,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The phases do not match the schema.
    #[error("cannot form the phases of the revision")]
    InvalidPhases(#[source] serde_json::Error),
}

impl PackError {
    /// Returns true if only another bundle helps, which holds for all errors except compression failures.
    #[must_use]
    pub fn terminal(&self) -> bool {
        !matches!(self, Self::Compress { .. })
    }
}

/// Stored form of phases.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Value of `spec.phases` of the revision.
    pub phases: Vec<olm_api::ClusterObjectSetPhase>,
    /// Secrets to create before the revision; empty if all objects are inline.
    pub secrets: Vec<Secret>,
}

/// Checks the size of a revision's annotations.
///
/// # Errors
/// [`PackError::Annotations`] if API servers refuse them.
pub fn check_annotations<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), PackError> {
    let size = annotations.map(|(key, value)| key.len() + value.len()).sum();
    if size > ANNOTATIONS_LIMIT {
        return Err(PackError::Annotations { size });
    }
    Ok(())
}

/// Stores `phases` for the revision `revision_name` of the extension `owner`, with Secrets in `system_namespace`.
pub fn pack(
    revision_name: &str,
    system_namespace: &str,
    owner: &str,
    phases: Vec<Phase>,
) -> Result<Packed, PackError> {
    if phases.len() > MAX_PHASES {
        return Err(PackError::TooManyPhases { count: phases.len() });
    }
    let mut bytes: Vec<Vec<Vec<u8>>> = Vec::new();
    for phase in &phases {
        let stored = phase.objects.iter().map(|object| encode(object, &phase.name));
        bytes.push(stored.collect::<Result<_, _>>()?);
    }
    let total: usize = bytes.iter().flatten().map(Vec::len).sum();
    let secret = phases.iter().flat_map(|p| &p.objects).any(|object| {
        let id = ObjectId::of(object);
        id.group.is_empty() && id.kind == "Secret"
    });
    if total < INLINE_LIMIT && !secret {
        let list = phases
            .into_iter()
            .map(|phase| {
                let objects: Vec<Value> = phase
                    .objects
                    .into_iter()
                    .map(|o| json!({ "object": o }))
                    .collect();
                json!({"name": phase.name, "objects": objects})
            })
            .collect();
        return Ok(Packed {
            phases: typed_phases(list)?,
            secrets: Vec::new(),
        });
    }

    let mut bins: Vec<BTreeMap<String, Vec<u8>>> = vec![BTreeMap::new()];
    let mut bin_of_key: BTreeMap<String, usize> = BTreeMap::new();
    let mut keys: Vec<Vec<String>> = Vec::new();
    let mut filled = 0;
    for (p, objects) in bytes.into_iter().enumerate() {
        let mut phase_keys = Vec::new();
        for (i, object) in objects.into_iter().enumerate() {
            let stored = compress_if_large(object, p, i)?;
            let key = URL_SAFE_NO_PAD.encode(Sha256::digest(&stored));
            phase_keys.push(key.clone());
            if bin_of_key.contains_key(&key) {
                continue;
            }
            if filled + stored.len() > SECRET_DATA_LIMIT && filled > 0 {
                bins.push(BTreeMap::new());
                filled = 0;
            }
            filled += stored.len();
            bin_of_key.insert(key.clone(), bins.len() - 1);
            if let Some(bin) = bins.last_mut() {
                bin.insert(key, stored);
            }
        }
        keys.push(phase_keys);
    }
    let names: Vec<String> = bins.iter().map(|bin| secret_name(revision_name, bin)).collect();
    let list = phases
        .iter()
        .zip(keys)
        .map(|(phase, keys)| {
            let objects: Vec<Value> = keys
                .iter()
                .map(|key| {
                    let name = bin_of_key.get(key).and_then(|bin| names.get(*bin));
                    json!({"ref": {"name": name, "namespace": system_namespace, "key": key}})
                })
                .collect();
            json!({"name": phase.name, "objects": objects})
        })
        .collect();
    let secrets = bins
        .into_iter()
        .zip(names)
        .map(|(bin, name)| secret_of(name, system_namespace, revision_name, owner, bin))
        .collect();
    Ok(Packed {
        phases: typed_phases(list)?,
        secrets,
    })
}

/// Decodes one value that [`pack`] stored. Returns `Ok(None)` if it is larger than 10 MiB when unpacked.
pub fn unpack(stored: &[u8]) -> std::io::Result<Option<Value>> {
    Ok(unpack_sized(stored)?.map(|(object, _)| object))
}

/// Decodes one value like [`unpack`], and returns its unpacked size in bytes too.
pub(crate) fn unpack_sized(stored: &[u8]) -> std::io::Result<Option<(Value, usize)>> {
    let mut bytes = Vec::new();
    if stored.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(stored)
            .take(
                u64::try_from(UNPACKED_LIMIT)
                    .unwrap_or(u64::MAX)
                    .saturating_add(1),
            )
            .read_to_end(&mut bytes)?;
    } else {
        bytes.extend_from_slice(stored);
    }
    if bytes.len() > UNPACKED_LIMIT {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&bytes)?, bytes.len())))
}

/// Returns the stored bytes of an object, if it can be read back and applied.
fn encode(object: &Value, phase: &str) -> Result<Vec<u8>, PackError> {
    let stored = escaped_json(object).into_bytes();
    // Requests are not escaped like stored objects.
    let sent = if stored.len() > REQUEST_LIMIT {
        object.to_string().len()
    } else {
        stored.len()
    };
    for (size, limit) in [(sent, REQUEST_LIMIT), (stored.len(), UNPACKED_LIMIT)] {
        if size > limit {
            let id = ObjectId::of(object);
            return Err(PackError::RequestTooLarge {
                object: format!("{} {}", id.kind, quoted(id.name, MAX_NAME)),
                phase: phase.to_owned(),
                size,
                limit,
            });
        }
    }
    Ok(stored)
}

fn typed_phases(list: Vec<Value>) -> Result<Vec<olm_api::ClusterObjectSetPhase>, PackError> {
    serde_json::from_value(Value::Array(list)).map_err(PackError::InvalidPhases)
}

fn compress_if_large(object: Vec<u8>, phase: usize, index: usize) -> Result<Vec<u8>, PackError> {
    if object.len() <= SECRET_DATA_LIMIT {
        return Ok(object);
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let compressed = encoder
        .write_all(&object)
        .and_then(|()| encoder.finish())
        .map_err(|source| PackError::Compress { phase, index, source })?;
    if compressed.len() > SECRET_DATA_LIMIT {
        return Err(PackError::TooLarge {
            phase,
            index,
            size: compressed.len(),
        });
    }
    Ok(compressed)
}

fn secret_name(revision: &str, data: &BTreeMap<String, Vec<u8>>) -> String {
    let mut sum = Sha256::new();
    for (key, value) in data {
        sum.update(key.as_bytes());
        sum.update(value);
    }
    let sum = HEXLOWER.encode(&sum.finalize());
    format!("{revision}-{}", sum.get(..16).unwrap_or_default())
}

fn secret_of(
    name: String,
    namespace: &str,
    revision: &str,
    owner: &str,
    data: BTreeMap<String, Vec<u8>>,
) -> Secret {
    let labels = BTreeMap::from([
        (olm_api::keys::REVISION_NAME_LABEL.to_owned(), revision.to_owned()),
        (olm_api::keys::OWNER_NAME_LABEL.to_owned(), owner.to_owned()),
    ]);
    Secret {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        type_: Some(olm_api::keys::OBJECT_DATA_SECRET_TYPE.to_owned()),
        data: Some(data.into_iter().map(|(k, v)| (k, ByteString(v))).collect()),
        string_data: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(objects: Vec<Value>) -> Phase {
        Phase {
            name: "deploy".to_owned(),
            objects,
        }
    }

    fn object(kind: &str, name: &str, size: usize) -> Value {
        // A text that does not compress well.
        let mut seed = 7u64;
        let text: String = (0..size)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'!' + u8::try_from((seed >> 40) % 90).unwrap())
            })
            .collect();
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"k": text}})
    }

    #[test]
    fn small_revisions_without_secrets_are_inline() {
        let packed = pack("x-1", "sys", "x", vec![phase(vec![object("ConfigMap", "a", 10)])]).unwrap();
        assert!(packed.secrets.is_empty());
        let value = serde_json::to_value(&packed.phases).unwrap();
        assert_eq!(value[0]["objects"][0]["object"]["metadata"]["name"], "a");
    }

    #[test]
    fn secrets_are_never_inline_and_read_back() {
        let secret = object("Secret", "a", 10);
        let packed = pack(
            "x-1",
            "sys",
            "x",
            vec![phase(vec![secret.clone(), secret.clone()])],
        )
        .unwrap();
        let value = serde_json::to_value(&packed.phases).unwrap();
        assert!(!value.to_string().contains("data\""));
        let data = packed.secrets[0].data.clone().unwrap();
        assert_eq!(data.len(), 1, "equal objects share a key");
        assert_eq!(packed.secrets[0].immutable, Some(true));
        assert_eq!(value[0]["objects"][0]["ref"]["key"], *data.keys().next().unwrap());
        assert_eq!(unpack(&data.values().next().unwrap().0).unwrap(), Some(secret));
        let name = packed.secrets[0].metadata.name.clone().unwrap();
        assert!(name.starts_with("x-1-") && name.len() == 20, "{name}");
    }

    #[test]
    fn large_objects_fill_several_secrets() {
        let objects = (0..3)
            .map(|i| object("ConfigMap", &format!("o{i}"), 300_000))
            .collect();
        let packed = pack("x-1", "sys", "x", vec![phase(objects)]).unwrap();
        assert_eq!(packed.secrets.len(), 2);
        let error = pack(
            "x-1",
            "sys",
            "x",
            vec![phase(vec![object("ConfigMap", "o", 1_300_000)])],
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("object in phase 0 index 0 exceeds maximum")
        );
        let gzip = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "a".repeat(1_000_000)}});
        let packed = pack("x-1", "sys", "x", vec![phase(vec![gzip.clone()])]).unwrap();
        let data = packed.secrets[0].data.clone().unwrap();
        assert_eq!(unpack(&data.values().next().unwrap().0).unwrap(), Some(gzip));
    }

    #[test]
    fn objects_that_cannot_be_applied_or_read_back_are_refused() {
        let refusal = |text: &str, size: usize| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"},
                "data": {"k": text.repeat(size)}});
            let packed = pack("x-1", "sys", "x", vec![phase(vec![object])]);
            packed.err().map(|error| {
                assert!(error.terminal());
                error.to_string()
            })
        };
        // Both objects compress to a few kilobytes.
        assert_eq!(refusal("a", REQUEST_LIMIT - 200), None);
        let error = refusal("a", REQUEST_LIMIT).unwrap();
        assert!(
            error.starts_with("ConfigMap \"big\" in phase deploy has 31458")
                && error.contains("at most 3145728 bytes"),
            "{error}"
        );
        // Stored with six bytes per character, sent with one.
        let error = refusal("<", 2 * 1024 * 1024).unwrap();
        assert!(error.contains("at most 10485760 bytes"), "{error}");
        assert_eq!(refusal("<", 1024 * 1024), None);

        let value = "v".repeat(ANNOTATIONS_LIMIT - 3);
        assert!(check_annotations([("key", value.as_str())].into_iter()).is_ok());
        let error = check_annotations([("key+", value.as_str())].into_iter()).unwrap_err();
        assert!(error.terminal(), "{error}");

        let stored = |size: usize| {
            let text = serde_json::to_vec(&Value::String("a".repeat(size))).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&text).unwrap();
            unpack(&encoder.finish().unwrap()).unwrap().is_some()
        };
        assert!(
            stored(UNPACKED_LIMIT - 2) && !stored(UNPACKED_LIMIT - 1),
            "the same limit on both sides"
        );
    }

    #[test]
    fn too_many_phases_are_refused() {
        let phases = (0..21).map(|_| phase(Vec::new())).collect();
        assert!(matches!(
            pack("x", "s", "x", phases),
            Err(PackError::TooManyPhases { count: 21 })
        ));
    }
}
