//! How a revision's objects are stored: in the revision itself, or in immutable Secrets it refers to.
//!
//! A revision that holds a Secret is never stored inline, so that no key stands in an object everyone with read access to revisions
//! may see; neither is a large one, as the API server refuses requests beyond 1.5 MB.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olm_bundle::escaped_json;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{MAX_PHASES, Phase, group_kind, hex};

/// Largest sum of the objects' bytes that is stored inline.
pub const INLINE_LIMIT: usize = 256 * 1024;
/// Largest sum of the data of one Secret in bytes.
pub const SECRET_DATA_LIMIT: usize = 900 * 1024;
/// Largest size of an unpacked object in bytes.
const UNPACKED_LIMIT: u64 = 10 * 1024 * 1024;
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
    let bytes: Vec<Vec<Vec<u8>>> = phases
        .iter()
        .map(|phase| {
            phase
                .objects
                .iter()
                .map(|object| escaped_json(object).into_bytes())
                .collect()
        })
        .collect();
    let total: usize = bytes.iter().flatten().map(Vec::len).sum();
    let secret = phases
        .iter()
        .flat_map(|p| &p.objects)
        .any(|o| group_kind(o) == (String::new(), "Secret".into()));
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
            .take(UNPACKED_LIMIT + 1)
            .read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > UNPACKED_LIMIT {
            return Ok(None);
        }
    } else {
        bytes.extend_from_slice(stored);
    }
    Ok(Some(serde_json::from_slice(&bytes)?))
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
    let sum = hex(&sum.finalize());
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
    fn too_many_phases_are_refused() {
        let phases = (0..21).map(|_| phase(Vec::new())).collect();
        assert!(matches!(
            pack("x", "s", "x", phases),
            Err(PackError::TooManyPhases { count: 21 })
        ));
    }
}
