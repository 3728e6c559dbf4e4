//! Rights that a change adds and removes.

use olm_bundle::permissions::{PermissionOptions, RequiredRule, gained, granted_rules, required_rules};
use serde_json::Value;

use crate::model::{Right, Rights, RightsChange};
use crate::objects::Desired;

/// Maximum number of named rules of each list.
const NAMED: usize = 200;

/// Compares the rights of both sides.
pub(crate) fn compare(before: &Desired, after: &Desired) -> Rights {
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
    Rights {
        bundle: change(&granted_rules(&before), &granted_rules(&after)),
        installer: change(&needed(&before), &needed(&after)),
    }
}

fn change(before: &[RequiredRule], after: &[RequiredRule]) -> RightsChange {
    let (added, more_gained) = named(gained(before, after));
    let (removed, more_lost) = named(gained(after, before));
    RightsChange {
        gained: added,
        lost: removed,
        more_gained,
        more_lost,
    }
}

fn named(rules: Vec<RequiredRule>) -> (Vec<Right>, usize) {
    let more = rules.len().saturating_sub(NAMED);
    (rules.into_iter().take(NAMED).map(Right::from).collect(), more)
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
