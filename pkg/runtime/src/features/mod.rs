//! Feature gates: `--feature-gates A=true,B=false`.
//!
//! Explicit values are stored apart from the defaults, so that an unset gate differs from one that is `false`. A
//! gate belongs to one binary; the other binary refuses it, as upstream does.

mod table;

use std::{collections::BTreeMap, fmt, str::FromStr};

pub use table::{Binary, Feature, GATES, Gate, Stage};

/// Gate that sets every alpha gate of the binary that has no explicit value, as in Kubernetes.
const ALL_ALPHA: &str = "AllAlpha";
/// Gate that sets every beta gate; there are none.
const ALL_BETA: &str = "AllBeta";

/// Feature gates with explicit values; all others have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    explicit: BTreeMap<Feature, bool>,
    all_alpha: Option<bool>,
    /// Given gates of earlier versions, without effect.
    retired: Vec<&'static str>,
}

/// Error for an invalid `--feature-gates` value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FeatureError {
    /// The gate is unknown.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// The entry has no `=`.
    #[error("missing bool value for feature gate {0}: write {0}=true or {0}=false")]
    NoValue(String),
    /// The value is not a boolean.
    #[error("invalid value of {name}: {value}: write true or false")]
    NotABool {
        /// The gate.
        name: String,
        /// The text after `=`.
        value: String,
    },
}

impl FeatureGates {
    /// Returns true if the feature is enabled.
    #[must_use]
    pub fn enabled(&self, feature: Feature) -> bool {
        let Some(gate) = Gate::for_feature(feature) else {
            return false;
        };
        if gate.locked {
            return true;
        }
        let by_stage = self.all_alpha.filter(|_| gate.stage == Stage::Alpha);
        self.explicit(feature).or(by_stage).unwrap_or(gate.default)
    }

    /// Returns the explicit value of a gate, if any.
    #[must_use]
    pub fn explicit(&self, feature: Feature) -> Option<bool> {
        self.explicit.get(&feature).copied()
    }

    /// Returns the gates with one of them set.
    #[must_use]
    pub fn with(mut self, feature: Feature, on: bool) -> Self {
        self.explicit.insert(feature, on);
        self
    }

    /// Merges `others` in order; later values win (the flag may be repeated).
    #[must_use]
    pub fn merged(others: &[Self]) -> Self {
        let mut all = Self::default();
        for other in others {
            all.explicit.extend(&other.explicit);
            all.all_alpha = other.all_alpha.or(all.all_alpha);
            all.retired.extend(&other.retired);
        }
        all
    }

    /// Refuses gates of the other binary.
    ///
    /// # Errors
    /// [`FeatureError::Unknown`].
    pub fn check(&self, binary: Binary) -> Result<(), FeatureError> {
        let foreign = |gate: &&Gate| gate.binary != binary && self.explicit.contains_key(&gate.feature);
        if let Some(gate) = GATES.iter().find(foreign) {
            return Err(FeatureError::Unknown(gate.name.to_owned()));
        }
        match self.retired.first() {
            Some(name) if binary != Binary::OperatorController => {
                Err(FeatureError::Unknown((*name).to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Logs the enabled gates and the given ones without effect.
    pub fn log(&self, binary: Binary) {
        tracing::info!(gates = %self.display(binary), "feature gates");
        for gate in GATES.iter().filter(|gate| gate.locked) {
            if self.explicit(gate.feature) == Some(false) {
                tracing::info!(
                    gate = gate.name,
                    "the feature is always enabled; the gate has no effect"
                );
            }
        }
        for gate in &self.retired {
            tracing::info!(gate, "the gate is of an earlier version and has no effect");
        }
    }

    /// Formats the effective gates of one binary in the syntax of the flag.
    pub fn display(&self, binary: Binary) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let gates = GATES.iter().filter(|gate| gate.binary == binary);
            for (index, gate) in gates.enumerate() {
                let comma = if index == 0 { "" } else { "," };
                write!(f, "{comma}{}={}", gate.name, self.enabled(gate.feature))?;
            }
            Ok(())
        })
    }
}

impl FromStr for FeatureGates {
    type Err = FeatureError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gates = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry
                .split_once('=')
                .ok_or_else(|| FeatureError::NoValue(entry.to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            let on = boolean(value).ok_or_else(|| FeatureError::NotABool {
                name: name.to_owned(),
                value: value.to_owned(),
            })?;
            if let Some(gate) = GATES.iter().find(|gate| gate.name == name) {
                gates.explicit.insert(gate.feature, on);
            } else if name == ALL_ALPHA {
                gates.all_alpha = Some(on);
            } else if let Some(retired) = table::RETIRED.iter().find(|retired| **retired == name) {
                gates.retired.push(retired);
            } else if name != ALL_BETA {
                return Err(FeatureError::Unknown(name.to_owned()));
            }
        }
        Ok(gates)
    }
}

/// Parses a boolean like Go's `strconv.ParseBool`.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(text: &str) -> FeatureGates {
        text.parse().unwrap()
    }

