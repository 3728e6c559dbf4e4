//! Feature gates: `--feature-gates A=true,B=false`.
//!
//! What the user said is kept apart from the defaults, so that a gate that is not named and one
//! that is set to `false` can be told apart. A gate belongs to one binary; the other refuses it,
//! as upstream does.

mod table;

use std::{collections::BTreeMap, fmt, str::FromStr};

pub use table::{Binary, Feature, GATES, Gate, Stage};

/// Sets every gate of the binary that is still alpha and is not named itself, as in Kubernetes.
const ALL_ALPHA: &str = "AllAlpha";
/// The same for beta; no gate is.
const ALL_BETA: &str = "AllBeta";

/// What the user said about the gates; the defaults fill the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    said: BTreeMap<Feature, bool>,
    all_alpha: Option<bool>,
    /// Names that only one binary once had, taken without effect.
    retired: Vec<&'static str>,
}

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
        let Some(gate) = Gate::of(feature) else {
            return false;
        };
        if gate.fixed {
            return true;
        }
        let by_stage = self.all_alpha.filter(|_| gate.stage == Stage::Alpha);
        self.said(feature).or(by_stage).unwrap_or(gate.default)
    }

    /// What the user said about a gate by its name; `None` when nothing.
    #[must_use]
    pub fn said(&self, feature: Feature) -> Option<bool> {
        self.said.get(&feature).copied()
    }

    /// The same gates with one of them set.
    #[must_use]
    pub fn with(mut self, feature: Feature, on: bool) -> Self {
        self.said.insert(feature, on);
        self
    }

    /// All of `others` in order, later ones winning (the flag may be repeated).
    #[must_use]
    pub fn merged(others: &[Self]) -> Self {
        let mut all = Self::default();
        for other in others {
            all.said.extend(&other.said);
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
        let other = |gate: &&Gate| gate.binary != binary && self.said.contains_key(&gate.feature);
        if let Some(gate) = GATES.iter().find(other) {
            return Err(FeatureError::Unknown(gate.name.to_owned()));
        }
        match self.retired.first() {
            Some(name) if binary != Binary::OperatorController => {
                Err(FeatureError::Unknown((*name).to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Logs what is on, and what was asked for without effect. Once, at the start.
    pub fn log(&self, binary: Binary) {
        tracing::info!(gates = %self.of(binary), "feature gates");
        for gate in GATES.iter().filter(|gate| gate.fixed) {
            if self.said(gate.feature) == Some(false) {
                tracing::info!(
                    gate = gate.name,
                    "this behaviour is always on here; the gate changes nothing"
                );
            }
        }
        for gate in &self.retired {
            tracing::info!(gate, "this gate is of an earlier version and changes nothing");
        }
    }

    /// The gates of one binary as they are, as the flag spells them.
    pub fn of(&self, binary: Binary) -> impl fmt::Display {
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
                gates.said.insert(gate.feature, on);
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

/// A boolean in the spellings of Go's `strconv.ParseBool`.
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
        assert_eq!(gates.said(Feature::DeploymentConfig), Some(false));
        assert!(!gates.enabled(Feature::DeploymentConfig));
        assert!(!gates.enabled(Feature::WebhookProviderCertManager));
        assert_eq!(gates.said(Feature::SingleOwnNamespaceInstallSupport), None);
        assert!(gates.enabled(Feature::SingleOwnNamespaceInstallSupport));
        assert!(gates.enabled(Feature::WebhookProviderOpenshiftServiceCa));
        assert!(!gates.enabled(Feature::BundleReleaseSupport));
    }

    #[test]
    fn later_ones_win() {
        let all = [
            gates("DeploymentConfig=true,AllAlpha=false"),
            gates("DeploymentConfig=false"),
        ];
        assert!(!FeatureGates::merged(&all).enabled(Feature::DeploymentConfig));
        assert!(!FeatureGates::merged(&all).enabled(Feature::SingleOwnNamespaceInstallSupport));
    }

    #[test]
    fn all_alpha_spares_what_is_named_or_settled() {
        let on = gates("AllAlpha=true,AllBeta=true,UpstreamCatalogSelection=false");
        assert!(on.enabled(Feature::BundleReleaseSupport));
        assert!(!on.enabled(Feature::UpstreamCatalogSelection));
        let off = gates("AllAlpha=false");
        assert!(off.enabled(Feature::WebhookProviderCertManager));
        assert!(!off.enabled(Feature::DeploymentConfig));
    }

    #[test]
    fn what_is_always_on_stays_on() {
        let gates = gates("BoxcutterRuntime=false,APIV1MetasHandler=false");
        assert!(gates.enabled(Feature::BoxcutterRuntime));
        assert!(gates.enabled(Feature::ApiV1MetasHandler));
    }

    #[test]
    fn each_binary_knows_its_own() {
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
    fn refusals() {
        let refused = |text: &str| text.parse::<FeatureGates>().unwrap_err().to_string();
        assert_eq!(refused("Nope=true"), "unrecognized feature gate: Nope");
        assert!(refused("DeploymentConfig").starts_with("missing bool value"));
        assert!(refused("DeploymentConfig=yes").starts_with("invalid value of DeploymentConfig"));
    }

    #[test]
    fn shown_as_the_flag_spells_them() {
        assert_eq!(
            FeatureGates::default().of(Binary::Catalogd).to_string(),
            "APIV1MetasHandler=true,GraphQLCatalogQueries=false"
        );
    }
}
