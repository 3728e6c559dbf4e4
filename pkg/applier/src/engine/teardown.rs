//! Teardown of a revision: phases and their objects in reverse order, only objects that the revision still owns.

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, PatchParams, Preconditions};
use olm_api::condition::{external::Crd, untyped};
use olm_api::keys;
use olm_runtime::clock;
use serde_json::{Value, json};

use super::call::{CallError, run_concurrently};
use super::impersonate::RevisionClients;
use super::{Engine, EngineError, Id, PreparedObject, Removed, Revision};
use crate::custom_resources::{Fate, HeldCrd, kept_metadata};
use crate::left_behind::HeldNamespace;
use crate::ownership::{Identity, Release, has_revision_marks, heir, release};
use crate::watch::WatchState;

/// Result of one pass of a teardown.
#[derive(Debug)]
pub struct TeardownPass {
    /// CRDs that this pass left on the cluster with their custom resources. Set also if the pass failed.
    pub kept: Vec<HeldCrd>,
    /// Namespaces that this pass left on the cluster with objects of others. Set also if the pass failed.
    pub kept_namespaces: Vec<HeldNamespace>,
    /// Progress, or the errors of one phase.
    pub progress: Result<Teardown, EngineError>,
}

/// Progress of a teardown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Every object is removed.
    Complete {
        /// Objects that were skipped because no API server can store them, each with the reason.
        skipped: Vec<String>,
    },
    /// Objects of one phase are being deleted; earlier phases wait.
    Waiting {
        /// Objects that still exist.
        objects: Vec<String>,
    },
    /// These CRDs hold custom resources, and nothing was deleted because of them.
    Blocked {
        /// The CRDs, each with the number of its custom resources.
        crds: Vec<HeldCrd>,
    },
}

/// Progress of the removal of one object.
#[derive(Debug, PartialEq, Eq)]
enum Removal {
    /// The removal is complete.
    Gone,
    /// API servers cannot store the object, for this reason.
    Impossible(String),
    /// The deletion was requested.
    Requested,
    /// The object changed after it was read; no request succeeded.
    Changed,
    /// The object waits or is being deleted, and this blocks it.
    BlockedBy(String),
    /// The object, a CRD, stays with its custom resources and is no longer the revision's.
    Kept(HeldCrd),
    /// The object, a Namespace, stays with objects of others and is no longer the revision's.
    KeptNamespace(HeldNamespace),
}

