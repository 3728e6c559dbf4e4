//! Removal of an extension: its revisions first, by their own controller, then the state that is kept for the extension.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt};
use olm_api::condition::{find, reasons, types};
use olm_api::event::Reason;
use olm_api::{ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_decide::extension::History;
use olm_runtime::clock;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use olm_status::upgrade::Upgrade;

use super::{finalizers, follow, status};
use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, chain};
use crate::cluster_extension::gather::dependents;
use crate::cluster_extension::gather::revisions::revisions;
use crate::cluster_extension::revisions::RevisionStore as _;

/// Time after which a removal is reported that goes on by itself. Most are over before.
const REPORT_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// Delay before a removal is looked at again without an event.
const REMOVAL_RECHECK: Duration = Duration::from_secs(30);
/// Finalizer of `kubectl delete --cascade=orphan`, which leaves all objects on the cluster.
const ORPHAN: &str = "orphan";
/// Most revisions that a message names.
const NAMED: usize = 5;

/// State of a removal.
#[derive(Debug)]
enum Removal {
    /// All revisions are gone.
    Done,
    /// Revisions are being removed; the text names them, and what their own status says.
    Removing(String),
    /// Other extensions hold the removal up; the text names them.
    Held(String),
}

/// Reconciles an extension that is being deleted.
pub(crate) async fn reconcile(
    context: &Context,
    api: &Api<ClusterExtension>,
    extension: &ClusterExtension,
) -> Result<Action, CallError> {
    if !finalizers::held(extension) {
        return Ok(Action::await_change());
    }
    match remove(context, extension).await {
        Ok(Removal::Done) => {
            finalizers::remove(api, extension).await?;
            tracing::info!("removed");
            let note = format!(
                "everything that was installed for it is removed, except CustomResourceDefinitions that were kept with \
                 their custom resources: kubectl get crd -l {}={}",
                keys::KEPT_FROM_LABEL,
                extension.name_any()
            );
            let object = extension.object_ref(&());
            context
                .events
                .normal(object, Reason::Uninstalled.as_str(), "Remove", &note);
            Ok(Action::await_change())
        }
        Ok(Removal::Removing(_)) if let Some(left) = unreported(extension, clock::now()) => {
            Ok(Action::requeue(left))
        }
        Ok(Removal::Removing(text) | Removal::Held(text)) => {
            let written = report(context, extension, text).await?;
            Ok(Action::requeue(if written {
                REMOVAL_RECHECK
            } else {
                Duration::ZERO
            }))
        }
        Err(error) => {
            let text = format!("being deleted: {}", chain(&error));
            report(context, extension, text).await?;
            Err(error)
        }
    }
}

/// Returns the time until the removal of the extension is worth a report; `None` if it is.
fn unreported(extension: &ClusterExtension, now: Timestamp) -> Option<Duration> {
    let since = extension.metadata.deletion_timestamp.as_ref()?.0;
    let passed = now.duration_since(since);
    // The clock of the API server may be ahead.
    let is_young = !passed.is_negative() && passed < REPORT_AFTER;
    let left = is_young.then(|| REPORT_AFTER.saturating_sub(passed))?;
    Duration::try_from(left).ok()
}

/// Writes the progress of the removal to the status; returns false if the extension has changed meanwhile.
async fn report(context: &Context, extension: &ClusterExtension, text: String) -> Result<bool, CallError> {
    let uid = extension.metadata.uid.as_deref();
    let revisions = match revisions(&context.revisions, &extension.name_any(), uid).await {
        Ok(objects) => History::read(&objects).view(),
        Err(error) => Revisions::Unreadable(chain(&error)),
    };
    let outcome = Outcome {
        revisions,
        progress: Progress::Removing(text),
        deprecations: None,
        upgrade: Upgrade::NothingInstalled,
        support: None,
        catalogs: None,
        pending: None,
        windows: None,
        rolled_back: None,
    };
    status::write(context, extension, &outcome, &Time(clock::now())).await
}

/// Deletes the revisions, then the state that is kept for the extension.
async fn remove(context: &Context, extension: &ClusterExtension) -> Result<Removal, CallError> {
    let name = extension.name_any();
    if !extension.finalizers().iter().any(|finalizer| finalizer == ORPHAN) {
        let store = &context.revisions;
        let left = revisions(store, &name, extension.metadata.uid.as_deref()).await?;
        // A change of the account or of the policy for custom resources can unblock the removal.
        follow::follow(store, extension, &left).await?;
        // A deletion that has begun is finished.
        let begun = left.iter().any(|r| {
            r.metadata.deletion_timestamp.is_some() && r.spec.lifecycle_state != LifecycleState::Archived
        });
        if !begun && let Some(dependents) = dependents::of_deletion(context, extension).await? {
            return Ok(Removal::Held(format!("being deleted: {dependents}")));
        }
        let undeleted = left.iter().filter(|r| r.metadata.deletion_timestamp.is_none());
        // The newest first: a revision waits for the custom resources of a newer one only once that is being deleted, too.
        for revision in undeleted.rev() {
            let what = format!("deleting ClusterObjectSet \"{}\"", revision.name_any());
            // The uid protects a new revision of the same name.
            store.delete(what, &revision.name_any(), revision.uid()).await?;
        }
        if !left.is_empty() {
            return Ok(Removal::Removing(waiting(&left)));
        }
        store.clean(&name).await?;
    }
    context.forget(&name).await;
    Ok(Removal::Done)
}

fn waiting(left: &[ClusterObjectSet]) -> String {
    let mut names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut text = format!(
        "being deleted: waiting for the objects of {} to be removed",
        names.join(", ")
    );
    if more > 0 {
        text.push_str(" and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    // The newest revision's own condition names what holds it up.
    let newest = left.iter().max_by_key(|revision| revision.spec.revision);
    let progressing = newest.and_then(|newest| find(newest.conditions(), types::ObjectSet::Progressing));
    if let Some(condition) = progressing.filter(|found| found.reason == reasons::ObjectSet::Retrying) {
        text.push_str(": ");
        text.push_str(&condition.message);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_is_reported_once_it_takes_seconds() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let left = |deleted: Option<&str>| {
            let mut extension = ClusterExtension::new(
                "x",
                serde_json::from_value(serde_json::json!({
                "namespace": "n", "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}}))
                .unwrap(),
            );
            extension.metadata.deletion_timestamp = deleted.map(|at| Time(at.parse().unwrap()));
            unreported(&extension, now)
        };
        assert_eq!(left(None), None);
        assert_eq!(left(Some("2026-01-01T00:00:08Z")), Some(Duration::from_secs(3)));
        assert_eq!(left(Some("2026-01-01T00:00:05Z")), None);
        assert_eq!(left(Some("2026-01-01T00:00:11Z")), None, "another clock");
    }
}
