//! Plans of extensions that move together.

use data_encoding::HEXLOWER;
use olm_bundle::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::model::{Outcome, Plan};

/// Plans of extensions whose new versions need each other, each made with the moves of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JointPlan {
    /// Digest of the plans, `sha256:` and hex. It covers the names of the extensions and the digests of their plans.
    pub digest: String,
    /// The plans, sorted by extension.
    pub plans: Vec<Plan>,
    /// Extensions that keep their version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmoved: Vec<String>,
    /// Extensions that operator-controller would move to a higher version, because their specs admit it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
}

/// Version that an extension must be limited to for the joint plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pin {
    /// Name of the extension.
    pub extension: String,
    /// The version.
    pub version: String,
}

impl JointPlan {
    /// Returns the joint plan of `plans`.
    #[must_use]
    pub fn new(mut plans: Vec<Plan>, unmoved: Vec<String>, pins: Vec<Pin>) -> Self {
        plans.sort_by(|a, b| a.extension.cmp(&b.extension));
        let members: Vec<Value> = plans
            .iter()
            .map(|plan| json!({"extension": plan.extension, "plan": plan.digest}))
            .collect();
        let sum = Sha256::digest(canonical_json(&json!({ "joint": members })).as_bytes());
        Self {
            digest: format!("sha256:{}", HEXLOWER.encode(&sum)),
            plans,
            unmoved,
            pins,
        }
    }

    /// Returns the verdict: refused if one of the plans is.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let outcomes: Vec<Outcome> = self.plans.iter().map(Plan::outcome).collect();
        if outcomes.contains(&Outcome::Refused) {
            Outcome::Refused
        } else if outcomes.contains(&Outcome::Change) {
            Outcome::Change
        } else {
            Outcome::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(extension: &str, digest: &str) -> Plan {
        Plan {
            extension: Some(extension.to_owned()),
            digest: digest.to_owned(),
            ..Plan::default()
        }
    }

    #[test]
    fn the_digest_covers_every_plan_in_any_order() {
        let digest = |plans: Vec<Plan>| JointPlan::new(plans, Vec::new(), Vec::new()).digest;
        let both = digest(vec![plan("a", "1"), plan("b", "2")]);
        assert_eq!(both, digest(vec![plan("b", "2"), plan("a", "1")]));
        assert_ne!(both, digest(vec![plan("a", "1"), plan("b", "3")]));
        assert_ne!(both, digest(vec![plan("a", "1")]));
        assert_eq!(both.len(), 71);
    }

    #[test]
    fn one_refused_plan_refuses_all() {
        let mut refused = plan("b", "2");
        refused.refusals.push("no".to_owned());
        let joint = |plans| JointPlan::new(plans, Vec::new(), Vec::new()).outcome();
        assert_eq!(joint(vec![plan("a", "1"), refused]), Outcome::Refused);
        assert_eq!(joint(vec![plan("a", "1")]), Outcome::Change);
        assert_eq!(joint(Vec::new()), Outcome::Nothing);
    }
}
