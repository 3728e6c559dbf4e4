//! Stored versions that a new CRD lacks, and the steps to migrate their objects.

use olm_text::object::{metadata_name, text};
use serde_json::{Value, json};

use super::{Finding, STORED_REMOVAL, crd_wide, is, versions as versions_of};

/// Returns the versions in which objects may be stored, from the status of a CRD.
pub(super) fn versions(crd: &Value) -> impl Iterator<Item = &str> {
    let listed = crd.pointer("/status/storedVersions").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the stored versions of `old` that `new` lacks.
fn removed<'a>(old: &'a Value, new: &Value) -> Vec<&'a str> {
    let present = versions_of(new);
    versions(old)
        .filter(|version| !present.contains_key(version))
        .collect()
}

/// Returns the finding if objects may be stored in a removed version.
pub(super) fn finding(old: &Value, new: &Value) -> Option<Finding> {
    let removed = removed(old, new);
    let message = format!("stored versions removed : [{}]", removed.join(" "));
    (!removed.is_empty()).then(|| crd_wide(STORED_REMOVAL, message))
}

/// Returns the steps that lead to an upgrade from `old` to `new` that removes no stored version; `None` if it removes
/// none.
///
/// The API server stores an object that is written again in the storage version, even if nothing else changes. It never
/// shortens `status.storedVersions` by itself.
pub fn migration(old: &Value, new: &Value) -> Option<String> {
    let removed = removed(old, new);
    let named = removed.join(" and ");
    if removed.is_empty() {
        return None;
    }
    let (group, plural) = (text(old, "/spec/group"), text(old, "/spec/names/plural"));
    let crd = metadata_name(old);
    let all = versions_of(old);
    let with = |key: &'static str| all.iter().filter(move |(_, version)| is(version, key));
    let (storage, _) = with("storage").next()?;
    if removed.contains(storage) {
        return Some(format!(
            "Objects are still stored in {storage}: first upgrade to a bundle version whose CRD keeps {storage} and stores \
             objects in a version that stays"
        ));
    }
    let read = with("served").find(|(name, _)| name == &storage);
    let (read, _) = read.or_else(|| with("served").next())?;
    let left: Vec<&str> = versions(old).filter(|name| !removed.contains(name)).collect();
    let patch = json!({"status": {"storedVersions": left}});
    Some(format!(
        "Objects may be stored in {named}. 1. Store all objects in {storage}: \
         `kubectl get {plural}.{read}.{group} -A -o json | kubectl replace -f -`. \
         2. Remove {named} from status.storedVersions: `kubectl patch crd {crd} --subresource=status --type=merge -p '{patch}'`. \
         3. The upgrade continues automatically within two minutes. `kubectl olm crd migrate {crd}` does 1 and 2"
    ))
}

#[cfg(test)]
mod tests {
    use super::migration;
    use crate::crd_safety::tests::crd_with_versions as crd;

    #[test]
    fn migration_steps_are_named() {
        let new = crd(&[("v1", true, true)], &[]);
        let old = crd(
            &[("v1alpha1", true, false), ("v1", true, true)],
            &["v1alpha1", "v1"],
        );
        assert_eq!(
            migration(&old, &new).unwrap(),
            "Objects may be stored in v1alpha1. 1. Store all objects in v1: \
             `kubectl get tests.v1.example.com -A -o json | kubectl replace -f -`. \
             2. Remove v1alpha1 from status.storedVersions: `kubectl patch crd tests.example.com --subresource=status --type=merge \
             -p '{\"status\":{\"storedVersions\":[\"v1\"]}}'`. 3. The upgrade continues automatically within two minutes. \
             `kubectl olm crd migrate tests.example.com` does 1 and 2"
        );
        // The storage version need not be served.
        let old = crd(&[("v1", false, true), ("v2", true, false)], &["v0", "v1"]);
        let text = migration(&old, &new).unwrap();
        assert!(
            text.contains("Store all objects in v1: `kubectl get tests.v2.example.com -A"),
            "{text}"
        );
    }

    #[test]
    fn a_storage_version_has_to_be_replaced_first() {
        let new = crd(&[("v1", true, true)], &[]);
        let old = crd(&[("v1alpha1", true, true), ("v1", true, false)], &["v1alpha1"]);
        assert_eq!(
            migration(&old, &new).unwrap(),
            "Objects are still stored in v1alpha1: first upgrade to a bundle version whose CRD keeps v1alpha1 and stores \
             objects in a version that stays"
        );
    }

    #[test]
    fn no_migration_without_removed_versions() {
        let crd = crd(&[("v1", true, true)], &["v1"]);
        assert_eq!(migration(&crd, &crd), None);
    }
}