/// Write that removes an object from its revision.
enum Write {
    /// Deletes the object.
    Delete,
    /// Changes the metadata of the object, which completes the removal as given. The text names the call in errors.
    Metadata(&'static str, Value, Removal),
}

impl Write {
    /// Returns the write that leaves the object on the cluster with what it holds.
    fn keep(meta: &ObjectMeta, identity: &Identity, done: Removal) -> Self {
        Self::Metadata("patching (keeping)", kept_metadata(meta, identity), done)
    }
}

/// Manner of a removal, the same for all objects of a pass.
#[derive(Clone, Copy)]
struct Mode {
    /// True if the objects stay and lose the marks of the revision.
    orphan: bool,
    /// True if an older revision gets back the objects that it still owns.
    inherits: bool,
}

/// Maximum number of attempts for an object that others change, per reconcile.
const MAX_ATTEMPTS: usize = 4;

/// Finalizer of a CRD that has custom resources.
const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Minimum interval between two nudges of a CRD whose deletion is stuck.
const NUDGE_INTERVAL: SignedDuration = SignedDuration::from_secs(20);

/// Returns true if the API server's last attempt to delete a CRD failed and a nudge is due.
///
/// The attempt fails if the CRD was changed just before (`storage is (re)initializing`). The next attempt reads a
/// stale copy, ends on the conflict, and is not retried before the resync of all CRDs every five minutes (Kubernetes
/// 1.36). Any change of the CRD except of that condition triggers a new attempt.
fn is_deletion_stuck(id: &Id, live: &DynamicObject, now: Timestamp) -> bool {
    let failed = untyped::find(&live.data, Crd::Terminating)
        .is_some_and(|condition| condition.reason == Some("InstanceDeletionFailed"));
    let nudged = live
        .annotations()
        .get(keys::DELETION_RECALLED_ANNOTATION)
        .and_then(|at| at.parse::<Timestamp>().ok());
    id.is_crd() && failed && nudged.is_none_or(|at| now.duration_since(at) >= NUDGE_INTERVAL)
}

/// Returns true if the object in the response to a deletion is gone. Services and service accounts, for example, are
/// returned in their last state; objects that are deleted later, or have finalizers, carry a deletion timestamp.
fn is_deleted(last: &ObjectMeta) -> bool {
    last.deletion_timestamp.is_none() && last.finalizers.as_deref().unwrap_or_default().is_empty()
}

/// Returns the finalizers that block the removal of an object under deletion.
fn remaining_finalizers(meta: &ObjectMeta) -> Removal {
    match meta.finalizers.as_deref().unwrap_or_default() {
        [] => Removal::Requested,
        [only] if only == CRD_FINALIZER => Removal::BlockedBy(
            "its custom resources are not gone yet; a custom resource with a finalizer is deleted after the finalizer is removed"
                .to_owned(),
        ),
        all => Removal::BlockedBy(format!("held by finalizer {}", all.join(", "))),
    }
}

/// Returns the change of the metadata that removes the marks of a revision.
fn without_marks() -> Value {
    let (label, annotation) = (keys::MANAGED_BY_LABEL, keys::REVISION_ANNOTATION);
    json!({"labels": {label: null}, "annotations": {annotation: null}})
}

/// Returns the change of the metadata that removes the owner with this uid.
fn without_owner(meta: &ObjectMeta, uid: &str) -> Value {
    let owners = meta.owner_references.iter().flatten();
    let others: Vec<_> = owners.filter(|owner| owner.uid != uid).collect();
    json!({ "ownerReferences": others })
}

/// Returns the change of the metadata that removes the owner with this uid and makes the owner `heir` the controller.
///
/// The object is never without a controller: if the heir is removed before it has applied the object again, it deletes the object.
fn handed_over(meta: &ObjectMeta, uid: &str, heir: &str) -> Value {
    let owners = meta.owner_references.iter().flatten();
    let others = owners.filter(|owner| owner.uid != uid).cloned();
    let owners: Vec<_> = others
        .map(|mut owner| {
            if owner.uid == heir {
                owner.controller = Some(true);
            }
            owner
        })
        .collect();
    json!({ "ownerReferences": owners })
}

impl Engine {
    /// Continues the teardown of the revision. With `orphan` the objects stay and lose this revision's marks.
    ///
    /// Absent objects, kinds that are not served and objects that no API server can store count as removed. The
    /// engine does not wait for namespaces: they are in the last phase, and foreign objects in them may block their
    /// deletion forever. CRDs that hold custom resources stay or block the teardown, as [`Revision::custom_resources`] says.
    /// Namespaces that hold objects of others stay. If the extension stays, an older active revision gets back the objects that it still
    /// owns.
    pub async fn teardown(&self, revision: &Revision, orphan: bool) -> TeardownPass {
        let (mut kept, mut kept_namespaces) = (Vec::new(), Vec::new());
        let progress = self.tear_down_phases(revision, orphan, &mut kept, &mut kept_namespaces);
        let progress = progress.await;
        TeardownPass {
            kept,
            kept_namespaces,
            progress,
        }
    }

