//! Work of the control plane beside the API server: garbage collection, namespaces that terminate, CRDs.

mod crds;
mod garbage;
mod namespaces;
mod outcomes;

use jiff::Timestamp;
use olm_proof::Change;
use serde_json::Value;

use crate::store::Key;
use crate::world::{Call, Target, World};

impl World {
    /// Runs the control plane's controllers once over all objects, and returns their changes. No change means that they
    /// have nothing to do.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Change> {
        let mut call = Call::of_control_plane("crd-controller", now);
        self.tick_crds(&mut call);
        call.actor = olm_proof::Actor::Other("namespace-controller".into());
        self.tick_namespaces(&mut call);
        call.actor = olm_proof::Actor::Other("garbage-collector".into());
        self.tick_garbage(&mut call);
        call.changes
    }

    /// Runs the controllers until nothing is left to do; at most `limit` times.
    pub fn settle(&mut self, now: Timestamp, limit: usize) -> Vec<Change> {
        let mut out = Vec::new();
        for _ in 0..limit {
            let changes = self.tick(now);
            if changes.is_empty() {
                break;
            }
            out.extend(changes);
        }
        out
    }

    /// Returns the target of a stored object.
    fn target_of(&self, key: &Key, subresource: &str) -> Option<Target> {
        Some(Target {
            resource: self.resource_of(&key.group, &key.plural)?,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: subresource.to_owned(),
        })
    }

    /// Writes a new state of an object, as an update does.
    fn write(&mut self, call: &mut Call, key: &Key, subresource: &str, new: Value) {
        let Some(target) = self.target_of(key, subresource) else {
            return;
        };
        let Some(live) = self.store.get(key).cloned() else {
            return;
        };
        // A refused write is tried again at the next tick.
        let _ = self.replace(call, &target, &live, new, crate::write::Origin::Update);
    }

    /// Deletes an object with options.
    fn remove(&mut self, call: &mut Call, key: &Key, options: &Value) {
        let Some(target) = self.target_of(key, "") else {
            return;
        };
        // A refused deletion is tried again at the next tick.
        let _ = self.delete(call, &target, options.to_string().as_bytes());
    }
}
