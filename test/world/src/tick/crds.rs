//! CRDs: establishment and termination.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::store::Key;
use crate::value::{as_map, child, finalizers, is_deleting, items, metadata, text};
use crate::world::{Call, World};
use crate::write::CRD_CLEANUP;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

impl World {
    pub(super) fn tick_crds(&mut self, call: &mut Call) {
        let all: Vec<(Arc<Key>, Arc<Value>)> = self
            .store
            .list(GROUP, PLURAL, None)
            .map(|(key, crd)| (Arc::clone(key), Arc::clone(crd)))
            .collect();
        for (key, crd) in all {
            if is_deleting(&crd) {
                self.announce_termination(call, &key, &crd);
                if let Some(crd) = self.store.get(&key).cloned() {
                    self.terminate_crd(call, &key, &crd);
                }
            } else if !has_condition(&crd, "Established") {
                self.establish(call, &key, &crd);
            }
        }
    }

    fn establish(&mut self, call: &mut Call, key: &Key, crd: &Value) {
        let mut new = crd.clone();
        let now = call.time();
        let names = crd["spec"]["names"].clone();
        let status = child(&mut new, "status");
        status.insert("acceptedNames".into(), names);
        status.insert(
            "conditions".into(),
            json!([
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": now, "reason": "NoConflicts",
                 "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": now, "reason": "InitialNamesAccepted",
                 "message": "the initial names have been accepted"},
            ]),
        );
        self.write(call, key, "status", new);
    }

    /// Sets the condition that the custom resources of a CRD are being deleted.
    fn announce_termination(&mut self, call: &mut Call, key: &Key, crd: &Value) {
        if has_condition(crd, "Terminating") || !finalizers(crd).contains(&CRD_CLEANUP) {
            return;
        }
        let condition = json!({
            "type": "Terminating", "status": "True", "lastTransitionTime": call.time(),
            "reason": "InstanceDeletionInProgress", "message": "CustomResource deletion is in progress",
        });
        let mut new = crd.clone();
        let conditions = child(&mut new, "status")
            .entry("conditions")
            .or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.push(condition);
        }
        self.write(call, key, "status", new);
    }

    fn terminate_crd(&mut self, call: &mut Call, key: &Key, crd: &Value) {
        if !finalizers(crd).contains(&CRD_CLEANUP) {
            return;
        }
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        let left: Vec<Arc<Key>> = self
            .store
            .list(group, plural, None)
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for custom in &left {
            let deleting = self.store.get(custom).is_some_and(|object| is_deleting(object));
            if !deleting {
                self.remove(call, custom, &json!({}));
            }
        }
        if self.store.list(group, plural, None).next().is_some() {
            return;
        }
        let mut new = crd.clone();
        let rest: Vec<&str> = finalizers(crd)
            .into_iter()
            .filter(|name| *name != CRD_CLEANUP)
            .collect();
        let rest = json!(rest);
        if rest.as_array().is_some_and(Vec::is_empty) {
            metadata(&mut new).remove("finalizers");
        } else {
            metadata(&mut new).insert("finalizers".into(), rest);
        }
        as_map(&mut new);
        self.write(call, key, "", new);
    }
}

fn has_condition(crd: &Value, name: &str) -> bool {
    items(crd, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == name && condition["status"] == "True")
}