    async fn tear_down_phases(
        &self,
        revision: &Revision,
        orphan: bool,
        kept: &mut Vec<HeldCrd>,
        kept_namespaces: &mut Vec<HeldNamespace>,
    ) -> Result<Teardown, EngineError> {
        self.pods.release(&revision.identity.uid);
        let clients = RevisionClients::new(self, revision);
        // Read once, before any object. If the extension is deleted later, so are the older revisions, with what they get back here.
        let inherits = revision.identity.has_heirs() && !self.extension_leaves(&revision.identity).await?;
        let mode = Mode { orphan, inherits };
        if !orphan {
            let crds = self.blocking_crds(revision, &clients).await?;
            if !crds.is_empty() {
                return Ok(Teardown::Blocked { crds });
            }
        }
        let mut skipped = Vec::new();
        for phase in revision.phases.iter().rev() {
            let items = || phase.objects.iter().rev();
            let removals = run_concurrently(
                items()
                    .map(|item| self.remove(revision, &clients, item, mode).boxed())
                    .collect(),
            )
            .await;
            let (mut waiting, mut errors) = (Vec::new(), Vec::new());
            for (item, removal) in items().zip(removals) {
                let id = &item.id;
                match removal {
                    Ok(Removal::Gone) => {}
                    Ok(Removal::Kept(crd)) => kept.push(crd),
                    Ok(Removal::KeptNamespace(namespace)) => kept_namespaces.push(namespace),
                    Ok(Removal::Impossible(reason)) => skipped.push(format!("{} ({reason})", id.report())),
                    Ok(Removal::Requested | Removal::Changed) => waiting.push(id.report()),
                    Ok(Removal::BlockedBy(by)) => waiting.push(format!("{} ({by})", id.report())),
                    Err(error) => errors.push(error),
                }
            }
            if !errors.is_empty() {
                return Err(EngineError::Multiple(errors));
            }
            if !waiting.is_empty() {
                return Ok(Teardown::Waiting { objects: waiting });
            }
        }
        Ok(Teardown::Complete { skipped })
    }

    /// Continues the removal of one object. If others change the object, the function tries again at once: no event
    /// would follow.
    async fn remove(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        item: &PreparedObject,
        mode: Mode,
    ) -> Result<Removal, EngineError> {
        for _ in 0..MAX_ATTEMPTS {
            match self.advance(revision, clients, item, mode).await? {
                Removal::Changed => {}
                removal => return Ok(removal),
            }
        }
        Ok(Removal::Changed)
    }

    async fn advance(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        item: &PreparedObject,
        mode: Mode,
    ) -> Result<Removal, EngineError> {
        let id = &item.id;
        let Mode { orphan, inherits } = mode;
        let endpoint = match self.endpoint_as(clients.reader().await?, id).await {
            Ok(endpoint) => endpoint,
            Err(EngineError::Name { source, .. }) => return Ok(Removal::Impossible(source.to_string())),
            Err(EngineError::Invalid { reason, .. }) => return Ok(Removal::Impossible(reason)),
            Err(error) if error.is_missing_kind() => return Ok(Removal::Gone),
            Err(error) => return Err(error),
        };
        if !orphan {
            match self.known(&revision.identity.uid, id) {
                Known::Gone => return Ok(Removal::Gone),
                // The owners decide.
                Known::Unchanged(_) if inherits => {}
                Known::Unchanged(preconditions) => {
                    match self.delete(revision, clients, id, preconditions).await? {
                        Removal::Changed => {}
                        removal => return Ok(removal),
                    }
                }
                Known::Nothing => {}
            }
        }
        let live = match endpoint.read().await {
            Ok(Some(live)) => live,
            Ok(None) => {
                self.record_removal(&revision.identity.uid, id, Removed::Absent);
                return Ok(Removal::Gone);
            }
            // The API was removed after discovery: a plain 404 rather than a Status.
            Err(error) if error.code() == 404 => {
                self.forget_kind(id);
                return Ok(Removal::Gone);
            }
            Err(source) => return Err(EngineError::object(id, "getting resource", source)),
        };
        let identity = &revision.identity;
        let meta = &live.metadata;
        let (uid, version) = (meta.uid.clone(), meta.resource_version.clone());
        let namespace = id.is_namespace();
        let now = clock::now();
        if let Some(heir) = heir(meta, identity).filter(|_| inherits) {
            if meta.deletion_timestamp.is_some() {
                return Ok(Removal::Gone);
            }
            let change = handed_over(meta, &identity.uid, &heir.uid);
            let write = ("patching (handing over)", change, Removal::Gone);
            return self.change_metadata(clients, id, meta, write).await;
        }
        let released = match release(meta, identity, item.protection) {
            Release::LastOwner if !orphan && self.extension_leaves(identity).await? => Release::Delete,
            released => released,
        };
        let write = match released {
            _ if orphan && !has_revision_marks(meta, identity) => return Ok(Removal::Gone),
            _ if orphan => Write::Metadata("patching (orphaning)", without_marks(), Removal::Gone),
            Release::Keep => return Ok(Removal::Gone),
            // The object goes, at the latest when finalizers of others let it, and nobody can take it over. A change of a CRD would make the
            // API server's own deletion of its custom resources fail.
            Release::RemoveOwner | Release::LastOwner if meta.deletion_timestamp.is_some() => {
                return Ok(Removal::Gone);
            }
            Release::RemoveOwner | Release::LastOwner => {
                let change = without_owner(meta, &identity.uid);
                Write::Metadata("patching (removing this owner)", change, Removal::Gone)
            }
            Release::Delete if meta.deletion_timestamp.is_none() && id.is_crd() => {
                match self.fate_of_crd(revision, clients, id, &live).await? {
                    (Fate::Keep, Some(crd)) => Write::keep(meta, identity, Removal::Kept(crd)),
                    (Fate::Wait, Some(crd)) => return Ok(Removal::BlockedBy(crd.to_string())),
                    _ => Write::Delete,
                }
            }
            Release::Delete if meta.deletion_timestamp.is_none() && namespace => {
                match self.objects_of_others(revision, clients, id).await? {
                    Some(held) => Write::keep(meta, identity, Removal::KeptNamespace(held)),
                    None => Write::Delete,
                }
            }
            Release::Delete if meta.deletion_timestamp.is_none() => Write::Delete,
            Release::Delete if namespace => return Ok(Removal::Gone),
            Release::Delete if is_deletion_stuck(id, &live, now) => Write::Metadata(
                "patching (repeating the deletion)",
                json!({"annotations": {keys::DELETION_RECALLED_ANNOTATION: now.to_string()}}),
                Removal::Requested,
            ),
            // The deletion is in progress.
            Release::Delete => return Ok(remaining_finalizers(meta)),
        };
        match write {
            Write::Metadata(call, metadata, done) => {
                self.change_metadata(clients, id, meta, (call, metadata, done))
                    .await
            }
            Write::Delete => {
                let preconditions = Preconditions {
                    uid,
                    resource_version: version,
                };
                self.delete(revision, clients, id, preconditions).await
            }
        }
    }

