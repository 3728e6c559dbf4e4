//! Approval of plans that `kubectl olm plan` made.

use olm_api::{AutomaticUpgrades, ClusterExtension, JointPlanMember, RolloutApproval, RolloutConfig};
use olm_plan::{JointPlan, Plan};
use serde_json::json;

use super::{Approval, approval, approved, change, write};
use crate::absent::existing;
use crate::failure::Failure;
use crate::source::Cluster;

/// Approval of a plan of `kubectl olm plan`, before it is written.
pub(crate) struct PlanApproval {
    name: String,
    approval: Approval,
}

impl PlanApproval {
    /// Reads the extension again and prepares the approval of `plan`.
    ///
    /// # Errors
    /// The extension is gone, or another plan waits.
    pub(crate) async fn prepare(cluster: &Cluster, plan: &Plan) -> Result<Self, Failure> {
        let name = plan.extension.clone().unwrap_or_default();
        let extension = existing(cluster, &name).await?;
        let waits = extension
            .status
            .as_ref()
            .is_some_and(|status| status.pending_plan.is_some());
        let approval = if waits {
            approval(&name, &extension, Some(&plan.digest))?
        } else {
            in_advance(&name, &extension, plan)?
        };
        Ok(Self { name, approval })
    }

    /// Writes the approval. Returns the line that says what was done.
    pub(crate) async fn write(&self, cluster: &Cluster) -> Result<String, Failure> {
        let Approval { change, done, .. } = &self.approval;
        write(cluster, false, &self.name, change, done).await
    }
}

/// Approval of a joint plan, before it is written.
pub(crate) struct JointApproval(Vec<PlanApproval>);

impl JointApproval {
    /// Reads the extensions again and prepares the approval of all plans.
    ///
    /// # Errors
    /// The plan moves fewer than two extensions, other versions than operator-controller would choose, or an extension that is gone or has
    /// another plan that waits.
    pub(crate) async fn prepare(cluster: &Cluster, joint: &JointPlan) -> Result<Self, Failure> {
        can_be_approved(joint)?;
        let mut approvals = Vec::new();
        for plan in &joint.plans {
            let name = plan.extension.clone().unwrap_or_default();
            let extension = existing(cluster, &name).await?;
            let approval = jointly(&name, &extension, plan, joint)?;
            approvals.push(PlanApproval { name, approval });
        }
        Ok(Self(approvals))
    }

    /// Writes the approvals. Returns the lines that say what was done. After a failure, the approvals that were written have no effect, as
    /// the specs differ.
    pub(crate) async fn write(&self, cluster: &Cluster) -> Result<String, Failure> {
        let mut text = String::new();
        for approval in &self.0 {
            text.push_str(&approval.write(cluster).await?);
        }
        Ok(text)
    }
}

fn can_be_approved(joint: &JointPlan) -> Result<(), Failure> {
    if let Some(pin) = joint.pins.first() {
        return Err(Failure::NegativeAnswer(format!(
            "nothing is approved: operator-controller would move ClusterExtension {:?} to a higher version; limit it first: kubectl olm \
             upgrade {} --version {} --no-wait",
            pin.extension, pin.extension, pin.version
        )));
    }
    if joint.plans.len() < 2 {
        return Err(Failure::NegativeAnswer(
            "nothing is approved: only one extension moves; approve its own plan with kubectl olm plan NAME --approve".to_owned(),
        ));
    }
    Ok(())
}

fn jointly(
    name: &str,
    extension: &ClusterExtension,
    plan: &Plan,
    joint: &JointPlan,
) -> Result<Approval, Failure> {
    let pending = extension
        .status
        .as_ref()
        .and_then(|status| status.pending_plan.as_ref());
    if let Some(pending) = pending.filter(|pending| pending.digest != plan.digest) {
        return Err(Failure::NegativeAnswer(format!(
            "nothing is approved: the plan of ClusterExtension {name:?} that waits is {}, not {}",
            pending.digest, plan.digest
        )));
    }
    let members: Vec<JointPlanMember> = joint
        .plans
        .iter()
        .map(|plan| JointPlanMember {
            extension: plan.extension.clone().unwrap_or_default(),
            plan: plan.digest.clone(),
        })
        .collect();
    let rollout = extension.spec.rollout.as_ref();
    let known = rollout.and_then(|rollout| rollout.joint_plan.as_ref());
    let needed = approved(extension) != Some(plan.digest.as_str()) || known != Some(&members);
    Ok(Approval {
        change: change(
            extension,
            name,
            &json!({"approvedPlan": plan.digest, "jointPlan": members}),
            needed,
        ),
        done: format!("clusterextension/{name}: version {} is approved", plan.to.version),
        plan: String::new(),
    })
}

