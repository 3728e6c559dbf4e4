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

impl World {
    pub(super) fn tick_garbage(&mut self, call: &mut Call) {
        let owned: Vec<Arc<Key>> = self
            .store
            .all()
            .filter(|(_, object)| !items(object, "/metadata/ownerReferences").is_empty())
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for key in owned {
            self.collect(call, &key);
        }
        // The real collector queues the dependents of an owner before the owner.
        self.finish_owners(call);
    }

    /// Lets go of owners whose finalizer is the garbage collector's.
    fn finish_owners(&mut self, call: &mut Call) {
        let held: Vec<(Arc<Key>, Arc<Value>)> = self
            .store
            .all()
            .filter(|(_, object)| {
                is_deleting(object)
                    && finalizers(object)
                        .iter()
                        .any(|name| *name == ORPHAN || *name == FOREGROUND)
            })
            .map(|(key, object)| (Arc::clone(key), Arc::clone(object)))
            .collect();
        for (key, object) in held {
            let uid = text(&object, "/metadata/uid").to_owned();
            let dependents: Vec<Arc<Key>> = self
                .store
                .all()
                .filter(|(_, dependent)| refers(dependent, &uid).is_some())
                .map(|(key, _)| Arc::clone(key))
                .collect();
            if finalizers(&object).contains(&ORPHAN) {
                for dependent in &dependents {
                    self.drop_references(call, dependent, &[uid.as_str()]);
                }
                self.drop_finalizer(call, &key, ORPHAN);
            } else {
                let blocking = dependents.iter().any(|dependent| {
                    self.store
                        .get(dependent)
                        .and_then(|dependent| refers(dependent, &uid).cloned())
                        .is_some_and(|reference| reference["blockOwnerDeletion"] == true)
                });
                if !blocking {
                    self.drop_finalizer(call, &key, FOREGROUND);
                }
            }
        }
    }

    /// Deletes a dependent whose owners are gone, or drops the references to owners that are gone.
    fn collect(&mut self, call: &mut Call, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        if is_deleting(&object) && !finalizers(&object).contains(&FOREGROUND) {
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
        if is_deleting(&object) {
            return;
        }
        let options = json!({
            "propagationPolicy": policy, "preconditions": {"uid": uid, "resourceVersion": version},
        });
        self.remove(call, key, &options);
    }

    fn has_dependents(&self, uid: &str) -> bool {
        self.store.all().any(|(_, object)| refers(object, uid).is_some())
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