    /// Changes the metadata of an object, which completes its removal as given, in the state that was read. The text names the call.
    async fn change_metadata(
        &self,
        clients: &RevisionClients<'_>,
        id: &Id,
        read: &ObjectMeta,
        (call, mut metadata, done): (&'static str, Value, Removal),
    ) -> Result<Removal, EngineError> {
        metadata["uid"] = json!(read.uid);
        metadata["resourceVersion"] = json!(read.resource_version);
        let manager = PatchParams {
            field_manager: Some(keys::OBJECT_FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = json!({"metadata": metadata});
        let endpoint = self.endpoint_as(clients.writer().await?, id).await?;
        let answer = endpoint.merge_metadata(&manager, &patch).await;
        removal(id, call, answer.map(|()| done))
    }

    /// Deletes the object in the state that `preconditions` name.
    async fn delete(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        id: &Id,
        preconditions: Preconditions,
    ) -> Result<Removal, EngineError> {
        let uid = preconditions.uid.clone();
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        let endpoint = self.endpoint_as(clients.writer().await?, id).await?;
        let deleted = endpoint.delete(&params).await.map(|last| {
            if last.is_none_or(|last| is_deleted(&last)) {
                self.record_removal(&revision.identity.uid, id, Removed::Deleted(uid));
                Removal::Gone
            } else if id.is_namespace() {
                Removal::Gone
            } else {
                Removal::Requested
            }
        });
        removal(id, "deleting resource", deleted)
    }

    /// Returns what is known of an object without a read: from this process' own writes, if a reliable watch shows no others.
    ///
    /// CRDs and Namespaces are read, since what they hold decides.
    fn known(&self, revision: &str, id: &Id) -> Known {
        let state = self.watches.state(&id.watch_kind(), &id.namespace, &id.name);
        if let Some(removed) = self.removed_object(revision, id) {
            let is_gone = match &state {
                WatchState::NeverSeen(_) | WatchState::Deleted => true,
                // The event of the deletion is still to come.
                WatchState::Present(version) => {
                    matches!(removed, Removed::Deleted(Some(uid)) if uid == version.uid)
                }
                WatchState::Unknown => false,
            };
            return if is_gone { Known::Gone } else { Known::Nothing };
        }
        let (WatchState::Present(version), Some(applied)) = (state, self.applied_object(revision, id)) else {
            return Known::Nothing;
        };
        // The fingerprint covers the owners and the mark of a deletion.
        let is_ours = applied.uid == version.uid && applied.fingerprint == version.fingerprint;
        if !is_ours || id.is_crd() || id.is_namespace() {
            return Known::Nothing;
        }
        Known::Unchanged(Preconditions {
            uid: Some(version.uid),
            resource_version: Some(version.resource_version),
        })
    }
}

/// Knowledge about an object of a revision that is torn down.
enum Known {
    /// The object is gone.
    Gone,
    /// The object is in the state in which this revision applied it, apart from its status.
    Unchanged(Preconditions),
    /// The object must be read.
    Nothing,
}

/// Returns the removal that follows from the answer to the write `call`.
fn removal(id: &Id, call: &'static str, answer: Result<Removal, CallError>) -> Result<Removal, EngineError> {
    match answer {
        Ok(done) => Ok(done),
        Err(error) if error.code() == 404 => Ok(Removal::Gone),
        Err(error) if error.code() == 409 => Ok(Removal::Changed),
        Err(source) => Err(EngineError::object(id, call, source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn stuck_deletions_are_detected() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let is_stuck = |name: &str, reason: &str, nudged: Option<&str>| {
            let annotations: Value = nudged
                .map(|at| json!({keys::DELETION_RECALLED_ANNOTATION: at}))
                .into();
            let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": name,
                "metadata": {"name": "buoys.example.com", "annotations": annotations},
                "status": {"conditions": [{"type": "Terminating", "reason": reason}]}});
            let live = serde_json::from_value(crd.clone()).unwrap();
            is_deletion_stuck(&Id::of(&crd), &live, now)
        };
        let kind = "CustomResourceDefinition";
        assert!(is_stuck(kind, "InstanceDeletionFailed", None));
        assert!(!is_stuck(kind, "InstanceDeletionInProgress", None));
        assert!(!is_stuck("Buoy", "InstanceDeletionFailed", None));
        // Repeated failures: each nudge triggers a write of the API server, which must not trigger the next nudge.
        assert!(!is_stuck(
            kind,
            "InstanceDeletionFailed",
            Some("2026-01-01T00:00:55Z")
        ));
        assert!(is_stuck(
            kind,
            "InstanceDeletionFailed",
            Some("2026-01-01T00:00:40Z")
        ));
    }

    #[test]
    fn errors_name_the_call_that_failed() {
        let id = Id::of(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
        for call in ["patching (keeping)", "deleting resource"] {
            let error = removal(&id, call, Err(CallError::Timeout)).unwrap_err();
            let text = format!("v1, Kind=Namespace n: {call}");
            assert!(error.to_string().ends_with(&text), "{error}");
        }
    }

    #[test]
    fn immediate_deletions_need_no_wait() {
        let last = ObjectMeta::default();
        assert!(is_deleted(&last));
        let finalizers = Some(vec!["a.example/x".to_owned()]);
        assert!(!is_deleted(&ObjectMeta {
            finalizers,
            ..last.clone()
        }));
        let deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(!is_deleted(&ObjectMeta {
            deletion_timestamp,
            ..last
        }));
    }

    #[test]
    fn blocking_finalizers_are_reported() {
        let meta = |finalizers: &[&str]| ObjectMeta {
            finalizers: Some(finalizers.iter().map(|&name| name.to_owned()).collect()),
            ..ObjectMeta::default()
        };
        assert_eq!(remaining_finalizers(&ObjectMeta::default()), Removal::Requested);
        assert_eq!(
            remaining_finalizers(&meta(&["a.example/x", "b.example/y"])),
            Removal::BlockedBy("held by finalizer a.example/x, b.example/y".to_owned())
        );
        let Removal::BlockedBy(crd) = remaining_finalizers(&meta(&[CRD_FINALIZER])) else {
            panic!("a CRD with custom resources is held");
        };
        assert!(crd.starts_with("its custom resources are not gone"), "{crd}");
    }
}
