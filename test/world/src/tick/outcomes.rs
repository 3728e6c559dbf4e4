//! All outcomes of a garbage collection.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::store::Key;
use crate::value::{finalizers, is_deleting, items, text};
use crate::world::{Call, World};

/// State of an object that the garbage collector can change.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    key: Arc<Key>,
    deleting: bool,
    finalizers: Vec<String>,
    owners: Vec<String>,
}

impl World {
    /// Returns the worlds in which the garbage collector can come to rest, at least one: its workers take the objects in any order,
    /// and which owners an object loses before it is deleted depends on that order. Other controllers do nothing. After `limit`
    /// states on the way, the outcomes so far are returned.
    pub fn outcomes(&self, now: Timestamp, limit: usize) -> Vec<Self> {
        let mut seen = BTreeSet::from([self.shapes()]);
        let mut open = vec![self.clone()];
        let mut out = Vec::new();
        while let Some(world) = open.pop() {
            let mut rests = true;
            for work in world.works() {
                let mut next = world.clone();
                let mut call = Call::of_control_plane("garbage-collector", now);
                next.work(&mut call, &work);
                if call.changes.is_empty() {
                    continue;
                }
                rests = false;
                if seen.len() < limit && seen.insert(next.shapes()) {
                    open.push(next);
                }
            }
            if rests {
                out.push(world);
            }
        }
        out
    }

    fn shapes(&self) -> Vec<Shape> {
        let owned = |values: &[serde_json::Value]| {
            let uids = values.iter().map(|owner| text(owner, "/uid").to_owned());
            uids.collect()
        };
        let all = self.store.all();
        all.map(|(key, object)| Shape {
            key: Arc::clone(key),
            deleting: is_deleting(object),
            finalizers: finalizers(object).into_iter().map(str::to_owned).collect(),
            owners: owned(items(object, "/metadata/ownerReferences")),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use olm_proof::Actor;
    use serde_json::{Value, json};

    use crate::{Request, World};

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn send(world: &mut World, method: &str, path: &str, body: &Value) {
        let request = Request::new(Actor::Other("user".into()), method, path).with_body(body);
        world.handle(&request, Timestamp::UNIX_EPOCH);
    }

    /// Creates a config map with owners, and an own finalizer if it is held.
    fn create(world: &mut World, name: &str, owners: &[&str], held: bool) {
        let references = owners.iter().map(|owner| {
            let uid = owned(world, owner)["metadata"]["uid"].clone();
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true})
        });
        let mut metadata = json!({"name": name, "ownerReferences": references.collect::<Vec<_>>()});
        if held {
            metadata["finalizers"] = json!(["example.com/f"]);
        }
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        send(world, "POST", MAPS, &body);
    }

    fn owned<'a>(world: &'a World, name: &str) -> &'a Value {
        let mut all = world.objects();
        all.find(|(key, _)| key.plural == "configmaps" && key.name == name)
            .map(|(_, object)| &**object)
            .unwrap()
    }

    /// Returns the names of the owners that a config map has in each outcome, sorted.
    fn owners(outcomes: &[World], name: &str) -> Vec<String> {
        let names = |world: &World| {
            let references = owned(world, name)["metadata"]["ownerReferences"].clone();
            let references = references.as_array().cloned().unwrap_or_default();
            let names = references
                .iter()
                .map(|owner| owner["name"].as_str().unwrap_or_default().to_owned());
            names.collect::<Vec<_>>().join(",")
        };
        let mut out: Vec<String> = outcomes.iter().map(names).collect();
        out.sort();
        out
    }

    /// Returns a world in which `a` owns `b`, and both own `c`, which is held.
    fn triangle() -> World {
        let mut world = World::with_olm_crds();
        create(&mut world, "a", &[], false);
        create(&mut world, "b", &["a"], false);
        create(&mut world, "c", &["a", "b"], true);
        world
    }

    #[test]
    fn a_dependent_keeps_an_owner_or_loses_it_while_the_other_one_stays() {
        let mut world = triangle();
        let options = json!({"propagationPolicy": "Foreground"});
        send(&mut world, "DELETE", &format!("{MAPS}/a"), &options);
        let outcomes = world.outcomes(Timestamp::UNIX_EPOCH, 1000);
        assert_eq!(owners(&outcomes, "c"), ["a,b", "b"]);
        let mut settled = world.clone();
        settled.settle(Timestamp::UNIX_EPOCH, 50);
        assert!(owners(&outcomes, "c").contains(&owners(&[settled], "c")[0]));
    }

    #[test]
    fn an_owner_that_orphans_goes_after_its_dependents_have_lost_it() {
        let mut world = triangle();
        let options = json!({"propagationPolicy": "Orphan"});
        send(&mut world, "DELETE", &format!("{MAPS}/a"), &options);
        let outcomes = world.outcomes(Timestamp::UNIX_EPOCH, 1000);
        assert_eq!(owners(&outcomes, "c"), ["b"]);
        assert_eq!(owners(&outcomes, "b"), [""]);
        assert!(outcomes[0].objects().all(|(key, _)| key.name != "a"));
    }

    #[test]
    fn a_world_at_rest_is_its_only_outcome() {
        let outcomes = triangle().outcomes(Timestamp::UNIX_EPOCH, 1000);
        assert_eq!(owners(&outcomes, "c"), ["a,b"]);
    }

    #[test]
    fn the_limit_ends_the_search() {
        let mut world = triangle();
        let options = json!({"propagationPolicy": "Foreground"});
        send(&mut world, "DELETE", &format!("{MAPS}/a"), &options);
        assert!(world.outcomes(Timestamp::UNIX_EPOCH, 2).len() < 2);
    }
}
