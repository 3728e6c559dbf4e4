//! Joint plans: extensions whose new versions need each other's.

use olm_api::{ClusterExtension, JointPlanMember};

use super::dependents::Provider;

/// Approved joint plan of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointPlan {
    /// Digest of the extension's own plan.
    pub own: String,
    /// Names of the other extensions.
    pub partners: Vec<String>,
}

/// Move of an extension with a joint plan, as its last pass found it.
#[derive(Clone, Debug)]
pub struct Move {
    /// Uid of the extension.
    pub uid: Option<String>,
    /// Generation of the extension that the pass read.
    pub generation: Option<i64>,
    /// The resolved bundle.
    pub provider: Provider,
    /// Progress of the move.
    pub stage: Stage,
}

/// Progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The bundle is resolved.
    Resolved,
    /// Every check of the bundle passed, and its plan is the approved one.
    Ready,
    /// The newest revision holds the bundle.
    Moved,
}

impl Move {
    /// Returns true if the move is of the present spec of `extension`.
    pub fn is_of(&self, extension: &ClusterExtension) -> bool {
        self.uid == extension.metadata.uid && self.generation == extension.metadata.generation
    }

    /// Returns the move after `before`: a pass that repeats an earlier one does not fall behind it.
    #[must_use]
    pub fn after(mut self, before: Option<&Self>) -> Self {
        let same = |before: &&Self| {
            (&before.uid, before.generation) == (&self.uid, self.generation)
                && before.provider.bundle.version == self.provider.bundle.version
                && before.provider.bundle.package == self.provider.bundle.package
                // Among them is the release, which is no part of a version here.
                && before.provider.properties == self.provider.properties
        };
        if before
            .filter(same)
            .is_some_and(|before| before.stage == Stage::Ready)
            && self.stage == Stage::Resolved
        {
            self.stage = Stage::Ready;
        }
        self
    }
}

/// Returns the joint plan of the extension; none if it has none, or one for other extensions.
pub fn joint_plan(extension: &ClusterExtension) -> Option<JointPlan> {
    let members = members(extension)?;
    let own_name = extension.metadata.name.as_deref()?;
    let (own, partners): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.extension == own_name);
    Some(JointPlan {
        own: own.first()?.plan.clone(),
        partners: partners.iter().map(|member| member.extension.clone()).collect(),
    })
}

/// Returns true if `partner` has the joint plan of `extension` and may follow it.
pub fn agrees(extension: &ClusterExtension, partner: &ClusterExtension) -> bool {
    let sorted = |extension: &ClusterExtension| {
        let mut members = members(extension)?.to_vec();
        members.sort();
        Some(members)
    };
    let paused = partner.spec.rollout.as_ref().and_then(|rollout| rollout.paused) == Some(true);
    partner.metadata.deletion_timestamp.is_none()
        && !paused
        && sorted(extension).is_some_and(|own| sorted(partner).as_ref() == Some(&own))
}

fn members(extension: &ClusterExtension) -> Option<&[JointPlanMember]> {
    extension.spec.rollout.as_ref()?.joint_plan.as_deref()
}

#[cfg(test)]
mod tests {
    use olm_resolve::constraint::InstalledBundle;
    use olm_version::BundleVersion;
    use serde_json::{Value, json};

    use super::*;

    fn extension(name: &str, plan: &Value) -> ClusterExtension {
        serde_json::from_value(json!({"metadata": {"name": name, "uid": name, "generation": 1},
            "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}, "rollout": {"jointPlan": plan}}}))
        .unwrap()
    }

    fn plan(names: &[&str]) -> Value {
        names
            .iter()
            .map(|name| json!({"extension": name, "plan": format!("sha256:{name}")}))
            .collect()
    }

    #[test]
    fn a_joint_plan_names_its_extension() {
        let joint = joint_plan(&extension("a", &plan(&["b", "a"]))).unwrap();
        assert_eq!(
            (joint.own.as_str(), joint.partners),
            ("sha256:a", vec!["b".to_owned()])
        );
        assert_eq!(joint_plan(&extension("c", &plan(&["b", "a"]))), None);
        assert_eq!(joint_plan(&extension("a", &Value::Null)), None);
    }

    #[test]
    fn partners_agree_by_equal_plans() {
        let a = extension("a", &plan(&["a", "b"]));
        assert!(agrees(&a, &extension("b", &plan(&["b", "a"]))));
        assert!(!agrees(&a, &extension("b", &plan(&["b", "a", "c"]))));
        assert!(!agrees(&a, &extension("b", &Value::Null)));
        let mut other = plan(&["a", "b"]);
        other[0]["plan"] = json!("sha256:c");
        assert!(!agrees(&a, &extension("b", &other)));
        let mut paused = extension("b", &plan(&["a", "b"]));
        paused.spec.rollout.as_mut().unwrap().paused = Some(true);
        assert!(!agrees(&a, &paused));
        // Without an approval, nobody agrees with anybody.
        assert!(!agrees(
            &extension("a", &Value::Null),
            &extension("b", &Value::Null)
        ));
    }

    #[test]
    fn a_repeated_pass_stays_ready_until_something_changes() {
        let property = |release: &str| {
            let value = json!({"packageName": "a", "version": "2.0.0", "release": release});
            serde_json::from_value(json!({"type": "olm.package", "value": value})).unwrap()
        };
        let found = |version: &str, generation: i64, stage: Stage| {
            let bundle =
                InstalledBundle::new("a".into(), &BundleVersion::recorded(version, None), Vec::new());
            Move {
                uid: Some("a".to_owned()),
                generation: Some(generation),
                provider: Provider {
                    bundle: bundle.unwrap(),
                    properties: vec![property("1")],
                },
                stage,
            }
        };
        let ready = found("2.0.0", 1, Stage::Ready);
        assert_eq!(
            found("2.0.0", 1, Stage::Resolved).after(Some(&ready)).stage,
            Stage::Ready
        );
        assert_eq!(
            found("2.0.0", 1, Stage::Moved).after(Some(&ready)).stage,
            Stage::Moved
        );
        assert_eq!(
            found("3.0.0", 1, Stage::Resolved).after(Some(&ready)).stage,
            Stage::Resolved
        );
        assert_eq!(
            found("2.0.0", 2, Stage::Resolved).after(Some(&ready)).stage,
            Stage::Resolved
        );
        assert_eq!(
            found("2.0.0", 1, Stage::Resolved).after(None).stage,
            Stage::Resolved
        );
        let mut other_release = found("2.0.0", 1, Stage::Resolved);
        other_release.provider.properties = vec![property("2")];
        assert_eq!(other_release.after(Some(&ready)).stage, Stage::Resolved);
        assert!(ready.is_of(&extension("a", &Value::Null)));
    }

    #[test]
    fn a_move_is_of_one_uid_and_one_generation() {
        let bundle = InstalledBundle::new("a".into(), &BundleVersion::recorded("2.0.0", None), Vec::new());
        let mut ready = Move {
            uid: Some("a".to_owned()),
            generation: Some(1),
            provider: Provider {
                bundle: bundle.unwrap(),
                properties: Vec::new(),
            },
            stage: Stage::Ready,
        };
        let (same, other) = (extension("a", &Value::Null), extension("b", &Value::Null));
        assert!(ready.is_of(&same) && !ready.is_of(&other));
        ready.generation = Some(2);
        assert!(!ready.is_of(&same), "another generation");
    }
}
