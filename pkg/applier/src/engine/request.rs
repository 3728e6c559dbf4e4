//! Body of the request that applies an object. Pure.

use kube::api::DynamicObject;
use olm_api::API_VERSION;
use serde_json::{Value, json};

use super::PreparedObject;
use crate::ownership::Identity;

/// Resource version that no object has: etcd's first write has revision 2.
///
/// An apply with this version creates an absent object, and fails with a conflict if somebody created the object after it was
/// read. Without a version, it would take the object from a newer revision: both write as the same field manager.
pub const NO_OBJECTS_VERSION: &str = "1";

/// Returns the request body: with this revision's controller reference, other owners as plain owners, and bound to
/// the state that was read, be it that there is no object.
pub(super) fn request_body(
    item: &PreparedObject,
    live: Option<&DynamicObject>,
    identity: &Identity,
) -> Value {
    let mut body = item.desired.clone();
    let mut owners = vec![json!({
        "apiVersion": API_VERSION, "kind": "ClusterObjectSet", "name": identity.name, "uid": identity.uid,
        "controller": true, "blockOwnerDeletion": true,
    })];
    if let Some(live) = live {
        for owner in live.metadata.owner_references.iter().flatten() {
            let sibling = identity.siblings.iter().any(|s| s.uid == owner.uid);
            if owner.uid != identity.uid && (owner.controller == Some(true) || sibling) {
                owners.push(json!({
                    "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid,
                    "controller": false, "blockOwnerDeletion": owner.block_owner_deletion.unwrap_or(false),
                }));
            }
        }
    }
    if let Some(meta) = body.get_mut("metadata") {
        match live {
            Some(live) => {
                meta["resourceVersion"] = json!(live.metadata.resource_version);
                meta["uid"] = json!(live.metadata.uid);
            }
            None => meta["resourceVersion"] = json!(NO_OBJECTS_VERSION),
        }
        meta["ownerReferences"] = Value::Array(owners);
    }
    body
}

#[cfg(test)]
mod tests {
    use olm_api::CollisionProtection;

    use super::*;

    fn body(live: Option<&Value>) -> Value {
        let desired =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
        let item = PreparedObject::new(desired, CollisionProtection::Prevent, "x", 2);
        let live = live.map(|live| serde_json::from_value::<DynamicObject>(live.clone()).unwrap());
        request_body(&item, live.as_ref(), &Identity::second())
    }

    #[test]
    fn a_request_is_bound_to_what_was_read() {
        assert_eq!(body(None)["metadata"]["resourceVersion"], "1");
        assert_eq!(body(None)["metadata"]["uid"], Value::Null);
        let live = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}});
        let body = body(Some(&live));
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["metadata"]["uid"], "u");
    }

    #[test]
    fn controllers_and_siblings_stay_as_plain_owners() {
        let owner = |uid: &str, controller: bool| json!({"apiVersion": "v1", "kind": "K", "name": uid, "uid": uid, "controller": controller});
        let owners = json!([owner("old", false), owner("other", true), owner("plain", false)]);
        let body = body(Some(
            &json!({"metadata": {"name": "a", "ownerReferences": owners}}),
        ));
        let found: Vec<(&str, bool)> = body["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|owner| (owner["uid"].as_str().unwrap(), owner["controller"] == true))
            .collect();
        // Owners of other field managers are not this request's to name.
        assert_eq!(found, [("us", true), ("old", false), ("other", false)]);
    }
}
