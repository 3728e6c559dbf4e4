//! The admission plugin `OwnerReferencesPermissionEnforcement`: who may name which owners.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::rbac::Right;
use crate::status::Refusal;
use crate::value::{items, text};
use crate::world::{Call, Target, World};

impl World {
    /// Refuses owners that the user may not name: changed ones of an object that the user may not delete, and new ones with
    /// `blockOwnerDeletion` whose finalizers the user may not change.
    pub(super) fn admit_owners(
        &self,
        call: &Call,
        target: &Target,
        live: Option<&Value>,
        new: &Value,
    ) -> Result<(), Refusal> {
        const OWNERS: &str = "/metadata/ownerReferences";
        let before = live.map_or(&[][..], |live| items(live, OWNERS));
        let after = items(new, OWNERS);
        // To take owners away is a change like any other.
        if before == after {
            return Ok(());
        }
        let refused = |why: &str| Err(Refusal::forbidden(&target.resource, &target.name, why));
        let delete = Right {
            verb: "delete",
            group: &target.resource.group,
            resource: target.resource.plural.clone(),
            namespace: &target.namespace,
            name: &target.name,
            path: "",
        };
        if live.is_some() && !self.allows(&call.user, &delete) {
            return refused("cannot set an ownerRef on a resource you can't delete");
        }
        let blocking = |owner: &&Value| owner["blockOwnerDeletion"] == true;
        let blocked: BTreeSet<&str> = before
            .iter()
            .filter(blocking)
            .map(|owner| text(owner, "/uid"))
            .collect();
        for owner in after
            .iter()
            .filter(blocking)
            .filter(|owner| !blocked.contains(text(owner, "/uid")))
        {
            let version = text(owner, "/apiVersion");
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let Some(resource) = self.resource_of_kind(group, version, text(owner, "/kind")) else {
                return refused("cannot set blockOwnerDeletion, because the kind of the owner is unknown");
            };
            let finalizers = Right {
                verb: "update",
                group: &resource.group,
                resource: format!("{}/finalizers", resource.plural),
                namespace: if resource.namespaced {
                    &target.namespace
                } else {
                    ""
                },
                name: text(owner, "/name"),
                path: "",
            };
            if !self.allows(&call.user, &finalizers) {
                return refused("cannot set blockOwnerDeletion on an owner whose finalizers you can't set");
            }
        }
        Ok(())
    }
}
