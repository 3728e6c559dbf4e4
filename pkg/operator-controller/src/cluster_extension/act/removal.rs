//! Removal of an extension: its revisions first, by their own controller, then the state that is kept for the extension.

mod progress;

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt};
use olm_api::event::Reason;
use olm_api::{ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_decide::extension::History;
use olm_decide::object_set::is_held;
use olm_runtime::clock;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use olm_status::upgrade::Upgrade;

use self::progress::{unreported, waiting};
use super::{finalizers, follow, status, take_over};
use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, chain};
use crate::cluster_extension::gather::dependents;
use crate::cluster_extension::gather::release::{self, Deployed, RevisionsError};
use crate::cluster_extension::gather::revisions::{named, revisions};
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore;

/// Delay before a removal is looked at again without an event.
const REMOVAL_RECHECK: Duration = Duration::from_secs(30);
/// Finalizer of `kubectl delete --cascade=orphan`, which leaves all objects on the cluster.
const ORPHAN: &str = "orphan";

/// State of a removal.
#[derive(Debug)]
enum Removal {
    /// All revisions are gone.
    Done,
    /// Revisions are being removed.
    Removing {
        /// Names of the revisions, and what their own status says.
        text: String,
        /// Time until the removal is worth a report; `None` if it is.
        unreported: Option<Duration>,
    },
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
    let delay = match remove(context, extension).await {
        Ok(Removal::Done) => {
            finalizers::remove(api, extension).await?;
            tracing::info!("removed");
            let note = gone(extension);
            let object = extension.object_ref(&());
            context
                .events
                .normal(object, Reason::Uninstalled.as_str(), "Remove", &note);
            return Ok(Action::await_change());
        }
        Ok(Removal::Removing {
            unreported: Some(left),
            ..
        }) => left,
        Ok(Removal::Removing { text, .. } | Removal::Held(text)) => {
            if report(context, extension, text).await? {
                REMOVAL_RECHECK
            } else {
                Duration::ZERO
            }
        }
        Err(error) => {
            let text = format!("being deleted: {}", chain(&error));
            report(context, extension, text).await?;
            return Err(error);
        }
    };
    // What failed before the deletion is no failure of the removal. After the report: a status that the API server refuses is one.
    context.backoff.clear(&extension.name_any());
    Ok(Action::requeue(delay))
}

/// Returns true if the objects of the extension stay.
fn is_orphaning(extension: &ClusterExtension) -> bool {
    extension.finalizers().iter().any(|finalizer| finalizer == ORPHAN)
}

/// Returns the text of the event after the removal.
fn gone(extension: &ClusterExtension) -> String {
    if is_orphaning(extension) {
        return "everything that was installed for it stays on the cluster, because it was deleted with --cascade=orphan"
            .to_owned();
    }
    let status = extension.status.as_ref();
    let install = status.and_then(|status| status.install.as_ref());
    let (namespace, kinds) = match install.and_then(|install| install.namespace.as_deref()) {
        Some(created) => (
            format!(" and Namespace \"{created}\" if it was kept with objects of others"),
            "crd,namespace",
        ),
        None => (String::new(), "crd"),
    };
    format!(
        "everything that was installed for it is removed, except CustomResourceDefinitions that were kept with their custom \
         resources{namespace}: kubectl get {kinds} -l {}={}",
        keys::KEPT_FROM_LABEL,
        extension.name_any()
    )
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
    if !is_orphaning(extension) {
        let store = &context.revisions;
        let mut left = revisions(store, &name, extension.metadata.uid.as_deref()).await?;
        if left.is_empty() {
            match unseen(context, extension).await {
                Ok(unseen) => left = unseen,
                Err(error) => return stopped(error),
            }
        }
        // A change of the account or of the policy for custom resources can unblock the removal.
        follow::follow(store, extension, &left).await?;
        // A deletion that has begun is finished.
        let begun = left
            .iter()
            .any(|r| !is_undeleted(r) && r.spec.lifecycle_state != LifecycleState::Archived);
        if !begun && let Some(dependents) = dependents::of_deletion(context, extension).await? {
            return Ok(Removal::Held(format!("being deleted: {dependents}")));
        }
        if left.iter().any(is_undeleted)
            && let Err(error) = mark_release(context, extension, &left).await
        {
            return stopped(error);
        }
        delete(store, &left).await?;
        if !left.is_empty() {
            return Ok(Removal::Removing {
                text: waiting(&left),
                unreported: unreported(extension, &left, clock::now()),
            });
        }
        store.clean(&name, extension.metadata.uid.as_deref()).await?;
    }
    context.forget(&name).await;
    Ok(Removal::Done)
}

