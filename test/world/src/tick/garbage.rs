//! Garbage collection by owner references.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::store::Key;
use crate::value::{finalizers, is_deleting, items, metadata, text};
use crate::world::{Call, World};
use crate::write::{FOREGROUND, ORPHAN};

/// State of an owner that a reference names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Present,
    /// The owner waits until its dependents are gone.
    Waiting,
    Absent,
}

/// Step of one worker of the collector.
pub(super) enum Work {
    /// Looks at an object with owners.
    Collect(Arc<Key>),
    /// Takes a deleted owner from a dependent that it leaves behind.
    Orphan(Arc<Key>, String),
    /// Lets go of a deleted owner if no dependent holds it back.
    Finish(Arc<Key>),
}

impl World {
    pub(super) fn tick_garbage(&mut self, call: &mut Call) {
        for key in self.owned() {
            self.collect(call, &key);
        }
        // The real collector queues the dependents of an owner before the owner.
        for key in self.held_owners() {
            for work in self.work_on_owner(&key) {
                self.work(call, &work);
            }
        }
    }

    /// Returns the steps that workers of the collector can take now, in any order.
    pub(super) fn works(&self) -> Vec<Work> {
        let owned = self.owned().into_iter().map(Work::Collect);
        let held = self.held_owners();
        let finished = held.iter().flat_map(|key| self.work_on_owner(key));
        owned.chain(finished).collect()
    }

    pub(super) fn work(&mut self, call: &mut Call, work: &Work) {
        match work {
            Work::Collect(key) => self.collect(call, key),
            Work::Orphan(key, uid) => self.drop_references(call, key, &[uid.as_str()]),
            Work::Finish(key) => self.finish_owner(call, key),
        }
    }

    fn owned(&self) -> Vec<Arc<Key>> {
        let all = self.store.all();
        all.filter(|(_, object)| !items(object, "/metadata/ownerReferences").is_empty())
            .map(|(key, _)| Arc::clone(key))
            .collect()
    }

    /// Returns the deleted owners that a finalizer of the collector holds.
    fn held_owners(&self) -> Vec<Arc<Key>> {
        let held = |object: &Value| {
            let names = finalizers(object);
            is_deleting(object) && names.iter().any(|name| *name == ORPHAN || *name == FOREGROUND)
        };
        let all = self.store.all();
        all.filter(|(_, object)| held(object))
            .map(|(key, _)| Arc::clone(key))
            .collect()
    }

    /// Returns the steps for a deleted owner: its dependents come first if it leaves them behind.
    fn work_on_owner(&self, key: &Arc<Key>) -> Vec<Work> {
        let Some(object) = self.store.get(key) else {
            return Vec::new();
        };
        let uid = text(object, "/metadata/uid");
        let mut out = Vec::new();
        if finalizers(object).contains(&ORPHAN) {
            let dependents = self.dependents(uid);
            out.extend(dependents.map(|(key, _)| Work::Orphan(Arc::clone(key), uid.to_owned())));
        }
        out.push(Work::Finish(Arc::clone(key)));
        out
    }

    fn dependents<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = (&'a Arc<Key>, &'a Value)> {
        let all = self.store.all();
        all.filter_map(move |(key, object)| refers(object, uid).map(|reference| (key, reference)))
    }

    fn finish_owner(&mut self, call: &mut Call, key: &Key) {
        let Some(object) = self.store.get(key) else {
            return;
        };
        let mut dependents = self.dependents(text(object, "/metadata/uid"));
        let (held, name) = if finalizers(object).contains(&ORPHAN) {
            (dependents.next().is_some(), ORPHAN)
        } else {
            let blocks = |(_, reference): (_, &Value)| reference["blockOwnerDeletion"] == true;
            (dependents.any(blocks), FOREGROUND)
        };
        drop(dependents);
        if !held {
            self.drop_finalizer(call, key, name);
        }
    }

    /// Deletes a dependent whose owners are gone, or drops the references to owners that are gone.
    fn collect(&mut self, call: &mut Call, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        if is_deleting(&object) {
            return;
        }
        let references = items(&object, "/metadata/ownerReferences");
        let states: BTreeMap<&str, Owner> = references
            .iter()
            .map(|reference| (text(reference, "/uid"), self.owner(reference, &key.namespace)))
            .collect();
        let has = |state: Owner| states.values().any(|found| *found == state);
        let gone: Vec<&str> = states
            .iter()
            .filter(|(_, state)| **state != Owner::Present)
            .map(|(uid, _)| *uid)
            .collect();
        if has(Owner::Present) {
            if !gone.is_empty() {
                self.drop_references(call, key, &gone);
            }
            return;
        }
        let uid = text(&object, "/metadata/uid");
        let version = text(&object, "/metadata/resourceVersion");
        let names = finalizers(&object);
        let policy = if has(Owner::Waiting) && self.has_dependents(uid) {
            "Foreground"
        } else if names.contains(&ORPHAN) {
            "Orphan"
        } else if names.contains(&FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
        let options = json!({
            "propagationPolicy": policy, "preconditions": {"uid": uid, "resourceVersion": version},
        });
        self.remove(call, key, &options);
    }

    fn has_dependents(&self, uid: &str) -> bool {
        self.dependents(uid).next().is_some()
    }

    /// Looks the owner of a reference up: in the namespace of the dependent if its kind has namespaces.
    fn owner(&self, reference: &Value, namespace: &str) -> Owner {
        let (group, version) = text(reference, "/apiVersion")
            .split_once('/')
            .unwrap_or(("", text(reference, "/apiVersion")));
        let Some(resource) = self.resource_of_kind(group, version, text(reference, "/kind")) else {
            // The collector keeps dependents of kinds that it does not know.
            return Owner::Present;
        };
        let key = Key {
            group: resource.group.clone(),
            plural: resource.plural.clone(),
            namespace: if resource.namespaced {
                namespace.to_owned()
            } else {
                String::new()
            },
            name: text(reference, "/name").to_owned(),
        };
        match self.store.get(&key) {
            Some(owner) if text(owner, "/metadata/uid") == text(reference, "/uid") => {
                if is_deleting(owner) && finalizers(owner).contains(&FOREGROUND) {
                    Owner::Waiting
                } else {
                    Owner::Present
                }
            }
            _ => Owner::Absent,
        }
    }

    fn drop_references(&mut self, call: &mut Call, key: &Key, uids: &[&str]) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        let mut new = Value::clone(&object);
        let kept: Vec<Value> = items(&object, "/metadata/ownerReferences")
            .iter()
            .filter(|reference| !uids.contains(&text(reference, "/uid")))
            .cloned()
            .collect();
        if kept.is_empty() {
            metadata(&mut new).remove("ownerReferences");
        } else {
            metadata(&mut new).insert("ownerReferences".into(), Value::Array(kept));
        }
        self.write(call, key, "", new);
    }

    fn drop_finalizer(&mut self, call: &mut Call, key: &Key, name: &str) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        let mut new = Value::clone(&object);
        let kept: Vec<&str> = finalizers(&object)
            .into_iter()
            .filter(|found| *found != name)
            .collect();
        if kept.is_empty() {
            metadata(&mut new).remove("finalizers");
        } else {
            metadata(&mut new).insert("finalizers".into(), json!(kept));
        }
        self.write(call, key, "", new);
    }
}

/// Returns the owner reference to a uid.
fn refers<'a>(object: &'a Value, uid: &str) -> Option<&'a Value> {
    items(object, "/metadata/ownerReferences")
        .iter()
        .find(|reference| text(reference, "/uid") == uid)
}
