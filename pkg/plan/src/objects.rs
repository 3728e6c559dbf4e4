//! Objects that a change creates, changes and deletes.

use std::collections::BTreeMap;

use olm_api::keys;
use olm_bundle::mask_issued_certificates;
use olm_text::object::{ObjectId, manifest};
use serde_json::Value;

use crate::diff::{Budget, fields};
use crate::model::{Counts, ObjectChange, ObjectRef};

/// Annotations that differ between revisions by themselves.
const DROPPED: [&str; 4] = [
    keys::LAST_APPLIED_ANNOTATION,
    keys::BUNDLE_VERSION_ANNOTATION,
    keys::PACKAGE_NAME_ANNOTATION,
    keys::REVISION_ANNOTATION,
];
/// Labels that every object of an extension has.
const MARKS: [&str; 3] = [
    keys::OWNER_KIND_LABEL,
    keys::OWNER_NAME_LABEL,
    keys::MANAGED_BY_LABEL,
];

/// Objects by group, kind, namespace and name.
pub type Desired = BTreeMap<[String; 4], Value>;

/// Returns the objects in the form in which plans compare them: without status, metadata of API servers, marks of revisions and issued
/// certificates, and in the namespaces in which API servers store them. If two objects have one identity, the later one counts, as in a
/// revision.
#[must_use]
pub fn desired(mut objects: Vec<Value>) -> Desired {
    mask_issued_certificates(&mut objects);
    objects
        .into_iter()
        .map(|object| {
            let object = placed(unmarked(manifest(object, &DROPPED)));
            let id = ObjectId::of(&object);
            let key = [id.group, id.kind, id.namespace, id.name].map(ToOwned::to_owned);
            (key, object)
        })
        .collect()
}

/// Removes a namespace that means nothing to API servers.
fn placed(mut object: Value) -> Value {
    let id = ObjectId::of(&object);
    if id.namespace != id.stored_namespace()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("namespace");
    }
    object
}

fn unmarked(mut object: Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut)
    {
        labels.retain(|name, _| !MARKS.contains(&name.as_str()));
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
    object
}

/// Result of the comparison.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) counts: Counts,
    pub(crate) created: Vec<ObjectRef>,
    pub(crate) changed: Vec<ObjectChange>,
    pub(crate) deleted: Vec<ObjectRef>,
}

/// Compares the objects of both sides.
pub(crate) fn compare(before: &Desired, after: &Desired) -> Compared {
    let mut budget = Budget::default();
    let mut out = Compared::default();
    for (key, new) in after {
        let Some(old) = before.get(key) else {
            out.created.push(ObjectRef::of(new));
            continue;
        };
        if old == new {
            out.counts.unchanged += 1;
            continue;
        }
        let found = fields(old, new, &mut budget);
        out.counts.fields += found.changes.len() + found.more;
        out.changed.push(ObjectChange {
            object: ObjectRef::of(new),
            fields: found.changes,
            more: found.more,
        });
    }
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    out.deleted = gone.map(|(_, old)| ObjectRef::of(old)).collect();
    out.counts.created = out.created.len();
    out.counts.changed = out.changed.len();
    out.counts.deleted = out.deleted.len();
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_are_not_named_count() {
        let side = |value: &str| {
            let data: serde_json::Map<String, Value> =
                (0..150).map(|key| (format!("k{key:03}"), json!(value))).collect();
            desired(vec![
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": data}),
            ])
        };
        let compared = compare(&side("1"), &side("2"));
        assert_eq!(compared.counts.fields, 150);
        assert_eq!(compared.changed[0].more, 50);
    }
}
