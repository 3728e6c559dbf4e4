//! How a revision's objects are stored: in the revision itself, or in immutable Secrets it refers to.
//!
//! A revision that holds a Secret is never stored inline, so that no key stands in an object everyone with read access to revisions
//! may see; neither is a large one, as the API server refuses requests beyond 1.5 MB.

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

/// Largest sum of the objects' bytes that is stored inline.
pub const INLINE_LIMIT: usize = 256 * 1024;
/// Largest sum of the data of one Secret in bytes.
pub const SECRET_DATA_LIMIT: usize = 900 * 1024;
/// Largest size of an unpacked object in bytes; [`pack`] refuses what [`unpack`] would.
pub const UNPACKED_LIMIT: usize = 10 * 1024 * 1024;
/// Largest request in bytes that an API server takes, whatever etcd takes: no larger object can be applied.
pub const REQUEST_LIMIT: usize = 3 * 1024 * 1024;
/// Most bytes of keys and values of one object's annotations, a constant of Kubernetes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;
/// Longest part of a name in an error, in bytes.
const NAME_SHOWN: usize = 253;
/// Type of the Secrets.
pub const OBJECT_DATA_TYPE: &str = "olm.operatorframework.io/object-data";

/// Why objects cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// One object is too large for a Secret.
    #[error(
        "object in phase {phase} index {index} exceeds maximum Secret data size ({size} bytes > {SECRET_DATA_LIMIT} bytes) even after compression"
    )]
    TooLarge {
        /// Place of the phase.
        phase: usize,
        /// Place of the object in the phase.
        index: usize,
        /// Its compressed size in bytes.
        size: usize,
    },
    /// One object is larger than any API server takes.
    #[error(
        "{object} in phase {phase} has {size} bytes, an API server takes at most {limit} bytes; a bundle with a smaller object is needed"
    )]
    NeverAccepted {
        /// The object: kind and name.
        object: String,
        /// Name of the phase.
        phase: String,
        /// Size of the object in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The bundle says more about itself than fits beside the objects.
    #[error(
        "the annotations of the revision would have {size} bytes, an API server takes at most {ANNOTATIONS_LIMIT}; a bundle with \
         shorter properties is needed"
    )]
    Annotations {
        /// Bytes of all keys and values.
        size: usize,
    },
    /// The revision would have more phases than the schema admits.
    #[error(
        "the bundle needs {count} phases, a revision holds at most {MAX_PHASES}; a bundle with fewer objects is needed"
    )]
    TooManyPhases {
        /// How many it would have.
        count: usize,
    },
    /// Compression failed.
    #[error("cannot compress object in phase {phase} index {index}")]
    Compress {
        /// Place of the phase.
        phase: usize,
        /// Place of the object in the phase.
        index: usize,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The phases do not have the form the API asks for.
    #[error("cannot form the phases of the revision")]
    Form(#[source] serde_json::Error),
}

impl PackError {
    /// Whether only another bundle helps; true for all but failing compression.
    #[must_use]
    pub fn terminal(&self) -> bool {
        !matches!(self, Self::Compress { .. })
    }
}

/// The stored form of phases.
#[derive(Clone, Debug)]
pub struct Packed {
    /// For `spec.phases` of the revision.
    pub phases: Vec<olm_api::ClusterObjectSetPhase>,
    /// To be created before the revision; empty when all is inline.
    pub secrets: Vec<Secret>,
}

/// Checks that a revision can have these annotations.
///
/// # Errors
/// [`PackError::Annotations`] if no API server takes them.
pub fn check_annotations<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), PackError> {
    let size = annotations.map(|(key, value)| key.len() + value.len()).sum();
    if size > ANNOTATIONS_LIMIT {
        return Err(PackError::Annotations { size });
    }
    Ok(())
}