/// Deletes the revisions that are not being deleted.
///
/// The newest goes first: a revision waits for the custom resources of a newer one only once that is being deleted, too. Archived ones that
/// have no objects left wait for nothing, and go side by side.
async fn delete(store: &impl RevisionStore, left: &[ClusterObjectSet]) -> Result<(), CallError> {
    let delete = |revision: &ClusterObjectSet| {
        let (name, uid) = (revision.name_any(), revision.uid());
        let what = format!("deleting ClusterObjectSet \"{name}\"");
        // The uid protects a new revision of the same name.
        async move { store.delete(what, &name, uid).await }
    };
    let undeleted = left.iter().filter(|revision| is_undeleted(revision)).rev();
    let (empty, others): (Vec<_>, Vec<_>) = undeleted.partition(|revision| is_empty(revision));
    for revision in others {
        delete(revision).await?;
    }
    try_join_all(empty.into_iter().map(delete)).await.map(drop)
}

fn is_undeleted(revision: &ClusterObjectSet) -> bool {
    revision.metadata.deletion_timestamp.is_none()
}

/// Returns true for an archived revision whose objects are gone.
fn is_empty(revision: &ClusterObjectSet) -> bool {
    revision.spec.lifecycle_state == LifecycleState::Archived && !is_held(revision)
}

/// Returns the revisions of an extension for which the store shows none.
///
/// The store may not show yet what another process wrote that led until now, and the extension must not go before its revisions: the garbage
/// collector would delete all that is still owned by the extension. So the revisions that the status names, or the Helm release of
/// upstream's former runtime, are read. A release that nothing has taken over becomes a revision, so that its removal keeps what the
/// extension asks to keep.
async fn unseen(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<Vec<ClusterObjectSet>, RevisionsError> {
    let (store, uid) = (&context.revisions, extension.metadata.uid.as_deref());
    let status = extension.status.as_ref();
    // The release of an extension that had a revision is marked; this saves a request.
    if let Some(active) = status.and_then(|status| status.active_revisions.as_ref()) {
        let names: Vec<&str> = active.iter().map(|revision| revision.name.as_str()).collect();
        return Ok(named(store, &names, uid).await?);
    }
    let pass = Pass::new(context, extension, clock::now());
    match release::deployed(context, &pass.name, uid).await? {
        Deployed::None => Ok(Vec::new()),
        Deployed::Release(release) => Ok(vec![take_over::create(&pass, &release).await?]),
        Deployed::TakenOver(revision) => Ok(named(store, &[revision.as_str()], uid).await?),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::progress::tests::revision_with;
    use super::*;
    use crate::cluster_extension::revisions::memory::MemoryRevisions;

    #[test]
    fn only_revisions_after_an_ordinary_first_one_rule_a_release_out() {
        let revision = |number: i64, helm: bool| {
            let labels = helm.then(|| json!({keys::MIGRATED_FROM_HELM_LABEL: "true"}));
            revision_with(number, &json!({"metadata": {"labels": labels}}))
        };
        assert!(!may_be_from_release(&[revision(1, false), revision(2, false)]));
        assert!(may_be_from_release(&[revision(1, true), revision(2, false)]));
        assert!(
            may_be_from_release(&[revision(2, false)]),
            "the first one is pruned"
        );
    }

    #[test]
    fn the_last_event_names_what_stays() {
        let deleted = |finalizers: &[&str], status: serde_json::Value| -> ClusterExtension {
            serde_json::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                "metadata": {"name": "x", "finalizers": finalizers},
                "spec": {"source": {"sourceType": "Catalog"}}, "status": status,
            }))
            .unwrap()
        };
        let install = json!({"install": {"bundle": {"name": "a", "version": "1.0.0"}}});
        let plain = gone(&deleted(&[], install.clone()));
        assert!(
            plain.ends_with("kubectl get crd -l olm.operatorframework.io/kept-from=x"),
            "{plain}"
        );
        let mut created = install;
        created["install"]["namespace"] = json!("a-system");
        let with_namespace = gone(&deleted(&[], created.clone()));
        assert!(
            with_namespace.contains("Namespace \"a-system\" if it was kept")
                && with_namespace.contains("kubectl get crd,namespace -l"),
            "{with_namespace}"
        );
        let orphaned = gone(&deleted(&[ORPHAN], created));
        assert!(
            orphaned.contains("stays on the cluster") && !orphaned.contains("removed"),
            "{orphaned}"
        );
    }

    #[tokio::test]
    async fn the_newest_revision_is_deleted_first_and_empty_ones_last() {
        let revision = |number: i64, state: &str, held: bool, deleted: bool| {
            let finalizers = held.then_some([keys::TEARDOWN_FINALIZER]);
            let at = deleted.then_some("2026-01-01T00:00:00Z");
            let spec = json!({"lifecycleState": state, "revision": number, "collisionProtection": "Prevent"});
            revision_with(
                number,
                &json!({"metadata": {"finalizers": finalizers, "deletionTimestamp": at}, "spec": spec}),
            )
        };
        let left = [
            revision(1, "Archived", false, false),
            revision(2, "Archived", false, false),
            revision(3, "Archived", true, false),
            revision(4, "Active", true, true),
            revision(5, "Active", true, false),
            revision(6, "Active", false, false),
        ];
        let store = MemoryRevisions::new(left.to_vec());
        delete(&store, &left).await.unwrap();
        let expected = [6, 5, 3, 2, 1].map(|number| format!("deleting ClusterObjectSet \"x-{number}\""));
        assert_eq!(store.writes(), expected);
    }
}
