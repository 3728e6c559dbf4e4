//! Plan of the migration of a CRD's custom resources to its storage version. Pure.

use serde_json::Value;

/// Migration of the custom resources of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Migration {
    /// API group.
    pub(crate) group: String,
    /// Plural name.
    pub(crate) plural: String,
    /// Served version for reads and writes: the storage version if it is served.
    pub(crate) version: String,
    /// Storage version.
    pub(crate) storage: String,
    /// Versions of `status.storedVersions` that the migration removes.
    pub(crate) removed: Vec<String>,
}

/// Returns the migration of `crd`.
///
/// # Errors
/// The CRD has no storage version or serves no version; the text says so.
pub(crate) fn plan(crd: &Value) -> Result<Migration, String> {
    let text = |pointer: &str| {
        crd.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let versions: Vec<&Value> = versions.into_iter().flatten().collect();
    let has = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool) == Some(true);
    let name = |version: &Value| {
        version
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let storage = versions.iter().find(|version| has(version, "storage"));
    let storage = storage
        .map(|version| name(version))
        .ok_or("it has no storage version")?;
    let mut served: Vec<String> = versions
        .iter()
        .filter(|version| has(version, "served"))
        .map(|version| name(version))
        .collect();
    served.sort_by_key(|version| *version != storage);
    let version = served.into_iter().next().ok_or(
        "none of its versions is served, so its custom resources can be neither read nor written; serve one first",
    )?;
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array);
    let removed = stored
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|stored| *stored != storage)
        .map(ToOwned::to_owned)
        .collect();
    Ok(Migration {
        group: text("/spec/group"),
        plural: text("/spec/names/plural"),
        version,
        storage,
        removed,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
            .collect();
        json!({"spec": {"group": "example.com", "names": {"plural": "kites"}, "versions": versions},
            "status": {"storedVersions": stored}})
    }

    #[test]
    fn objects_move_to_the_storage_version() {
        let both = plan(&crd(
            &[("v1alpha1", true, false), ("v1", true, true)],
            &["v1alpha1", "v1"],
        ))
        .unwrap();
        assert_eq!((both.version.as_str(), both.storage.as_str()), ("v1", "v1"));
        assert_eq!(both.removed, ["v1alpha1"]);
        let hidden = plan(&crd(&[("v1alpha1", true, false), ("v1", false, true)], &["v1"])).unwrap();
        assert_eq!(
            (hidden.version.as_str(), hidden.storage.as_str()),
            ("v1alpha1", "v1")
        );
        assert!(hidden.removed.is_empty());
    }

    #[test]
    fn impossible_migrations_are_refused() {
        let unserved = plan(&crd(&[("v1", false, true)], &["v1"])).unwrap_err();
        assert!(
            unserved.starts_with("none of its versions is served"),
            "{unserved}"
        );
        assert_eq!(plan(&json!({})).unwrap_err(), "it has no storage version");
    }
}