/// Returns the approval of a plan that the controller has not shown yet: it is rolled out as soon as the controller makes the same plan.
fn in_advance(name: &str, extension: &ClusterExtension, plan: &Plan) -> Result<Approval, Failure> {
    let required = extension.spec.rollout.as_ref().is_some_and(may_require_approval);
    if !required {
        return Err(Failure::NegativeAnswer(format!(
            "the plan of ClusterExtension {name:?} needs no approval: its spec.rollout requires none, and operator-controller rolls the \
             plan out by itself"
        )));
    }
    Ok(Approval {
        change: change(
            extension,
            name,
            &json!({"approvedPlan": plan.digest}),
            approved(extension) != Some(plan.digest.as_str()),
        ),
        done: format!("clusterextension/{name}: version {} is approved", plan.to.version),
        plan: String::new(),
    })
}

fn may_require_approval(rollout: &RolloutConfig) -> bool {
    rollout.approval == Some(RolloutApproval::Manual)
        || rollout
            .automatic
            .is_some_and(|automatic| automatic != AutomaticUpgrades::All)
        || rollout
            .require_approval_for
            .as_ref()
            .is_some_and(|causes| !causes.is_empty())
}

#[cfg(test)]
mod tests {
    use olm_plan::Pin;
    use serde_json::Value;

    use super::super::tests::{extension, pending};
    use super::*;

    #[test]
    fn plans_that_the_controller_has_not_shown_are_approved_only_if_required() {
        let plan = Plan {
            digest: "sha256:cc".to_owned(),
            ..Plan::default()
        };
        for rollout in [
            json!({"approval": "Manual"}),
            json!({"automatic": "Patch"}),
            json!({"requireApprovalFor": ["NewRights"]}),
        ] {
            let ready = extension(&rollout, &json!({}));
            let approval = in_advance("kite", &ready, &plan).unwrap();
            assert!(approval.change.needed, "{rollout}");
            assert_eq!(
                approval.change.object["spec"]["rollout"],
                json!({"approvedPlan": "sha256:cc"})
            );
        }
        for rollout in [
            Value::Null,
            json!({"automatic": "All"}),
            json!({"requireApprovalFor": []}),
        ] {
            let failure = in_advance("kite", &extension(&rollout, &json!({})), &plan).unwrap_err();
            assert!(failure.message().contains("needs no approval"), "{rollout}");
        }
    }

    #[test]
    fn a_joint_plan_is_approved_in_every_spec() {
        let plan = |name: &str, digest: &str| Plan {
            extension: Some(name.to_owned()),
            digest: digest.to_owned(),
            ..Plan::default()
        };
        let joint = JointPlan::new(
            vec![plan("kite", "sha256:aa"), plan("lamp", "sha256:bb")],
            Vec::new(),
            Vec::new(),
        );
        assert!(can_be_approved(&joint).is_ok());
        let approval = jointly(
            "kite",
            &extension(&json!({}), &json!({})),
            &joint.plans[0],
            &joint,
        )
        .unwrap();
        let rollout = json!({"approvedPlan": "sha256:aa", "jointPlan": [
            {"extension": "kite", "plan": "sha256:aa"}, {"extension": "lamp", "plan": "sha256:bb"}]});
        assert!(approval.change.needed);
        assert_eq!(approval.change.object["spec"]["rollout"], rollout);
        let again = extension(&rollout, &json!({}));
        assert!(
            !jointly("kite", &again, &joint.plans[0], &joint)
                .unwrap()
                .change
                .needed
        );
        let waits = extension(&json!({}), &pending(&json!(["Manual"])));
        assert!(jointly("kite", &waits, &joint.plans[0], &joint).is_ok());
        assert!(jointly("kite", &waits, &joint.plans[1], &joint).is_err());

        let mut pinned = joint.clone();
        pinned.pins.push(Pin {
            extension: "kite".to_owned(),
            version: "2.0.0".to_owned(),
        });
        let failure = can_be_approved(&pinned).unwrap_err().message();
        assert!(
            failure.contains("kubectl olm upgrade kite --version 2.0.0"),
            "{failure}"
        );
        let alone = JointPlan::new(joint.plans[..1].to_vec(), vec!["lamp".to_owned()], Vec::new());
        assert!(can_be_approved(&alone).is_err());
    }
}
