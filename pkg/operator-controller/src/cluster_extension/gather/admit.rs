//! Reads what the admission of a new revision depends on: the objects of the newest revision, the installed operator's condition
//! and the approver.

use kube::Api;
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
use super::stores::Stores;
use super::upgradeable::{self, Held};
use super::verify::Verified;
use crate::cluster_extension::call::call;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Verified objects that may be written now; the only value that [`act`](super::super::act) creates a revision from.
pub(crate) struct Admitted<'a> {
    rendered: Rendered<'a>,
    /// Approval of the plan, if one was required.
    pub approval: Option<Approval>,
    /// Digest of the plan; none if `spec.rollout` has no conditions.
    pub digest: Option<String>,
}

impl<'a> Admitted<'a> {
    /// Returns the objects and the approval.
    pub(crate) fn into_parts(self) -> (Rendered<'a>, Option<Approval>) {
        (self.rendered, self.approval)
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
            approval: None,
            digest: None,
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
    // Read again: the approval may have been withdrawn, or the extension paused, while its image was pulled.
    let api: Api<ClusterExtension> = Api::all(pass.context.shared.client.clone());
    let what = format!("reading ClusterExtension \"{}\"", pass.name);
    let live = call(what, api.get_opt(&pass.name)).await?;
    let live = current(&pass.context.stores, pass.extension, live)?;
    let approval = (!causes.is_empty()).then(|| Approval {
        digest: plan.digest.clone(),
        causes,
        approvers: approvers(live.metadata.managed_fields.as_deref().unwrap_or_default()),
    });
    Ok(Ok(Admitted {
        rendered,
        approval,
        digest: Some(plan.digest),
    }))
}

/// Returns `live` if it is `extension` with the same spec. Otherwise the next pass follows at once and must not start from a watch that is
/// still behind `live`.
fn current(
    stores: &Stores,
    extension: &ClusterExtension,
    live: Option<ClusterExtension>,
) -> Result<ClusterExtension, Failure> {
    let live = live.ok_or(Failure::Superseded)?;
    let (read, now) = (&extension.metadata, &live.metadata);
    if now.uid == read.uid && now.generation == read.generation {
        return Ok(live);
    }
    stores.wrote(&live);
    Err(Failure::Superseded)
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

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_watch_behind_a_changed_spec_is_not_asked_again() {
        let read = |version: &str, generation: i64| {
            json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": version, "generation": generation},
                "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}})
        };
        let extension = |version, generation| serde_json::from_value(read(version, generation)).unwrap();
        let (stores, mut writers) = Stores::new();
        let shown = serde_json::from_value(read("7", 1)).unwrap();
        writers.extensions.apply_watcher_event(&Event::Apply(shown));
        let started = stores.extension("x").unwrap();
        assert!(current(&stores, &started, Some(extension("8", 1))).is_ok());
        assert!(stores.extension("x").is_some());

        let changed = current(&stores, &started, Some(extension("9", 2)));
        assert!(matches!(changed, Err(Failure::Superseded)));
        assert!(stores.extension("x").is_none(), "the watch is behind");
        assert!(matches!(
            current(&stores, &started, None),
            Err(Failure::Superseded)
        ));
    }
}
