//! Taking a revision down: phases in reverse order, objects of a phase in reverse order, only what is still this revision's.

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, PatchParams, Preconditions};
use olm_api::keys;
use serde_json::{Value, json};

use super::actor::Writer;
use super::call::together;
use super::{Engine, EngineError, Id, Revision};
use crate::ownership::{Release, marked_by, release};

/// How far a teardown came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Nothing of the revision is left.
    Complete {
        /// Objects that were not looked for, as no API server can hold an object of that name; with the reason.
        passed: Vec<String>,
    },
    /// Some objects of a phase are on their way out; earlier phases wait for them.
    Waiting {
        /// What is waited for.
        objects: Vec<String>,
    },
}

/// How far the removal of one object came.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing is left to do.
    Gone,
    /// No API server can hold the object, for this reason.
    Passed(String),
    /// It was asked to go.
    Going,
    /// It changed since it was looked at: nothing was done.
    Changed,
    /// It is on its way out, and this holds it up.
    Held(String),
}

impl Step {
    fn done(done: bool) -> Self {
        if done { Self::Gone } else { Self::Going }
    }
}

/// How often an object that changes is looked at before it has to wait for the next round.
const LOOKS: usize = 4;

/// The finalizer that a CRD has while there are custom resources of it.
const CUSTOM_RESOURCES: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How long a deletion that was called to mind is left in peace: what makes it fail may last.
const RECALL: SignedDuration = SignedDuration::from_secs(20);

/// Whether the API server's last try to delete a CRD failed, and it is time to call it to mind again.
///
/// It fails where the CRD was changed just before (`storage is (re)initializing`), and the next try, which looks at a copy
/// that is older than its own last write, ends on the conflict and is not repeated: until the controller's round over all
/// CRDs, every five minutes (Kubernetes 1.36). Any change of the CRD but of that condition makes it look again.
fn forgotten(id: &Id, live: &DynamicObject, now: Timestamp) -> bool {
    let conditions = live.data.pointer("/status/conditions").and_then(Value::as_array);
    let failed = conditions.into_iter().flatten().any(|condition| {
        condition.get("type").is_some_and(|kind| kind == "Terminating")
            && condition
                .get("reason")
                .is_some_and(|reason| reason == "InstanceDeletionFailed")
    });
    let recalled = live
        .annotations()
        .get(keys::DELETION_RECALLED_ANNOTATION)
        .and_then(|at| at.parse::<Timestamp>().ok());
    id.kind == "CustomResourceDefinition"
        && failed
        && recalled.is_none_or(|at| now.duration_since(at) >= RECALL)
}

/// Whether an object is gone that the API server answered a deletion with. Services and service accounts, for example, are
/// told as they last were; what goes later, or by a finalizer, carries the time of its deletion.
fn at_once(last: &ObjectMeta) -> bool {
    last.deletion_timestamp.is_none() && last.finalizers.as_deref().unwrap_or_default().is_empty()
}

/// What keeps an object that is being deleted: the finalizers that are left.
fn held_by(meta: &ObjectMeta) -> Step {
    match meta.finalizers.as_deref().unwrap_or_default() {
        [] => Step::Going,
        [only] if only == CUSTOM_RESOURCES => Step::Held(
            "its custom resources are not gone yet; one with a finalizer of its own goes when that is taken off"
                .to_owned(),
        ),
        all => Step::Held(format!("held by finalizer {}", all.join(", "))),
    }
}

impl Engine {
    /// Takes the revision down one step further. With `orphan` the objects stay and lose our marks.
    ///
    /// A kind that is not served any more, an object that is gone, and one that no API server can hold, are done. A namespace is not waited for: nothing of ours comes
    /// after it, and what else lives in it may hold it for ever.
    pub async fn teardown(&self, revision: &Revision, orphan: bool) -> Result<Teardown, EngineError> {
        let writer = Writer::new(self, revision);
        let mut passed = Vec::new();
        for phase in revision.phases.iter().rev() {
            let ids: Vec<Id> = phase
                .objects
                .iter()
                .rev()
                .map(|(object, _)| Id::of(object))
                .collect();
            let steps = together(
                ids.iter()
                    .map(|id| self.remove(revision, &writer, id, orphan).boxed())
                    .collect(),
            )
            .await;
            let (mut waiting, mut errors) = (Vec::new(), Vec::new());
            for (id, step) in ids.iter().zip(steps) {
                match step {
                    Ok(Step::Gone) => {}
                    Ok(Step::Passed(why)) => passed.push(format!("{} ({why})", id.report())),
                    Ok(Step::Going | Step::Changed) => waiting.push(id.report()),
                    Ok(Step::Held(by)) => waiting.push(format!("{} ({by})", id.report())),
                    Err(error) => errors.push(error),
                }
            }
            if !errors.is_empty() {
                return Err(EngineError::Many(errors));
            }
            if !waiting.is_empty() {
                return Ok(Teardown::Waiting { objects: waiting });
            }
        }
        Ok(Teardown::Complete { passed })
    }

    /// Takes one object a step further. One that somebody else writes to is looked at again at once: no event would follow.
    async fn remove(
        &self,
        revision: &Revision,
        writer: &Writer<'_>,
        id: &Id,
        orphan: bool,
    ) -> Result<Step, EngineError> {
        for _ in 0..LOOKS {
            match self.step(revision, writer, id, orphan).await? {
                Step::Changed => {}
                step => return Ok(step),
            }
        }
        Ok(Step::Changed)
    }

