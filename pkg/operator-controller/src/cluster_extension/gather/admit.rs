//! Reads what the admission of a new revision depends on: the objects of the newest revision and the installed operator's condition.

use olm_api::{ApprovalCause, ClusterExtension};
use olm_decide::extension::admission::{self, Admission, Circumstances, Waiting};
use olm_decide::extension::approver::{Approver, approvers};
use olm_decide::extension::desired_state::NewRevision;
use olm_decide::extension::identity::config;
use olm_decide::extension::plan::{Wanted, plan};
use olm_decide::extension::{BundleRef, History, hold};
use olm_plan::Plan;
use olm_rollout::Windows;

use super::crds;
use super::previous::previous;
use super::render::Rendered;
use super::upgradeable::{self, Held};
use super::verify::Verified;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Verified objects that may be written now; the only value that [`act`](super::super::act) creates a revision from.
pub(crate) struct Admitted<'a> {
    rendered: Rendered<'a>,
    /// Digest of the plan; none if `spec.rollout` has no conditions.
    pub digest: Option<String>,
    /// Settings that required the approval of the plan, which is given; empty if none did.
    causes: Vec<ApprovalCause>,
}

impl<'a> Admitted<'a> {
    /// Returns the objects, and the approval of the plan if one was required. `live` is the extension as it is now, with its field managers.
    pub(crate) fn into_parts(self, live: &ClusterExtension) -> (Rendered<'a>, Option<Approval>) {
        let managers = live.metadata.managed_fields.as_deref().unwrap_or_default();
        let approval = self
            .digest
            .filter(|_| !self.causes.is_empty())
            .map(|digest| Approval {
                digest,
                causes: self.causes,
                approvers: approvers(managers),
            });
        (self.rendered, approval)
    }
}

/// Approval of a plan.
pub(crate) struct Approval {
    /// Digest of the plan.
    pub digest: String,
    /// Settings that required the approval.
    pub causes: Vec<ApprovalCause>,
    /// Field managers that set the digest.
    pub approvers: Vec<Approver>,
}

/// Admits the verified objects if `spec.rollout` and the installed operator permit their rollout now.
pub(crate) async fn admit<'a>(
    pass: &Pass<'_>,
    windows: &Windows,
    new: &NewRevision,
    history: &History,
    verified: Verified<'a>,
) -> Result<Result<Admitted<'a>, Box<Waiting>>, Failure> {
    let rendered = verified.into_rendered();
    let bundle = &rendered.located.resolved.bundle;
    let gated = pass
        .extension
        .spec
        .rollout
        .as_ref()
        .filter(|rollout| olm_rollout::is_gated(rollout));
    let Some(rollout) = gated else {
        if let Some(held) = upgradeable::held(pass, history, bundle).await? {
            let plan = plan_of(pass, history, &rendered).await?;
            return Ok(Err(wait_for_operator(pass, bundle, &plan, held)));
        }
        return Ok(Ok(Admitted {
            rendered,
            digest: None,
            causes: Vec::new(),
        }));
    };
    let plan = plan_of(pass, history, &rendered).await?;
    let at = Circumstances {
        extension: &pass.name,
        rollout,
        windows,
        history,
        now: pass.now,
    };
    let causes = match admission::admission(&at, new, bundle, &plan) {
        Admission::Waiting(waiting) => return Ok(Err(Box::new(waiting))),
        Admission::Granted(causes) => causes,
    };
    if let Some(held) = upgradeable::held(pass, history, bundle).await? {
        return Ok(Err(wait_for_operator(pass, bundle, &plan, held)));
    }
    Ok(Ok(Admitted {
        rendered,
        digest: Some(plan.digest),
        causes,
    }))
}

/// Returns the plan of the rendered objects after the newest revision.
async fn plan_of(pass: &Pass<'_>, history: &History, rendered: &Rendered<'_>) -> Result<Plan, Failure> {
    let newest = match history.newest() {
        Some(newest) => Some(previous(&pass.context.revisions, newest).await?),
        None => None,
    };
    let wanted = Wanted {
        extension: &pass.name,
        namespace: &rendered.namespace,
        config: config(pass.extension),
        bundle: &rendered.located.resolved.bundle,
        image: &rendered.located.image,
        objects: rendered.objects.clone(),
        crd_rules: crds::rules(&pass.context.features),
    };
    Ok(plan(wanted, newest))
}

/// Watches the object by which the installed operator holds `plan`.
fn wait_for_operator(pass: &Pass<'_>, bundle: &BundleRef, plan: &Plan, held: Held) -> Box<Waiting> {
    let waiting = hold::waiting(bundle, plan, &held.object, &held.hold);
    pass.context.hold_watches.watch(&pass.name, held.holder);
    Box::new(waiting)
}
