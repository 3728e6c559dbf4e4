//! Converts the writes in an audit log to changes of objects, in the order in which etcd stored them.
//!
//! Resource versions are revisions of etcd, so they order the writes to all objects. The answer to a deletion has no resource
//! version. A deletion is placed after all writes that were answered before it was received, and after all other writes to the
//! same object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use olm_harness::audit::OPERATOR_CONTROLLER;
use olm_proof::{Actor, Change, ObjectKey, Preconditions};
use serde_json::Value;

use crate::plans::Write;

/// Kind of an answer that has only metadata.
const METADATA: &str = "PartialObjectMetadata";

/// Effect of a write on an object.
pub struct Effect<'a> {
    /// The write.
    pub write: &'a Write,
    /// Name of the object. A write to several objects has one effect for each of them.
    pub name: String,
    /// The object after the write; `None` if it is gone.
    pub after: Option<Arc<Value>>,
}

/// Returns the changes that the writes made, including those that the API server makes without a request.
pub fn of(writes: &[Write]) -> Vec<Change> {
    let kinds = kinds(writes);
    let mut cluster = Cluster::default();
    for Effect { write, name, after } in effects(writes) {
        if let Some(kind) = kinds.get(&(write.group.as_str(), write.resource.as_str())) {
            cluster.change(write, named(write, kind, &name), after);
        }
    }
    cluster.changes
}

/// Returns the effects of the writes in the order in which etcd stored them.
pub fn effects(writes: &[Write]) -> Vec<Effect<'_>> {
    let mut objects: BTreeMap<[&str; 4], Arc<Value>> = BTreeMap::new();
    let mut effects = Vec::new();
    let removed = removed_alone(writes);
    for write in in_order(writes) {
        if write.verb == "deletecollection" {
            let items = write.answer["items"].as_array().into_iter().flatten();
            let gone = |item: &&Value| !stays(item) && !removed.contains(uid(&item["metadata"]));
            effects.extend(items.filter(gone).map(|item| Effect {
                write,
                name: item["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                after: None,
            }));
            continue;
        }
        let name = write.answer["metadata"]["name"].as_str().unwrap_or(&write.name);
        let key = [&write.group, &write.resource, &write.namespace, name];
        let after = match kind(write) {
            _ if write.verb == "delete" && !stays(&write.answer) => None,
            None => continue,
            Some(_) if is_last(&write.answer) => None,
            // Some clients request only the metadata of an object in the answer.
            Some(METADATA) => {
                let Some(before) = objects.get(&key) else {
                    // The log lacks the answer with the whole object, so nothing is known about it.
                    continue;
                };
                let mut after = Value::clone(before);
                after["metadata"] = write.answer["metadata"].clone();
                Some(Arc::new(after))
            }
            Some(_) => Some(Arc::new(write.answer.clone())),
        };
        match &after {
            Some(after) => objects.insert(key, Arc::clone(after)),
            None => objects.remove(&key),
        };
        effects.push(Effect {
            write,
            name: name.to_owned(),
            after,
        });
    }
    effects
}

/// Objects on the cluster after the writes so far, and the changes that led there.
#[derive(Default)]
struct Cluster {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    changes: Vec<Change>,
}

impl Cluster {
    /// Records the change of an object by a write.
    fn change(&mut self, write: &Write, object: ObjectKey, after: Option<Arc<Value>>) {
        let before = match &after {
            Some(after) => self.objects.insert(object.clone(), Arc::clone(after)),
            None => self.objects.remove(&object),
        };
        if before.is_none() && after.is_none() {
            return;
        }
        let actor = match write.user.as_str() {
            OPERATOR_CONTROLLER => Actor::Controller(0),
            user => Actor::Other(user.to_owned()),
        };
        let gone = before
            .clone()
            .filter(|_| after.is_none())
            .map(|before| (object.clone(), before));
        self.changes.push(Change {
            actor,
            object,
            before,
            after,
            deletion: (write.verb == "delete").then(|| preconditions(&write.body)),
        });
        if let Some((object, before)) = gone {
            self.drop_dependents(&object, &before);
        }
    }

