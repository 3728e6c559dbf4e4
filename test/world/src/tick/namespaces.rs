//! Namespaces that terminate.

use std::sync::Arc;

use serde_json::json;

use crate::store::Key;
use crate::value::{child, is_deleting, items};
use crate::world::{Call, World};

impl World {
    pub(super) fn tick_namespaces(&mut self, call: &mut Call) {
        let terminating: Vec<Arc<Key>> = self
            .store
            .list("", "namespaces", None)
            .filter(|(_, namespace)| {
                is_deleting(namespace) && !items(namespace, "/spec/finalizers").is_empty()
            })
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for key in terminating {
            let content: Vec<(Arc<Key>, bool)> = self
                .store
                .all()
                .filter(|(object, _)| object.namespace == key.name)
                .map(|(object, value)| (Arc::clone(object), is_deleting(value)))
                .collect();
            for (object, _) in content.iter().filter(|(_, deleting)| !deleting) {
                self.remove(call, object, &json!({"propagationPolicy": "Background"}));
            }
            let left = self.store.all().any(|(object, _)| object.namespace == key.name);
            let Some(namespace) = self.store.get(&key).cloned() else {
                continue;
            };
            if !left {
                let mut new = (*namespace).clone();
                child(&mut new, "spec").remove("finalizers");
                self.write(call, &key, "finalize", new);
            }
        }
    }
}
