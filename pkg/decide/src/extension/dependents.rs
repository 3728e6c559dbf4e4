//! Installed extensions that an upgrade or deletion of another one would break.

use std::collections::BTreeSet;

use olm_fbc::Property;
use olm_resolve::constraint::{self, Environment, InstalledBundle, Requirement};
use olm_text::name::PackageName;
use olm_version::BundleVersion;

/// Longest phrase about what one dependent needs, in bytes.
const PHRASE_LIMIT: usize = 240;
/// Most dependents that a message names.
const NAMED: usize = 3;

/// Installed bundle of an extension, with its properties in its catalog.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Bundle as constraints see it.
    pub bundle: InstalledBundle,
    /// Properties, with the APIs and constraints.
    pub properties: Vec<Property>,
}

impl Provider {
    /// Creates a provider from the properties of its bundle in the catalog. `None` if the version is invalid.
    pub fn new(package: PackageName, version: &BundleVersion, properties: Vec<Property>) -> Option<Self> {
        Some(Self {
            bundle: InstalledBundle::with(package, version, &properties)?,
            properties,
        })
    }
}

/// Another extension and its installed bundle.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Name of the extension.
    pub extension: String,
    /// Its bundle.
    pub provider: Provider,
}

/// Extension that would lose something that its bundle needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// Name of the extension.
    pub extension: String,
    /// Phrase that says what the bundle needs.
    pub needs: String,
}

/// Returns true if a bundle with these properties, the JSON that a revision records, needs anything of other bundles.
pub fn needs_others(properties: &str) -> bool {
    let properties: Vec<Property> = serde_json::from_str(properties).unwrap_or_default();
    constraint::parse(&properties).is_ok_and(|requirements| !requirements.is_empty())
}

/// Returns the neighbours whose requirements are met with `before` and not with `after`; `None` for `after` is a deletion.
///
/// An API is lost if `before` provides it, and neither `after` nor a neighbour does. Every other API counts as served, so what the
/// change does not touch never holds it up.
pub fn broken(neighbours: &[Neighbour], before: &Provider, after: Option<&Provider>) -> Vec<Dependent> {
    let lost: BTreeSet<_> = {
        let still = neighbours
            .iter()
            .map(|neighbour| &neighbour.provider)
            .chain(after)
            .flat_map(|provider| constraint::provided_apis(&provider.properties))
            .collect::<BTreeSet<_>>();
        constraint::provided_apis(&before.properties)
            .filter(|api| !still.contains(api))
            .collect()
    };
    neighbours
        .iter()
        .filter_map(|neighbour| {
            // A constraint that cannot be read was not met before either.
            let requirements = constraint::parse(&neighbour.provider.properties).ok()?;
            if requirements.is_empty() {
                return None;
            }
            let served = constraint::required_apis(&requirements);
            let remaining = served.difference(&lost).cloned().collect();
            let environment = |own: Option<&Provider>, served| Environment {
                installed: installed(neighbours, neighbour, own),
                served,
            };
            let (was, is) = (
                environment(Some(before), served.clone()),
                environment(after, remaining),
            );
            let breaks = |requirement: &&Requirement| {
                let only = std::slice::from_ref(*requirement);
                constraint::unmet(only, &was).is_empty() && !constraint::unmet(only, &is).is_empty()
            };
            let needs: Vec<String> = requirements
                .iter()
                .filter(breaks)
                .map(ToString::to_string)
                .collect();
            (!needs.is_empty()).then(|| Dependent {
                extension: neighbour.extension.clone(),
                needs: olm_text::cut(&needs.join("; "), PHRASE_LIMIT).into_owned(),
            })
        })
        .collect()
}

fn installed(neighbours: &[Neighbour], of: &Neighbour, own: Option<&Provider>) -> Vec<InstalledBundle> {
    neighbours
        .iter()
        .filter(|neighbour| neighbour.extension != of.extension)
        .map(|neighbour| &neighbour.provider)
        .chain(own)
        .map(|provider| provider.bundle.clone())
        .collect()
}

