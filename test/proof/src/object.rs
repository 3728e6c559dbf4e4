//! Facts that the invariants read from objects. The objects are JSON values, because some come from other implementations of the
//! API.

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub(crate) use olm_api::GROUP;
use olm_api::keys;
use serde_json::Value;

use crate::ObjectKey;

/// Maximum size of the unpacked content of one key of a Secret, in bytes.
const MAX_CONTENT: u64 = 32 << 20;

/// Returns the value of a label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// Returns the value of an annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Returns the uid; empty if the object has none.
pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Returns the owner references.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}

/// Returns the uid of the ClusterExtension that owns a revision.
pub(crate) fn extension_uid(revision: &Value) -> Option<&str> {
    owners(revision)
        .find(|owner| owner["kind"] == "ClusterExtension")
        .and_then(|owner| owner["uid"].as_str())
}

/// Returns true for an object that OLM installs or keeps: it has the label of an extension or of a revision, or an owner of a
/// kind of OLM.
pub(crate) fn is_ours(object: &Value) -> bool {
    [
        keys::OWNER_KIND_LABEL,
        keys::OWNER_NAME_LABEL,
        keys::REVISION_NAME_LABEL,
        keys::KEPT_FROM_LABEL,
    ]
    .iter()
    .any(|key| label(object, key).is_some())
        || owners(object).any(|owner| {
            let version = owner["apiVersion"].as_str().unwrap_or_default();
            version.split('/').next() == Some(GROUP)
        })
}

/// Returns the condition with the type `kind`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// Returns the identities of the objects of a revision, each with the index of its phase. `secret` finds the Secrets that hold
/// objects, by namespace and name. Namespaces are those in the objects, and a namespaced object of a revision always has one.
pub(crate) fn contents<'a>(
    revision: &Value,
    secret: impl Fn(Option<&str>, &str) -> Option<&'a Value>,
) -> BTreeMap<ObjectKey, usize> {
    let phases = revision["spec"]["phases"].as_array().into_iter().flatten();
    let entries = phases.enumerate().flat_map(|(at, phase)| {
        let objects = phase["objects"].as_array().into_iter().flatten();
        objects.map(move |entry| (at, entry))
    });
    let read = |entry: &Value| {
        if entry["object"].is_object() {
            return key(&entry["object"]);
        }
        let reference = &entry["ref"];
        let held = secret(reference["namespace"].as_str(), reference["name"].as_str()?)?;
        let data = STANDARD
            .decode(held["data"][reference["key"].as_str()?].as_str()?)
            .ok()?;
        key(&serde_json::from_slice(&inflated(data)?).ok()?)
    };
    entries
        .filter_map(|(at, entry)| Some((read(entry)?, at)))
        .collect()
}

/// Returns the data, decompressed if it is in gzip format.
fn inflated(data: Vec<u8>) -> Option<Vec<u8>> {
    if !data.starts_with(&[0x1f, 0x8b]) {
        return Some(data);
    }
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(data.as_slice()).take(MAX_CONTENT);
    reader.read_to_end(&mut plain).ok()?;
    Some(plain)
}

/// Returns the identity of an object; `None` if it lacks a kind or a name.
fn key(object: &Value) -> Option<ObjectKey> {
    let version = object["apiVersion"].as_str()?;
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(ObjectKey {
        group: group.to_owned(),
        kind: object["kind"].as_str()?.to_owned(),
        namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
        name: object["metadata"]["name"].as_str()?.to_owned(),
    })
}
