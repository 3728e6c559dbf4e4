//! Phases of a revision, planned from rendered objects. Pure.
//!
//! Bytes matter: upstream derives digests of phases and names of Secrets from Go's JSON, and neither implementation
//! may consider the other's revision as changed.

mod order;
mod pack;
mod probes;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use olm_api::keys;
use olm_bundle::escaped_json;
use olm_text::object::{ObjectId, manifest};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub(crate) use pack::unpack_sized;
pub use pack::{
    INLINE_LIMIT, PackError, Packed, REQUEST_LIMIT, SECRET_DATA_LIMIT, UNPACKED_LIMIT, check_annotations,
    pack, unpack,
};
pub use probes::{default_probes, probes_of};

/// Maximum number of objects in one phase, by the schema.
pub const MAX_OBJECTS: usize = 50;
/// Maximum number of phases in one revision, by the schema.
pub const MAX_PHASES: usize = 20;

/// A named group of objects that are applied together.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// DNS label, unique within the revision.
    pub name: String,
    /// Objects, sorted by group, version, kind, namespace and name.
    pub objects: Vec<Value>,
}

impl Phase {
    /// Returns `sha256:` and the hex SHA-256 of the phase's name and objects as Go's JSON; see
    /// `status.observedPhases`.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut value = Map::new();
        value.insert("name".to_owned(), Value::String(self.name.clone()));
        value.insert("objects".to_owned(), Value::Array(self.objects.clone()));
        let sum = Sha256::digest(escaped_json(&Value::Object(value)));
        format!("sha256:{}", HEXLOWER.encode(&sum))
    }
}

/// Returns `sha256:` and the hex SHA-256 of the digests of all phases.
#[must_use]
pub fn digest(phases: &[Phase]) -> String {
    let mut all = Sha256::new();
    for phase in phases {
        all.update(phase.digest());
    }
    format!("sha256:{}", HEXLOWER.encode(&all.finalize()))
}

/// Labels and annotations of every object of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonMetadata {
    /// Labels that override those of the bundle.
    pub labels: BTreeMap<String, String>,
    /// Annotations that override those of the bundle.
    pub annotations: BTreeMap<String, String>,
}

/// Sorts `objects` into phases and adds the metadata of `common`. Drops the status, and all metadata except name,
/// namespace, labels and annotations. Omits empty phases, and splits a phase of more than [`MAX_OBJECTS`] objects
/// into `<name>`, `<name>-2`, `<name>-3`, ...
#[must_use]
pub fn phases(objects: Vec<Value>, common: &CommonMetadata) -> Vec<Phase> {
    let mut by_phase: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for object in objects {
        let id = ObjectId::of(&object);
        let index = order::phase_of(id.group, id.kind);
        by_phase.entry(index).or_default().push(sanitized(object, common));
    }
    let mut phases = Vec::new();
    for (index, mut objects) in by_phase {
        objects.sort_by(|a, b| ObjectId::of(a).cmp(&ObjectId::of(b)));
        let name = order::name_of(index);
        for (part, chunk) in objects.chunks(MAX_OBJECTS).enumerate() {
            let name = if part == 0 {
                name.to_owned()
            } else {
                format!("{name}-{}", part + 1)
            };
            phases.push(Phase {
                name,
                objects: chunk.to_vec(),
            });
        }
    }
    phases
}

fn sanitized(object: Value, common: &CommonMetadata) -> Value {
    let mut object = manifest(object, &[keys::LAST_APPLIED_ANNOTATION]);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    for (key, extra) in [("labels", &common.labels), ("annotations", &common.annotations)] {
        if extra.is_empty() {
            continue;
        }
        if let Some(map) = metadata
            .entry(key)
            .or_insert_with(|| Map::new().into())
            .as_object_mut()
        {
            map.extend(extra.iter().map(|(k, v)| (k.clone(), Value::String(v.clone()))));
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "uid": "x"}, "status": {}})
    }

    #[test]
    fn objects_go_to_their_phases_in_order() {
        let all = vec![
            object("apps/v1", "Deployment", "b"),
            object("apps/v1", "Deployment", "a"),
            object("example.com/v1", "Thing", "t"),
            object("v1", "ConfigMap", "c"),
            object("v1", "Namespace", "n"),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "x"),
            object(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                "w",
            ),
        ];
        let planned: Vec<String> = phases(all, &CommonMetadata::default())
            .iter()
            .map(|p| {
                let names: Vec<&str> = p.objects.iter().map(|o| ObjectId::of(o).name).collect();
                format!("{}: {}", p.name, names.join(" "))
            })
            .collect();
        assert_eq!(
            planned,
            [
                "namespaces: n",
                "configuration: c",
                "crds: x",
                "deploy: a b t",
                "admission: w"
            ]
        );
    }

    #[test]
    fn metadata_is_sanitized_and_common_metadata_added() {
        let input = json!({"apiVersion": "v1", "kind": "ConfigMap", "status": {"a": 1}, "data": {"k": "v"}, "metadata": {
            "name": "c", "namespace": "n", "creationTimestamp": null, "uid": "u", "labels": {"a": "b"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}});
        let common = CommonMetadata {
            labels: BTreeMap::from([("owner".to_owned(), "x".to_owned())]),
            ..CommonMetadata::default()
        };
        let planned = phases(vec![input], &common);
        assert_eq!(
            planned[0].objects[0],
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
                "metadata": {"name": "c", "namespace": "n", "labels": {"a": "b", "owner": "x"}}})
        );
    }

    #[test]
    fn the_digest_covers_every_object() {
        let of = |names: &[&str]| {
            let objects = names.iter().map(|name| object("v1", "ConfigMap", name)).collect();
            digest(&phases(objects, &CommonMetadata::default()))
        };
        assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["a", "b"]), of(&["a"]));
        assert_ne!(of(&["a"]), of(&["b"]));
    }

    proptest! {
        #[test]
        fn objects_are_complete_and_phases_bounded(count in 0usize..180) {
            let all: Vec<Value> =
                (0..count).map(|i| object("v1", if i % 3 == 0 { "Secret" } else { "Service" }, &format!("o{i}"))).collect();
            let planned = phases(all, &CommonMetadata::default());
            prop_assert_eq!(planned.iter().map(|p| p.objects.len()).sum::<usize>(), count);
            prop_assert!(planned.iter().all(|p| (1..=MAX_OBJECTS).contains(&p.objects.len())));
            let mut names: Vec<&str> = planned.iter().map(|p| p.name.as_str()).collect();
            names.dedup();
            prop_assert_eq!(names.len(), planned.len());
        }
    }
}
