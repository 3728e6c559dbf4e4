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

    #[test]
    fn a_catalogs_properties_become_those_of_the_bundle() {
        let property = Property {
            type_: "certified".to_owned(),
            value: json!(true),
        };
        let bundle = InstalledBundle::with("blue".into(), &"1.2.0".into(), &[property]).unwrap();
        assert_eq!(
            bundle.properties,
            [
                json!({"type": "certified", "value": true}),
                json!({"type": "olm.package", "value": {"packageName": "blue", "version": "1.2.0"}}),
            ]
        );
    }

    fn gvk(group: &str, version: &str, kind: &str) -> Gvk {
        Gvk {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    fn properties(types: &[(&str, Value)]) -> Vec<Property> {
        let property = |(type_, value): &(&str, Value)| Property {
            type_: (*type_).to_owned(),
            value: value.clone(),
        };
        types.iter().map(property).collect()
    }

    #[test]
    fn apis_are_those_of_every_level() {
        let one = |kind: &str| json!({"gvk": {"group": "example.com", "version": "v1", "kind": kind}});
        let some = |kind: &str, list: Value| json!({kind: {"constraints": list}});
        let package = json!({"package": {"name": "blue", "versionRange": ">=1.0.0"}});
        let nested = some(
            "all",
            json!([
                some("any", json!([one("A"), package])),
                some("not", json!([one("B")]))
            ]),
        );
        let core = json!({"version": "v1", "kind": "Pod"});
        let needs = properties(&[
            ("olm.constraint", nested),
            ("olm.constraint", json!({"cel": {"rule": "true"}})),
            ("olm.gvk.required", core),
        ]);
        let requirements = super::super::parse(&needs).unwrap();
        assert_eq!(
            required_apis(&requirements),
            [
                gvk("", "v1", "Pod"),
                gvk("example.com", "v1", "A"),
                gvk("example.com", "v1", "B")
            ]
            .into()
        );
        let groups = [("", "v1"), ("example.com", "v1")];
        assert_eq!(
            group_versions(&requirements),
            groups
                .map(|(group, version)| (group.to_owned(), version.to_owned()))
                .into()
        );
        let many: Vec<_> = (0..200)
            .map(|at| {
                (
                    "olm.gvk.required",
                    json!({"version": format!("v{at}"), "kind": "A"}),
                )
            })
            .collect();
        let many = super::super::parse(&properties(&many)).unwrap();
        assert_eq!(group_versions(&many).len(), MAX_GROUP_VERSIONS);
    }

    #[test]
    fn provided_apis_are_whole() {
        let api =
            |type_: &'static str, kind: &str| (type_, json!({"group": "g", "version": "v1", "kind": kind}));
        let all = properties(&[
            api("olm.gvk", "A"),
            api("olm.gvk.required", "B"),
            ("olm.gvk", json!({"version": "v1", "kind": "Pod"})),
            ("olm.gvk", json!({"group": "g", "kind": "C"})),
            ("olm.gvk", json!({"group": "g", "version": "v1"})),
        ]);
        let provided: Vec<Gvk> = provided_apis(&all).collect();
        assert_eq!(provided, [gvk("g", "v1", "A"), gvk("", "v1", "Pod")]);
        let served: Vec<Gvk> = apis("g", "v1", vec!["A".to_owned(), "B".to_owned()]).collect();
        assert_eq!(served, [gvk("g", "v1", "A"), gvk("g", "v1", "B")]);
    }
}