    /// Removes the objects that the API server removes together with an object without a request: custom resources of a CRD, and
    /// the Endpoints of a Service.
    fn drop_dependents(&mut self, gone: &ObjectKey, before: &Value) {
        let (group, kind) = (&before["spec"]["group"], &before["spec"]["names"]["kind"]);
        let depends = |key: &ObjectKey| match gone.kind.as_str() {
            "CustomResourceDefinition" => *group == key.group.as_str() && *kind == key.kind.as_str(),
            "Service" => {
                key.kind == "Endpoints" && (&key.namespace, &key.name) == (&gone.namespace, &gone.name)
            }
            _ => false,
        };
        let doomed: Vec<ObjectKey> = self.objects.keys().filter(|key| depends(key)).cloned().collect();
        for object in doomed {
            let before = self.objects.remove(&object);
            self.changes.push(Change {
                actor: Actor::Other("API server".to_owned()),
                object,
                before,
                after: None,
                deletion: None,
            });
        }
    }
}

fn named(write: &Write, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: write.group.clone(),
        kind: kind.to_owned(),
        namespace: (!write.namespace.is_empty()).then(|| write.namespace.clone()),
        name: name.to_owned(),
    }
}

fn preconditions(options: &Value) -> Preconditions {
    let text = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
    Preconditions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    }
}

/// Returns the kind of the object in the answer; `None` if the answer is no object, as for some subresources.
fn kind(write: &Write) -> Option<&str> {
    let whole = ["", "status", "finalize"].contains(&write.subresource.as_str());
    let kind = write.answer["kind"].as_str()?;
    (whole && kind != "Status" && !kind.ends_with("List")).then_some(kind)
}

/// Returns the kinds in the answers, by group and plural.
fn kinds(writes: &[Write]) -> BTreeMap<(&str, &str), &str> {
    writes
        .iter()
        .filter_map(|write| {
            let kind = kind(write).filter(|kind| *kind != METADATA)?;
            Some(((write.group.as_str(), write.resource.as_str()), kind))
        })
        .collect()
}

/// Returns true for the answer to a deletion that only marks the object as being deleted.
fn stays(answer: &Value) -> bool {
    let is_marked = answer["metadata"]["deletionTimestamp"].is_string();
    is_marked && !is_last(answer)
}