/// Returns the dependents as one phrase.
pub fn named(dependents: &[Dependent]) -> String {
    let texts: Vec<String> = dependents
        .iter()
        .take(NAMED)
        .map(|dependent| {
            format!(
                "ClusterExtension \"{}\" needs {}",
                dependent.extension, dependent.needs
            )
        })
        .collect();
    let more = match dependents.len().saturating_sub(texts.len()) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", texts.join("; "))
}

#[cfg(test)]
mod tests {
    use olm_version::BundleVersion;
    use serde_json::{Value, json};

    use super::*;

    fn provider(package: &str, version: &str, properties: &Value) -> Provider {
        let values: Vec<Value> = properties.as_array().unwrap().clone();
        Provider {
            bundle: InstalledBundle::new(package.into(), &BundleVersion::recorded(version, None), values)
                .unwrap(),
            properties: serde_json::from_value(properties.clone()).unwrap(),
        }
    }

    fn neighbour(extension: &str, properties: &Value) -> Neighbour {
        Neighbour {
            extension: extension.to_owned(),
            provider: provider(extension, "1.0.0", properties),
        }
    }

    fn api(type_: &str) -> Value {
        json!({"type": type_, "value": {"group": "example.com", "version": "v1", "kind": "Kite"}})
    }

    fn package(range: &str) -> Value {
        json!({"type": "olm.package.required", "value": {"packageName": "base", "versionRange": range}})
    }

    #[test]
    fn lost_apis_break_dependents() {
        let user = neighbour("user", &json!([api("olm.gvk.required")]));
        let before = provider("base", "1.0.0", &json!([api("olm.gvk")]));
        let same = provider("base", "2.0.0", &json!([api("olm.gvk")]));
        let without = provider("base", "2.0.0", &json!([]));
        let users = [user.clone()];
        assert_eq!(broken(&users, &before, Some(&same)), []);
        assert_eq!(broken(&users, &before, Some(&without)).len(), 1);
        let deleted = broken(&users, &before, None);
        assert_eq!(
            named(&deleted),
            "ClusterExtension \"user\" needs the API example.com/v1 Kite"
        );
        // Another extension provides the API, too.
        let both = [user, neighbour("twin", &json!([api("olm.gvk")]))];
        assert_eq!(broken(&both, &before, None), []);
        // The API of somebody else is not touched.
        assert_eq!(broken(&users, &without, None), []);
    }

    #[test]
    fn a_bundle_needs_others_by_its_requirements_alone() {
        let needs = |properties: &Value| needs_others(&properties.to_string());
        assert!(needs(&json!([api("olm.gvk"), api("olm.gvk.required")])));
        assert!(needs(&json!([package(">=1.0.0")])));
        assert!(!needs(&json!([api("olm.gvk")])) && !needs(&json!([])));
        // Such properties hold nobody up.
        assert!(!needs_others("no JSON") && !needs(&json!([package("no range")])));
    }

    #[test]
    fn lost_package_versions_break_dependents() {
        let users = [neighbour("user", &json!([package(">=1.0.0 <2.0.0")]))];
        let version = |version: &str| provider("base", version, &json!([]));
        let before = version("1.0.0");
        assert_eq!(broken(&users, &before, Some(&version("1.5.0"))), []);
        assert_eq!(broken(&users, &before, Some(&version("2.0.0"))).len(), 1);
        assert_eq!(broken(&users, &before, None).len(), 1);
        // A requirement that was not met before holds nothing up.
        assert_eq!(broken(&users, &version("3.0.0"), None), []);
    }

    #[test]
    fn messages_are_bounded() {
        let many: Vec<Dependent> = (0..50)
            .map(|number| Dependent {
                extension: format!("user-{number}"),
                needs: "x".repeat(PHRASE_LIMIT),
            })
            .collect();
        let text = named(&many);
        assert!(text.ends_with("; and 47 more") && text.len() < 1000, "{text}");
    }

    #[test]
    fn a_package_of_another_extension_is_no_loss() {
        let before = provider("base", "1.0.0", &json!([]));
        let user = neighbour("user", &json!([package(">=1.0.0 <2.0.0")]));
        assert_eq!(broken(std::slice::from_ref(&user), &before, None).len(), 1);
        let both = [user, neighbour("base", &json!([]))];
        assert_eq!(broken(&both, &before, None), []);
    }
}
