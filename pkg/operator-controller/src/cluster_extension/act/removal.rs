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

use super::{finalizers, follow, status, take_over};
use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, chain};
use crate::cluster_extension::gather::dependents;
use crate::cluster_extension::gather::release::{self, RevisionsError};
use crate::cluster_extension::gather::revisions::revisions;
use crate::cluster_extension::pass::Pass;
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
        let mut left = revisions(store, &name, extension.metadata.uid.as_deref()).await?;
        if left.is_empty() {
            match take_over(context, extension).await {
                Ok(taken) => left.extend(taken),
                Err(error) => return stopped(error),
            }
        }
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
        if undeleted.clone().next().is_some()
            && let Err(error) = mark_release(context, extension, &left).await
        {
            return stopped(error);
        }
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

/// Returns a revision of the Helm release of upstream's former runtime, if the extension has nothing but that, so that the removal of the
/// revision keeps what the extension asks to keep. The garbage collector would delete all objects of the release with the extension.
async fn take_over(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<Option<ClusterObjectSet>, RevisionsError> {
    // The release of an extension that had a revision is marked; this saves a request.
    let status = extension.status.as_ref();
    if status.is_some_and(|status| status.active_revisions.is_some()) {
        return Ok(None);
    }
    let pass = Pass::new(context, extension, clock::now());
    match release::deployed(context, &pass.name, extension.metadata.uid.as_deref()).await? {
        Some(release) => Ok(Some(take_over::create(&pass, &release).await?)),
        None => Ok(None),
    }
}

/// Marks the release that the extension was installed from, before its revisions go: it must not be taken over after them.
async fn mark_release(
    context: &Context,
    extension: &ClusterExtension,
    left: &[ClusterObjectSet],
) -> Result<(), RevisionsError> {
    let Some(newest) = left.last().filter(|_| may_be_from_release(left)) else {
        return Ok(());
    };
    let (name, uid) = (extension.name_any(), extension.metadata.uid.as_deref());
    match release::unmarked(context, &name, uid).await? {
        Some(release) => take_over::mark_taken_over(context.secrets.api(), &release, newest).await,
        None => Ok(()),
    }
}

/// Returns false if the first revision is among these and has not been made from a release.
fn may_be_from_release(revisions: &[ClusterObjectSet]) -> bool {
    let first = revisions.iter().find(|revision| revision.spec.revision == 1);
    first.is_none_or(|first| first.labels().contains_key(keys::MIGRATED_FROM_HELM_LABEL))
}

/// Returns the removal that waits for a release which can be taken over; an error of a call is retried.
fn stopped(error: RevisionsError) -> Result<Removal, CallError> {
    match error {
        RevisionsError::Call(error) => Err(error),
        error => Ok(Removal::Held(format!(
            "being deleted: {}; its objects would go with the ClusterExtension, CustomResourceDefinitions and all custom \
             resources included. Mend the Secret of the release, or delete the Secret if everything may go",
            chain(&error)
        ))),
    }
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
    fn only_revisions_after_an_ordinary_first_one_rule_a_release_out() {
        let revision = |number: i64, helm: bool| -> ClusterObjectSet {
            let labels = helm.then(|| serde_json::json!({keys::MIGRATED_FROM_HELM_LABEL: "true"}));
            serde_json::from_value(serde_json::json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": format!("x-{number}"), "labels": labels},
                "spec": {"lifecycleState": "Active", "revision": number, "collisionProtection": "Prevent"}}))
            .unwrap()
        };
        assert!(!may_be_from_release(&[revision(1, false), revision(2, false)]));
        assert!(may_be_from_release(&[revision(1, true), revision(2, false)]));
        assert!(
            may_be_from_release(&[revision(2, false)]),
            "the first one is pruned"
        );
    }

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
