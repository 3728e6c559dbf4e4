//! Approval of plans that `kubectl olm plan` made.

use olm_api::{AutomaticUpgrades, ClusterExtension, JointPlanMember, RolloutApproval, RolloutConfig};
use olm_plan::{JointPlan, Plan};
use serde_json::json;

use super::{Approval, approval, approved, change, write};
use crate::absent::existing;
use crate::commands::common::progress;
use crate::failure::Failure;
use crate::source::{Cluster, SourceError};

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
///
/// An extension whose partners have another list, or none, is judged alone, so an approved plan could roll out alone. Therefore all
/// extensions get the list before the first one gets the digest of its plan.
pub(crate) struct JointApproval {
    lists: Vec<PlanApproval>,
    digests: Vec<PlanApproval>,
}

impl JointApproval {
    /// Reads the extensions again and prepares the approval of all plans.
    ///
    /// # Errors
    /// The plan moves fewer than two extensions, other versions than operator-controller would choose, or an extension that is gone or has
    /// another plan that waits.
    pub(crate) async fn prepare(cluster: &Cluster, joint: &JointPlan) -> Result<Self, Failure> {
        can_be_approved(joint)?;
        let (mut lists, mut digests) = (Vec::new(), Vec::new());
        for plan in &joint.plans {
            let name = plan.extension.clone().unwrap_or_default();
            let extension = existing(cluster, &name).await?;
            let [list, digest] = jointly(&name, &extension, plan, joint)?;
            lists.push(PlanApproval {
                name: name.clone(),
                approval: list,
            });
            digests.push(PlanApproval {
                name,
                approval: digest,
            });
        }
        Ok(Self { lists, digests })
    }

    /// Writes the joint plan to all extensions, then the approvals, with progress. Returns the lines about the approvals.
    ///
    /// # Errors
    /// A write fails. The message says what was written before.
    pub(crate) async fn write(&self, cluster: &Cluster) -> Result<String, Failure> {
        let mut text = String::new();
        for (place, list) in self.lists.iter().enumerate() {
            let written = list.write(cluster).await;
            progress(
                written
                    .map_err(|failure| self.stopped(failure, place, 0))?
                    .trim_end(),
            );
        }
        for (place, digest) in self.digests.iter().enumerate() {
            let written = digest.write(cluster).await;
            text.push_str(&written.map_err(|failure| self.stopped(failure, self.lists.len(), place))?);
        }
        Ok(text)
    }