/// Returns true if the API server removes the object with this write: the object is marked as being deleted, and no finalizer and
/// no grace period holds it.
fn is_last(answer: &Value) -> bool {
    let none = |pointer: &str| {
        answer
            .pointer(pointer)
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
    };
    let grace = answer["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or_default();
    answer["metadata"]["deletionTimestamp"].is_string()
        && none("/metadata/finalizers")
        && none("/spec/finalizers")
        && grace == 0
}

/// Returns the uids of the objects that a write of their own removed. A deletion of a collection lists them if the write came meanwhile.
fn removed_alone(writes: &[Write]) -> BTreeSet<&str> {
    let deletions = writes.iter().filter(|write| write.verb == "delete");
    let uids = deletions.map(|write| uid(&write.answer["details"]));
    uids.filter(|uid| !uid.is_empty()).collect()
}

fn uid(of: &Value) -> &str {
    of["uid"].as_str().unwrap_or_default()
}

/// Returns the writes in the order of etcd's revisions, as the module says.
fn in_order(writes: &[Write]) -> Vec<&Write> {
    let mut answered: Vec<(&str, u64)> = Vec::new();
    let mut by_uid: BTreeMap<&str, u64> = BTreeMap::new();
    for (write, version) in writes.iter().filter_map(|write| Some((write, version(write)?))) {
        answered.push((&write.answered, version));
        if let Some(uid) = write.answer["metadata"]["uid"].as_str() {
            let last = by_uid.entry(uid).or_default();
            *last = version.max(*last);
        }
    }
    answered.sort_unstable();
    let mut highest = 0;
    for (_, version) in &mut answered {
        highest = highest.max(*version);
        *version = highest;
    }
    let place = |write: &Write| {
        if let Some(version) = version(write) {
            // A write that removes an object is answered with the last stored version of the object, so it comes after the write
            // with that version.
            return (version, is_last(&write.answer));
        }
        let index = answered.partition_point(|(time, _)| *time <= write.received.as_str());
        let before = index.checked_sub(1).map_or(0, |last| answered[last].1);
        let uid = uid(&write.answer["details"]);
        (before.max(by_uid.get(uid).copied().unwrap_or_default()), true)
    };
    let mut ordered: Vec<&Write> = writes.iter().collect();
    ordered.sort_by_cached_key(|write| place(write));
    ordered
}

fn version(write: &Write) -> Option<u64> {
    write.answer["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(verb: &str, received: u8, answered: u8, answer: Value) -> Write {
        Write {
            received: received.to_string(),
            answered: answered.to_string(),
            user: OPERATOR_CONTROLLER.to_owned(),
            verb: verb.to_owned(),
            resource: "configmaps".to_owned(),
            namespace: "n".to_owned(),
            name: "c".to_owned(),
            answer,
            ..Write::default()
        }
    }

    fn stored(uid: &str, version: &str) -> Value {
        json!({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "uid": uid, "resourceVersion": version}})
    }

    #[test]
    fn changes_are_in_the_order_of_etcd() {
        let gone = json!({"kind": "Status", "details": {"uid": "a"}});
        let writes = [
            write("create", 1, 2, stored("a", "5")),
            write("delete", 3, 6, gone),
            // This patch was received after the deletion but stored before it, because an update of a deleted object fails.
            write("patch", 4, 5, stored("a", "6")),
            write("create", 7, 9, stored("b", "8")),
        ];
        let changes = of(&writes);
        let shown: Vec<(bool, Option<&str>)> = changes
            .iter()
            .map(|change| {
                let after = change.after.as_ref();
                (
                    change.before.is_some(),
                    after.and_then(|after| after["metadata"]["resourceVersion"].as_str()),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (false, Some("5")),
                (true, Some("6")),
                (true, None),
                (false, Some("8"))
            ]
        );
        assert!(changes[2].deletion.is_some());
    }

    #[test]
    fn an_object_that_goes_during_the_deletion_of_its_collection_goes_once() {
        let mut other = stored("b", "6");
        other["metadata"]["name"] = json!("d");
        let items = [stored("a", "5"), other.clone()];
        let list = json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": "6"}, "items": items});
        let gone = json!({"kind": "Status", "details": {"uid": "a"}});
        let writes = [
            write("create", 1, 2, stored("a", "5")),
            write("create", 1, 3, other),
            write("deletecollection", 3, 6, list),
            write("delete", 4, 5, gone),
        ];
        let shown: Vec<(&str, String, bool)> = effects(&writes)
            .into_iter()
            .map(|effect| (effect.write.verb.as_str(), effect.name, effect.after.is_some()))
            .collect();
        let named = |verb, name: &str, stays| (verb, name.to_owned(), stays);
        assert_eq!(
            shown,
            [
                named("create", "c", true),
                named("create", "d", true),
                named("deletecollection", "d", false),
                named("delete", "c", false)
            ]
        );
    }

    #[test]
    fn an_object_with_a_finalizer_goes_with_the_finalizer() {
        let mut marked = stored("a", "6");
        marked["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        marked["metadata"]["finalizers"] = json!(["f"]);
        let mut last = marked.clone();
        last["metadata"]["finalizers"] = json!([]);
        last["metadata"]["resourceVersion"] = json!("7");
        let writes = [
            write("create", 1, 2, stored("a", "5")),
            write("delete", 3, 4, marked),
            write("patch", 5, 6, last),
        ];
        let after: Vec<bool> = of(&writes).iter().map(|change| change.after.is_some()).collect();
        assert_eq!(after, [true, true, false]);
    }
}
