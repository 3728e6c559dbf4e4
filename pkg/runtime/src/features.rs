//! Feature gates: `--feature-gates A=true,B=false`.
//!
//! Names and defaults are upstream's, but for `UpstreamCatalogSelection`, which only we have. Gates that upstream once had and removed are taken and
//! ignored, because manifests rendered for older versions still pass them.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// A behaviour that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Accept bundles that do not support watching all namespaces.
    SingleOwnNamespaceInstallSupport,
    /// Webhook certificates come from cert-manager.
    WebhookProviderCertManager,
    /// Webhook certificates come from `OpenShift`'s service CA.
    WebhookProviderOpenshiftServiceCa,
    /// Revisions are `ClusterObjectSet` objects.
    BoxcutterRuntime,
    /// `spec.config.inline.deploymentConfig` is honoured.
    DeploymentConfig,
    /// Bundles may carry an explicit release.
    BundleReleaseSupport,
    /// catalogd answers `/api/v1/metas`.
    ApiV1MetasHandler,
    /// catalogd answers `/api/v1/graphql`.
    GraphQlCatalogQueries,
    /// Catalogs are chosen between as upstream does; see docs/deviations.md. Ours alone.
    UpstreamCatalogSelection,
}

/// Every gate with its name on the command line and its default, upstream's where upstream has it.
const KNOWN: [(Feature, &str, bool); 9] = [
    (
        Feature::SingleOwnNamespaceInstallSupport,
        "SingleOwnNamespaceInstallSupport",
        false,
    ),
    (
        Feature::WebhookProviderCertManager,
        "WebhookProviderCertManager",
        true,
    ),
    (
        Feature::WebhookProviderOpenshiftServiceCa,
        "WebhookProviderOpenshiftServiceCA",
        true,
    ),
    (Feature::BoxcutterRuntime, "BoxcutterRuntime", false),
    (Feature::DeploymentConfig, "DeploymentConfig", false),
    (Feature::BundleReleaseSupport, "BundleReleaseSupport", false),
    (Feature::ApiV1MetasHandler, "APIV1MetasHandler", false),
    (Feature::GraphQlCatalogQueries, "GraphQLCatalogQueries", false),
    (
        Feature::UpstreamCatalogSelection,
        "UpstreamCatalogSelection",
        false,
    ),
];

/// Gates of earlier versions: taken, without effect.
const RETIRED: [&str; 3] = ["PreflightPermissions", "SyntheticPermissions", "HelmChartSupport"];

/// What the user said about the gates; the defaults fill the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<Feature, bool>);

/// Why a `--feature-gates` value was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FeatureError {
    /// No such gate, now or earlier.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// An entry without `=`.
    #[error("missing bool value for feature gate {0}: write {0}=true or {0}=false")]
    NoValue(String),
    /// The value is not a boolean.
    #[error("invalid value of {name}: {value}: write true or false")]
    NotABool {
        /// The gate.
        name: String,
        /// What stood after `=`.
        value: String,
    },
}

impl FeatureGates {
    /// Whether a behaviour is on.
    #[must_use]
    pub fn enabled(&self, feature: Feature) -> bool {
        self.0.get(&feature).copied().unwrap_or_else(|| {
            KNOWN
                .iter()
                .any(|(known, _, default)| *known == feature && *default)
        })
    }

    /// The same gates with one of them set.
    #[must_use]
    pub fn with(mut self, feature: Feature, on: bool) -> Self {
        self.0.insert(feature, on);
        self
    }

    /// All of `others` in order, later ones winning (the flag may be repeated).
    #[must_use]
    pub fn merged(others: &[Self]) -> Self {
        Self(others.iter().flat_map(|gates| gates.0.clone()).collect())
    }
}

impl FromStr for FeatureGates {
    type Err = FeatureError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gates = BTreeMap::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry
                .split_once('=')
                .ok_or_else(|| FeatureError::NoValue(entry.to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            // The spellings of Go's strconv.ParseBool.
            let on = match value {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => {
                    return Err(FeatureError::NotABool {
                        name: name.to_owned(),
                        value: value.to_owned(),
                    });
                }
            };
            if let Some((feature, ..)) = KNOWN.iter().find(|(_, known, _)| *known == name) {
                gates.insert(*feature, on);
            } else if !RETIRED.contains(&name) {
                return Err(FeatureError::Unknown(name.to_owned()));
            }
        }
        Ok(Self(gates))
    }
}

impl fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (feature, name, _)) in KNOWN.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}={}", self.enabled(*feature))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_overrides() {
        let gates: FeatureGates = "DeploymentConfig=true, WebhookProviderCertManager=False"
            .parse()
            .unwrap();
        assert!(gates.enabled(Feature::DeploymentConfig));
        assert!(!gates.enabled(Feature::WebhookProviderCertManager));
        assert!(gates.enabled(Feature::WebhookProviderOpenshiftServiceCa));
        assert!(!gates.enabled(Feature::BoxcutterRuntime));
        let later = FeatureGates::default().with(Feature::DeploymentConfig, false);
        assert!(!FeatureGates::merged(&[gates, later]).enabled(Feature::DeploymentConfig));
    }

    #[test]
    fn retired_names_are_taken_and_others_are_not() {
        assert_eq!("HelmChartSupport=false".parse(), Ok(FeatureGates::default()));
        let error = "Nope=true".parse::<FeatureGates>().unwrap_err();
        assert_eq!(error.to_string(), "unrecognized feature gate: Nope");
        assert!("DeploymentConfig".parse::<FeatureGates>().is_err());
        assert!("DeploymentConfig=yes".parse::<FeatureGates>().is_err());
    }
}
