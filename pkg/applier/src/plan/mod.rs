//! From rendered objects to the phases of a revision. Pure.
//!
//! The bytes matter: upstream's digests of phases and the names of its Secrets are made from Go's JSON, and a revision made by it
//! must not look changed to us (nor ours to it).

mod order;
mod pack;
mod probes;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use olm_bundle::escaped_json;
use olm_text::object::ObjectId;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use pack::{
    INLINE_LIMIT, OBJECT_DATA_TYPE, PackError, Packed, REQUEST_LIMIT, SECRET_DATA_LIMIT, UNPACKED_LIMIT,
    check_annotations, pack, unpack,
};
pub use probes::default_probes;

/// The most objects the schema admits in one phase.
pub const MAX_OBJECTS: usize = 50;
/// The most phases the schema admits in one revision.
pub const MAX_PHASES: usize = 20;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A named group of objects that are applied together.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// A DNS label, unique within the revision.
    pub name: String,
    /// The objects, sorted by group, version, kind, namespace and name.
    pub objects: Vec<Value>,
}

impl Phase {
    /// `sha256:` and the hex SHA-256 of the phase's name and objects as Go writes them; see `status.observedPhases`.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut value = Map::new();
        value.insert("name".to_owned(), Value::String(self.name.clone()));
        value.insert("objects".to_owned(), Value::Array(self.objects.clone()));
        let sum = Sha256::digest(escaped_json(&Value::Object(value)));
        format!("sha256:{}", HEXLOWER.encode(&sum))
    }
}

/// What is put on every object of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Labels to set, over those of the bundle.
    pub labels: BTreeMap<String, String>,
    /// Annotations to set, over those of the bundle.
    pub annotations: BTreeMap<String, String>,
}

/// Sorts `objects` into phases. Status and all metadata but name, namespace, labels and annotations are left out, `stamp` is added,
/// empty phases are omitted, and a phase of more than [`MAX_OBJECTS`] objects goes on in `<name>-2`, `<name>-3`, ...
#[must_use]
pub fn phases(objects: Vec<Value>, stamp: &Stamp) -> Vec<Phase> {
    let mut by_phase: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for object in objects {
        let id = ObjectId::of(&object);
        let index = order::phase_of(id.group, id.kind);
        by_phase.entry(index).or_default().push(reduced(object, stamp));
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

fn reduced(object: Value, stamp: &Stamp) -> Value {
    let Value::Object(mut object) = object else {
        return object;
    };
    object.remove("status");
    let mut metadata = match object.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let mut kept = Map::new();
    for key in ["name", "namespace"] {
        if let Some(Value::String(value)) = metadata.remove(key)
            && !value.is_empty()
        {
            kept.insert(key.to_owned(), Value::String(value));
        }
    }
    for (key, extra) in [("labels", &stamp.labels), ("annotations", &stamp.annotations)] {
        let mut map = match metadata.remove(key) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        map.remove(LAST_APPLIED);
        map.extend(extra.iter().map(|(k, v)| (k.clone(), Value::String(v.clone()))));
        if !map.is_empty() {
            kept.insert(key.to_owned(), Value::Object(map));
        }
    }
    object.insert("metadata".to_owned(), Value::Object(kept));
    Value::Object(object)
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
        let got: Vec<String> = phases(all, &Stamp::default())
            .iter()
            .map(|p| {
                let names: Vec<&str> = p.objects.iter().map(|o| ObjectId::of(o).name).collect();
                format!("{}: {}", p.name, names.join(" "))
            })
            .collect();
        assert_eq!(
            got,
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
    fn metadata_is_reduced_and_stamped() {
        let input = json!({"apiVersion": "v1", "kind": "ConfigMap", "status": {"a": 1}, "data": {"k": "v"}, "metadata": {
            "name": "c", "namespace": "n", "creationTimestamp": null, "uid": "u", "labels": {"a": "b"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}});
        let stamp = Stamp {
            labels: BTreeMap::from([("owner".to_owned(), "x".to_owned())]),
            ..Stamp::default()
        };
        let got = phases(vec![input], &stamp);
        assert_eq!(
            got[0].objects[0],
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
                "metadata": {"name": "c", "namespace": "n", "labels": {"a": "b", "owner": "x"}}})
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_phase_is_too_large(count in 0usize..180) {
            let all: Vec<Value> =
                (0..count).map(|i| object("v1", if i % 3 == 0 { "Secret" } else { "Service" }, &format!("o{i}"))).collect();
            let got = phases(all, &Stamp::default());
            prop_assert_eq!(got.iter().map(|p| p.objects.len()).sum::<usize>(), count);
            prop_assert!(got.iter().all(|p| (1..=MAX_OBJECTS).contains(&p.objects.len())));
            let mut names: Vec<&str> = got.iter().map(|p| p.name.as_str()).collect();
            names.dedup();
            prop_assert_eq!(names.len(), got.len());
        }
    }
}