    #[test]
    fn unset_is_not_false() {
        let gates = gates("DeploymentConfig=false, WebhookProviderCertManager=False");
        assert_eq!(gates.explicit(Feature::DeploymentConfig), Some(false));
        assert!(!gates.enabled(Feature::DeploymentConfig));
        assert!(!gates.enabled(Feature::WebhookProviderCertManager));
        assert_eq!(gates.explicit(Feature::SingleOwnNamespaceInstallSupport), None);
        assert!(gates.enabled(Feature::SingleOwnNamespaceInstallSupport));
        assert!(gates.enabled(Feature::WebhookProviderOpenshiftServiceCa));
        assert!(!gates.enabled(Feature::BundleReleaseSupport));
    }

    #[test]
    fn later_values_win() {
        let all = [
            gates("DeploymentConfig=true,AllAlpha=false"),
            gates("DeploymentConfig=false"),
        ];
        assert!(!FeatureGates::merged(&all).enabled(Feature::DeploymentConfig));
        assert!(!FeatureGates::merged(&all).enabled(Feature::SingleOwnNamespaceInstallSupport));
    }

    #[test]
    fn all_alpha_spares_explicit_and_stable_gates() {
        let on = gates("AllAlpha=true,AllBeta=true,UpstreamCatalogSelection=false");
        assert!(on.enabled(Feature::BundleReleaseSupport));
        assert!(!on.enabled(Feature::UpstreamCatalogSelection));
        let off = gates("AllAlpha=false");
        assert!(off.enabled(Feature::WebhookProviderCertManager));
        assert!(!off.enabled(Feature::DeploymentConfig));
    }

    #[test]
    fn locked_gates_stay_enabled() {
        let gates = gates("BoxcutterRuntime=false,APIV1MetasHandler=false");
        assert!(gates.enabled(Feature::BoxcutterRuntime));
        assert!(gates.enabled(Feature::ApiV1MetasHandler));
    }

    #[test]
    fn gates_of_the_other_binary_are_refused() {
        let unknown = |name: &str| Err(FeatureError::Unknown(name.to_owned()));
        for gate in GATES {
            let gates = FeatureGates::default().with(gate.feature, true);
            let other = match gate.binary {
                Binary::Catalogd => Binary::OperatorController,
                Binary::OperatorController => Binary::Catalogd,
            };
            assert_eq!(gates.check(gate.binary), Ok(()));
            assert_eq!(gates.check(other), unknown(gate.name));
        }
        let retired = gates("HelmChartSupport=false");
        assert_eq!(retired.check(Binary::OperatorController), Ok(()));
        assert_eq!(retired.check(Binary::Catalogd), unknown("HelmChartSupport"));
    }

    #[test]
    fn invalid_values() {
        let error_of = |text: &str| text.parse::<FeatureGates>().unwrap_err().to_string();
        assert_eq!(error_of("Nope=true"), "unrecognized feature gate: Nope");
        assert!(error_of("DeploymentConfig").starts_with("missing bool value"));
        assert!(error_of("DeploymentConfig=yes").starts_with("invalid value of DeploymentConfig"));
    }

    #[test]
    fn displayed_in_the_syntax_of_the_flag() {
        assert_eq!(
            FeatureGates::default().display(Binary::Catalogd).to_string(),
            "APIV1MetasHandler=true,GraphQLCatalogQueries=true"
        );
    }
}
