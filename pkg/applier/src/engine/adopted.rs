//! Marks and owner references of a former owner, which an adopted object loses after its apply. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olm_api::keys;
use serde_json::{Value, json};

use super::Id;
use crate::custom_resources::is_kept;
use crate::ownership::Identity;

/// Returns the change that an object with this metadata needs after its apply, bound to the state that was read; `None` if it needs none.
///
/// - A label of an object that was kept comes off last: without the label, a crash before the adoption would leave a collision.
/// - The extension as owner, from upstream's Helm runtime, goes. The garbage collector would delete the object with the extension, even if
///   the removal keeps it. An apply cannot remove the extension while it is the controller: another field manager named it.
pub(super) fn after_apply(id: &Id, meta: &ObjectMeta, identity: &Identity) -> Option<Value> {
    let mut change = json!({"uid": meta.uid});
    let kept = id.can_stay() && is_kept(meta);
    if kept {
        change["labels"] = json!({keys::KEPT_FROM_LABEL: null});
    }
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let of_helm = owners.iter().any(|owner| identity.is_extension(owner));
    if of_helm {
        let others: Vec<_> = owners
            .iter()
            .filter(|owner| !identity.is_extension(owner))
            .collect();
        change["ownerReferences"] = json!(others);
        // The list is replaced as a whole, so it must be the one that was read.
        change["resourceVersion"] = json!(meta.resource_version);
    }
    (kept || of_helm).then(|| json!({ "metadata": change }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: &str, meta: &Value) -> Option<Value> {
        let id = Id::of(&json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}));
        after_apply(
            &id,
            &serde_json::from_value(meta.clone()).unwrap(),
            &Identity::second(),
        )
    }

    #[test]
    fn the_extension_as_owner_goes_and_others_stay() {
        let owner = |kind: &str, name: &str| json!({"apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": name, "uid": name});
        let meta = |owners: &[Value]| json!({"uid": "u", "resourceVersion": "7", "ownerReferences": owners});
        let (revision, another) = (owner("ClusterObjectSet", "x-2"), owner("ClusterExtension", "y"));
        let owners = [revision.clone(), owner("ClusterExtension", "x"), another.clone()];
        let found = change("ConfigMap", &meta(&owners)).unwrap();
        let expected = json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": [&revision, &another]}});
        assert_eq!(found, expected);
        assert_eq!(change("ConfigMap", &meta(&[revision, another])), None);
        assert_eq!(change("ConfigMap", &json!({})), None);
    }

    #[test]
    fn the_label_of_a_kept_object_goes() {
        let meta = json!({"uid": "u", "resourceVersion": "7", "labels": {keys::KEPT_FROM_LABEL: "x"}});
        let expected = json!({"metadata": {"uid": "u", "labels": {keys::KEPT_FROM_LABEL: null}}});
        assert_eq!(change("Namespace", &meta), Some(expected));
        assert_eq!(
            change("ConfigMap", &meta),
            None,
            "only CRDs and namespaces are kept"
        );
    }
}
