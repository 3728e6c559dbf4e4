//! Installed packages and served APIs, built from what a cluster reports.

use std::collections::BTreeSet;

use olm_fbc::Property;
use olm_text::name::PackageName;
use olm_version::BundleVersion;
use serde_json::{Value, json};

use super::{Gvk, InstalledBundle, Requirement, Test};

/// Maximum number of group versions to ask a cluster for.
const MAX_GROUP_VERSIONS: usize = 128;

/// Returns the group versions of all APIs in `requirements`, at most 128, for discovery in a cluster.
pub fn group_versions(requirements: &[Requirement]) -> BTreeSet<(String, String)> {
    fn collect(requirements: &[Requirement], into: &mut BTreeSet<(String, String)>) {
        for requirement in requirements {
            match &requirement.test {
                Test::Gvk(gvk) => {
                    into.insert((gvk.group.clone(), gvk.version.clone()));
                }
                Test::All(all) | Test::Any(all) | Test::Not(all) => collect(all, into),
                Test::Package(_) | Test::Cel(_) => {}
            }
        }
    }
    let mut out = BTreeSet::new();
    collect(requirements, &mut out);
    out.into_iter().take(MAX_GROUP_VERSIONS).collect()
}

/// Returns all APIs in `requirements`.
pub fn required_apis(requirements: &[Requirement]) -> BTreeSet<Gvk> {
    let mut out = BTreeSet::new();
    for requirement in requirements {
        match &requirement.test {
            Test::Gvk(gvk) => drop(out.insert(gvk.clone())),
            Test::All(all) | Test::Any(all) | Test::Not(all) => out.extend(required_apis(all)),
            Test::Package(_) | Test::Cel(_) => {}
        }
    }
    out
}

/// Returns the APIs of these kinds in one version of a group.
pub fn apis(group: &str, version: &str, kinds: Vec<String>) -> impl Iterator<Item = Gvk> {
    kinds.into_iter().map(move |kind| Gvk {
        group: group.to_owned(),
        version: version.to_owned(),
        kind,
    })
}

/// Returns the APIs that a bundle provides according to its properties.
pub fn provided_apis(properties: &[Property]) -> impl Iterator<Item = Gvk> {
    properties.iter().filter_map(|property| {
        let text = |key: &str| {
            let found = property.value.get(key).and_then(Value::as_str);
            found.map(ToOwned::to_owned)
        };
        (property.type_ == "olm.gvk").then_some(())?;
        Some(Gvk {
            group: text("group").unwrap_or_default(),
            version: text("version")?,
            kind: text("kind")?,
        })
    })
}

impl InstalledBundle {
    /// Creates an installed bundle like [`new`](Self::new), with the properties of its catalog.
    pub fn with(package: PackageName, version: &BundleVersion, properties: &[Property]) -> Option<Self> {
        let values = properties
            .iter()
            .filter_map(|property| serde_json::to_value(property).ok());
        Self::new(package, version, values.collect())
    }

    /// Creates an installed bundle with its properties, including the package property that every bundle has. None if
    /// the version is invalid.
    pub fn new(package: PackageName, version: &BundleVersion, mut properties: Vec<Value>) -> Option<Self> {
        let parsed = version.parsed().ok()?.version.clone();
        let is_package =
            |property: &Value| property.get("type").and_then(Value::as_str) == Some("olm.package");
        if !properties.iter().any(is_package) {
            properties
                .push(json!({"type": "olm.package", "value": {"packageName": package, "version": version.as_str()}}));
        }
        Some(Self {
            package,
            version: parsed,
            properties,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_installed_bundle_has_a_package() {
        let bundle = InstalledBundle::new("blue".into(), &"1.2.0+3".into(), Vec::new()).unwrap();
        assert_eq!(bundle.version.to_string(), "1.2.0");
        assert_eq!(
            bundle.properties,
            [json!({"type": "olm.package", "value": {"packageName": "blue", "version": "1.2.0+3"}})]
        );
        let known =
            vec![json!({"type": "olm.package", "value": {"packageName": "blue", "version": "1.2.0"}})];
        let same = InstalledBundle::new("blue".into(), &"1.2.0".into(), known.clone()).unwrap();
        assert_eq!(same.properties, known);
        assert!(InstalledBundle::new("blue".into(), &"nonsense".into(), Vec::new()).is_none());
    }
}