/// Stores `phases` for the revision `revision_name` of the extension `owner`; Secrets go to `system_namespace`.
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
        let stored = phase.objects.iter().map(|object| bytes_of(object, &phase.name));
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
            phases: form(list)?,
            secrets: Vec::new(),
        });
    }

    let mut bins: Vec<BTreeMap<String, Vec<u8>>> = vec![BTreeMap::new()];
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut keys: Vec<Vec<String>> = Vec::new();
    let mut filled = 0;
    for (p, objects) in bytes.into_iter().enumerate() {
        let mut phase_keys = Vec::new();
        for (i, object) in objects.into_iter().enumerate() {
            let stored = stored_form(object, p, i)?;
            let key = URL_SAFE_NO_PAD.encode(Sha256::digest(&stored));
            phase_keys.push(key.clone());
            if places.contains_key(&key) {
                continue;
            }
            if filled + stored.len() > SECRET_DATA_LIMIT && filled > 0 {
                bins.push(BTreeMap::new());
                filled = 0;
            }
            filled += stored.len();
            places.insert(key.clone(), bins.len() - 1);
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
                    let name = places.get(key).and_then(|place| names.get(*place));
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
        phases: form(list)?,
        secrets,
    })
}

/// Reads what [`pack`] stored under one key. `Ok(None)`: larger than 10 MiB once unpacked.
pub fn unpack(stored: &[u8]) -> std::io::Result<Option<Value>> {
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
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// The stored bytes of an object that can be read back and applied.
fn bytes_of(object: &Value, phase: &str) -> Result<Vec<u8>, PackError> {
    let stored = escaped_json(object).into_bytes();
    // Requests are not escaped as stored objects are.
    let sent = if stored.len() > REQUEST_LIMIT {
        object.to_string().len()
    } else {
        stored.len()
    };
    for (size, limit) in [(sent, REQUEST_LIMIT), (stored.len(), UNPACKED_LIMIT)] {
        if size > limit {
            let id = ObjectId::of(object);
            return Err(PackError::NeverAccepted {
                object: format!("{} {}", id.kind, quoted(id.name, NAME_SHOWN)),
                phase: phase.to_owned(),
                size,
                limit,
            });
        }
    }
    Ok(stored)
}

fn form(list: Vec<Value>) -> Result<Vec<olm_api::ClusterObjectSetPhase>, PackError> {
    serde_json::from_value(Value::Array(list)).map_err(PackError::Form)
}

fn stored_form(object: Vec<u8>, phase: usize, index: usize) -> Result<Vec<u8>, PackError> {
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
        type_: Some(OBJECT_DATA_TYPE.to_owned()),
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
        // Text that does not compress well.
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
    fn small_without_a_secret_is_inline() {
        let packed = pack("x-1", "sys", "x", vec![phase(vec![object("ConfigMap", "a", 10)])]).unwrap();
        assert!(packed.secrets.is_empty());
        let value = serde_json::to_value(&packed.phases).unwrap();
        assert_eq!(value[0]["objects"][0]["object"]["metadata"]["name"], "a");
    }

    #[test]
    fn a_secret_is_never_inline_and_reads_back() {
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
    fn what_cannot_be_applied_or_read_back_is_refused() {
        let refusal = |text: &str, size: usize| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"},
                "data": {"k": text.repeat(size)}});
            let packed = pack("x-1", "sys", "x", vec![phase(vec![object])]);
            packed.err().map(|error| {
                assert!(error.terminal());
                error.to_string()
            })
        };
        // Both compress to a few kilobytes.
        assert_eq!(refusal("a", REQUEST_LIMIT - 200), None);
        let said = refusal("a", REQUEST_LIMIT).unwrap();
        assert!(
            said.starts_with("ConfigMap \"big\" in phase deploy has 31458")
                && said.contains("at most 3145728 bytes"),
            "{said}"
        );
        // Stored with six bytes for each character, and sent with one.
        let said = refusal("<", 2 * 1024 * 1024).unwrap();
        assert!(said.contains("at most 10485760 bytes"), "{said}");
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