    async fn step(
        &self,
        revision: &Revision,
        writer: &Writer<'_>,
        id: &Id,
        orphan: bool,
    ) -> Result<Step, EngineError> {
        let endpoint = match self.endpoint_of(writer.reader().await?, id).await {
            Ok(endpoint) => endpoint,
            Err(EngineError::Name { source, .. }) => return Ok(Step::Passed(source.to_string())),
            Err(EngineError::Invalid { why, .. }) => return Ok(Step::Passed(why)),
            Err(error) if error.is_missing_kind() => return Ok(Step::Gone),
            Err(error) => return Err(error),
        };
        let live = match endpoint.read().await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(Step::Gone),
            // The API itself went since it was discovered: a plain 404 rather than a Status.
            Err(error) if error.code() == 404 => {
                self.forget_kind(id);
                return Ok(Step::Gone);
            }
            Err(source) => return Err(EngineError::object(id, "getting resource", source)),
        };
        let us = &revision.identity;
        let meta = &live.metadata;
        let (uid, version) = (meta.uid.clone(), meta.resource_version.clone());
        let namespace = id.group.is_empty() && id.kind == "Namespace";
        let now = Timestamp::now();
        // What changes of its metadata, and whether that is all there is to do; nothing where it is to be deleted.
        let change = match release(meta, us) {
            _ if orphan && !marked_by(meta, us) => return Ok(Step::Gone),
            _ if orphan => {
                let (label, annotation) = (keys::MANAGED_BY_LABEL, keys::REVISION_ANNOTATION);
                Some((
                    json!({"labels": {label: null}, "annotations": {annotation: null}}),
                    true,
                ))
            }
            Release::Leave => return Ok(Step::Gone),
            Release::Disown => {
                let owners = meta.owner_references.iter().flatten();
                let others: Vec<_> = owners.filter(|owner| owner.uid != us.uid).collect();
                Some((json!({"ownerReferences": others}), true))
            }
            Release::Delete if meta.deletion_timestamp.is_none() => None,
            Release::Delete if namespace => return Ok(Step::Gone),
            Release::Delete if forgotten(id, &live, now) => Some((
                json!({"annotations": {keys::DELETION_RECALLED_ANNOTATION: now.to_string()}}),
                false,
            )),
            // On its way already: nothing is written, only waited.
            Release::Delete => return Ok(held_by(meta)),
        };
        let endpoint = self.endpoint_of(writer.client().await?, id).await?;
        let result = if let Some((mut metadata, done)) = change {
            metadata["uid"] = json!(uid);
            metadata["resourceVersion"] = json!(version);
            let manager = PatchParams {
                field_manager: Some(keys::OBJECT_FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let patch = json!({"metadata": metadata});
            let written = endpoint.merge_metadata(&manager, &patch).await;
            written.map(|()| done)
        } else {
            let preconditions = Preconditions {
                uid,
                resource_version: version,
            };
            let params = DeleteParams {
                preconditions: Some(preconditions),
                ..DeleteParams::background()
            };
            let deleted = endpoint.delete(&params).await;
            deleted.map(|last| namespace || last.is_none_or(|last| at_once(&last)))
        };
        match result {
            Ok(done) => Ok(Step::done(done)),
            Err(error) if error.code() == 404 => Ok(Step::Gone),
            Err(error) if error.code() == 409 => Ok(Step::Changed),
            Err(source) => Err(EngineError::object(id, "deleting resource", source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn a_deletion_that_failed_is_seen() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let seen = |name: &str, reason: &str, recalled: Option<&str>| {
            let annotations: Value = recalled
                .map(|at| json!({keys::DELETION_RECALLED_ANNOTATION: at}))
                .into();
            let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": name,
                "metadata": {"name": "buoys.example.com", "annotations": annotations},
                "status": {"conditions": [{"type": "Terminating", "reason": reason}]}});
            let live = serde_json::from_value(crd.clone()).unwrap();
            forgotten(&Id::of(&crd), &live, now)
        };
        let kind = "CustomResourceDefinition";
        assert!(seen(kind, "InstanceDeletionFailed", None));
        assert!(!seen(kind, "InstanceDeletionInProgress", None));
        assert!(!seen("Buoy", "InstanceDeletionFailed", None));
        // It may fail again and again: each write is answered by the API server's own, and must not make the next.
        assert!(!seen(
            kind,
            "InstanceDeletionFailed",
            Some("2026-01-01T00:00:55Z")
        ));
        assert!(seen(kind, "InstanceDeletionFailed", Some("2026-01-01T00:00:40Z")));
    }

    #[test]
    fn what_is_gone_at_once_needs_no_wait() {
        let last = ObjectMeta::default();
        assert!(at_once(&last));
        let finalizers = Some(vec!["a.example/x".to_owned()]);
        assert!(!at_once(&ObjectMeta {
            finalizers,
            ..last.clone()
        }));
        let deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(!at_once(&ObjectMeta {
            deletion_timestamp,
            ..last
        }));
    }

    #[test]
    fn what_holds_an_object_is_told() {
        let meta = |finalizers: &[&str]| ObjectMeta {
            finalizers: Some(finalizers.iter().map(|&name| name.to_owned()).collect()),
            ..ObjectMeta::default()
        };
        assert_eq!(held_by(&ObjectMeta::default()), Step::Going);
        assert_eq!(
            held_by(&meta(&["a.example/x", "b.example/y"])),
            Step::Held("held by finalizer a.example/x, b.example/y".to_owned())
        );
        let Step::Held(crd) = held_by(&meta(&[CUSTOM_RESOURCES])) else {
            panic!("a CRD with custom resources is held");
        };
        assert!(crd.starts_with("its custom resources are not gone"), "{crd}");
    }
}