    /// Adds to a failure what was written before: the joint plan to the first `lists` extensions, and the approval to the first `digests`.
    fn stopped(&self, failure: Failure, lists: usize, digests: usize) -> Failure {
        let names = |count: usize| {
            let first = self.lists.iter().take(count);
            let names: Vec<&str> = first.map(|approval| approval.name.as_str()).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let written = format!(
            "not all of the joint plan was written: spec.rollout.jointPlan of ClusterExtensions {}; spec.rollout.approvedPlan of {}. \
             Run the command again",
            names(lists),
            names(digests)
        );
        match failure {
            Failure::NegativeAnswer(text) => Failure::NegativeAnswer(format!("{text}; {written}")),
            Failure::CouldNotAsk(source) => Failure::CouldNotAsk(SourceError::Partial {
                written,
                source: Box::new(source),
            }),
            other => other,
        }
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

/// Returns the two writes to an extension: the list of the joint plan, and the digest of its own plan.
fn jointly(
    name: &str,
    extension: &ClusterExtension,
    plan: &Plan,
    joint: &JointPlan,
) -> Result<[Approval; 2], Failure> {
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
    let listed = known == Some(&members);
    let list = Approval {
        change: change(extension, name, &json!({"jointPlan": members}), !listed),
        done: format!("clusterextension/{name}: the joint plan is written"),
        plan: String::new(),
    };
    let needed = approved(extension) != Some(plan.digest.as_str());
    let digest = Approval {
        change: change(extension, name, &json!({"approvedPlan": plan.digest}), needed),
        done: format!("clusterextension/{name}: version {} is approved", plan.to.version),
        plan: String::new(),
    };
    Ok([list, digest])
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
    use std::sync::Arc;

    use axum::Router;
    use axum::body::Bytes;
    use axum::http::{Method, StatusCode, Uri};
    use axum::response::{IntoResponse as _, Json};
    use olm_plan::Pin;
    use parking_lot::Mutex;
    use serde_json::Value;

    use super::super::tests::{extension, pending};
    use super::*;
    use crate::source::stand_in;

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

    /// Approves the joint plan of kite and lamp on a cluster that refuses the write `refused` to lamp. Returns the writes and the failure.
    async fn written(refused: &'static str) -> (Vec<String>, String) {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let seen = writes.clone();
        let answer = async move |method: Method, uri: Uri, body: Bytes| {
            let name = uri.path().rsplit('/').next().unwrap_or_default().to_owned();
            if uri.path() == "/apis/olm.operatorframework.io/v1" {
                let kinds =
                    stand_in::resources(&uri.path()[6..], "ClusterExtension", "clusterextensions", false);
                return Json(kinds).into_response();
            }
            let object = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                "metadata": {"name": name, "uid": name}, "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}});
            if method == Method::PATCH {
                let patch: Value = serde_json::from_slice(&body).unwrap();
                let fields = patch["spec"]["rollout"].as_object().unwrap().keys().cloned();
                let fields = fields.collect::<Vec<_>>().join("+");
                if name == "lamp" && fields == refused {
                    let refusal = stand_in::failure(403, "no");
                    return (StatusCode::FORBIDDEN, Json(refusal)).into_response();
                }
                seen.lock().push(format!("{name} {fields}"));
            }
            Json(object).into_response()
        };
        let cluster = stand_in::serve(Router::new().fallback(answer)).await;
        let plan = |name: &str| Plan {
            extension: Some(name.to_owned()),
            digest: format!("sha256:{name}"),
            ..Plan::default()
        };
        let joint = JointPlan::new(vec![plan("kite"), plan("lamp")], Vec::new(), Vec::new());
        let approval = JointApproval::prepare(&cluster, &joint).await.unwrap();
        let failure = approval.write(&cluster).await.err();
        let failure = failure.map(|failure| failure.message()).unwrap_or_default();
        let writes = writes.lock().clone();
        (writes, failure)
    }

    #[tokio::test]
    async fn no_plan_is_approved_before_all_specs_have_the_list() {
        let (writes, failure) = written("jointPlan").await;
        assert_eq!(writes, ["kite jointPlan"]);
        assert!(
            failure.contains("jointPlan of ClusterExtensions kite; spec.rollout.approvedPlan of none"),
            "{failure}"
        );
        let (writes, failure) = written("approvedPlan").await;
        assert_eq!(writes, ["kite jointPlan", "lamp jointPlan", "kite approvedPlan"]);
        assert!(
            failure.contains("jointPlan of ClusterExtensions kite, lamp; spec.rollout.approvedPlan of kite"),
            "{failure}"
        );
        assert_eq!(written("nothing").await.0.len(), 4);
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
        let [list, digest] = jointly(
            "kite",
            &extension(&json!({}), &json!({})),
            &joint.plans[0],
            &joint,
        )
        .unwrap();
        let rollout = json!({"approvedPlan": "sha256:aa", "jointPlan": [
            {"extension": "kite", "plan": "sha256:aa"}, {"extension": "lamp", "plan": "sha256:bb"}]});
        assert!(list.change.needed && digest.change.needed);
        assert_eq!(
            list.change.object["spec"]["rollout"],
            json!({"jointPlan": rollout["jointPlan"]})
        );
        assert_eq!(
            digest.change.object["spec"]["rollout"],
            json!({"approvedPlan": "sha256:aa"})
        );
        let again = jointly("kite", &extension(&rollout, &json!({})), &joint.plans[0], &joint).unwrap();
        assert!(again.iter().all(|write| !write.change.needed));
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
