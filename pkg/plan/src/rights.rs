//! Rights that a change adds and removes.

use std::collections::BTreeSet;

use olm_bundle::permissions::{
    Grant, Holder, HolderKind, PermissionOptions, RequiredRule, gained, gained_grants, grants, required_rules,
};
use olm_text::object::{ObjectId, text};
use serde_json::Value;

use crate::model::{Right, Rights, RightsChange};
use crate::objects::Desired;

/// Maximum number of named rules of each list.
const NAMED: usize = 200;

/// Compares the rights of both sides.
pub(crate) fn compare(before: &Desired, after: &Desired) -> Rights {
    let own = single_account(before.values().chain(after.values()));
    let (before, after): (Vec<Value>, Vec<Value>) = (
        before.values().cloned().collect(),
        after.values().cloned().collect(),
    );
    let needed = |objects: &[Value]| {
        let options = PermissionOptions {
            owner: Some(""),
            ..PermissionOptions::default()
        };
        if objects.is_empty() {
            Vec::new()
        } else {
            required_rules(objects, &options)
        }
    };
    let (old, new) = (grants(&before), grants(&after));
    let (added, removed) = (gained_grants(&old, &new), gained_grants(&new, &old));
    let own = own.filter(|own| only_account(own, added.iter().chain(&removed)));
    let shown = |grants: Vec<Grant>| {
        let rights = grants.into_iter().map(|grant| held(grant, own.as_ref()));
        rights.collect()
    };
    let (old_needs, new_needs) = (needed(&before), needed(&after));
    let lacked =
        |before: &[RequiredRule], after| gained(before, after).into_iter().map(Right::from).collect();
    Rights {
        bundle: change(shown(added), shown(removed)),
        installer: change(lacked(&old_needs, &new_needs), lacked(&new_needs, &old_needs)),
    }
}

/// Returns the service account of both sides if they have only one.
fn single_account<'a>(objects: impl Iterator<Item = &'a Value>) -> Option<Holder> {
    let accounts = objects.filter(|object| ObjectId::of(object).group.is_empty());
    let mut accounts = accounts.filter(|object| text(object, "/kind") == "ServiceAccount");
    let id = ObjectId::of(accounts.next()?);
    let same =
        |other: &Value| (ObjectId::of(other).namespace, ObjectId::of(other).name) == (id.namespace, id.name);
    accounts.all(same).then(|| Holder::account(id.namespace, id.name))
}

/// Returns true if no other service account holds one of the rights. The rights of `own` are then clear without its name.
fn only_account<'a>(own: &Holder, mut grants: impl Iterator<Item = &'a Grant>) -> bool {
    let is_other = |holder: &Holder| holder.kind == HolderKind::ServiceAccount && holder != own;
    !grants.any(|grant| grant.holders.iter().any(is_other))
}

/// Names the holders of a right, unless it is `own` alone.
fn held(grant: Grant, own: Option<&Holder>) -> Right {
    let is_own = grant.holders.len() == 1 && grant.holders.first() == own;
    Right {
        subjects: if is_own { BTreeSet::new() } else { grant.holders },
        ..Right::from(grant.right)
    }
}

fn change(gained: Vec<Right>, lost: Vec<Right>) -> RightsChange {
    let (gained, more_gained) = named(gained);
    let (lost, more_lost) = named(lost);
    RightsChange {
        gained,
        lost,
        more_gained,
        more_lost,
    }
}

fn named(mut rights: Vec<Right>) -> (Vec<Right>, usize) {
    let more = rights.len().saturating_sub(NAMED);
    rights.truncate(NAMED);
    (rights, more)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::desired;

    #[test]
    fn an_installer_needs_rights_to_own_what_it_installs() {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "namespace": "ns"}});
        let rights = compare(&Desired::default(), &desired(vec![object]));
        assert_eq!(rights.bundle, RightsChange::default());
        let gained = rights.installer.gained.iter();
        let gained: Vec<String> = gained.map(ToString::to_string).collect();
        let owns = |right: &String| right.contains("clusterobjectsets/finalizers");
        assert!(gained.iter().any(owns), "{gained:?}");
    }
}
