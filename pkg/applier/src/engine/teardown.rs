//! Taking a revision down: phases in reverse order, objects of a phase in reverse order, only what is still this revision's.

use futures::FutureExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use olm_api::keys;
use serde_json::json;

use super::actor::Writer;
use super::call::{timed, together};
use super::{Engine, EngineError, Id, Revision};
use crate::ownership::{Release, marked_by, release};

/// How far a teardown came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Nothing of the revision is left.
    Complete,
    /// Some objects of a phase are on their way out; earlier phases wait for them.
    Waiting {
        /// What is waited for.
        objects: Vec<String>,
    },
}

impl Engine {
    /// Takes the revision down one step further. With `orphan` the objects stay and lose our marks.
    ///
    /// A kind that is not served any more, and an object that is gone, are done. A namespace is not waited for: nothing of ours comes
    /// after it, and what else lives in it may hold it for ever.
    pub async fn teardown(&self, revision: &Revision, orphan: bool) -> Result<Teardown, EngineError> {
        let writer = Writer::new(self, revision);
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
                    Ok(true) => {}
                    Ok(false) => waiting.push(id.report()),
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
        Ok(Teardown::Complete)
    }

    /// Whether nothing is left to do for the object.
    async fn remove(
        &self,
        revision: &Revision,
        writer: &Writer<'_>,
        id: &Id,
        orphan: bool,
    ) -> Result<bool, EngineError> {
        let api = match self.api(id).await {
            Ok((api, _)) => api,
            Err(error) if error.is_missing_kind() || matches!(error, EngineError::Invalid { .. }) => {
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let live = match timed(api.get_opt(&id.name)).await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(true),
            // The API itself went since it was discovered: a plain 404 rather than a Status.
            Err(error) if error.code() == 404 => {
                self.forget_kind(id);
                return Ok(true);
            }
            Err(source) => return Err(EngineError::object(id, "getting resource", source)),
        };
        let us = &revision.identity;
        let (uid, version) = (live.metadata.uid.clone(), live.metadata.resource_version.clone());
        let manager = PatchParams {
            field_manager: Some(keys::OBJECT_FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let namespace = id.group.is_empty() && id.kind == "Namespace";
        let action = release(&live.metadata, us);
        let settled = match action {
            _ if orphan => !marked_by(&live.metadata, us),
            Release::Leave => true,
            // On its way already: nothing is written, only waited.
            Release::Delete if live.metadata.deletion_timestamp.is_some() => return Ok(namespace),
            Release::Delete | Release::Disown => false,
        };
        if settled {
            return Ok(true);
        }
        let (api, _) = self.api_of(writer.client().await?, id).await?;
        let result = match action {
            _ if orphan => {
                let patch = json!({"metadata": {"uid": uid, "resourceVersion": version,
                    "labels": {keys::MANAGED_BY_LABEL: null}, "annotations": {keys::REVISION_ANNOTATION: null}}});
                timed(api.patch_metadata(&id.name, &manager, &Patch::Merge(&patch)))
                    .await
                    .map(|_| true)
            }
            Release::Leave => Ok(true),
            Release::Delete => {
                let preconditions = Preconditions {
                    uid,
                    resource_version: version,
                };
                let params = DeleteParams {
                    preconditions: Some(preconditions),
                    ..DeleteParams::background()
                };
                timed(api.delete(&id.name, &params))
                    .await
                    .map(|answer| answer.is_right() || namespace)
            }
            Release::Disown => {
                let owners: Vec<_> = live
                    .metadata
                    .owner_references
                    .iter()
                    .flatten()
                    .filter(|o| o.uid != us.uid)
                    .collect();
                let patch =
                    json!({"metadata": {"uid": uid, "resourceVersion": version, "ownerReferences": owners}});
                timed(api.patch_metadata(&id.name, &manager, &Patch::Merge(&patch)))
                    .await
                    .map(|_| true)
            }
        };
        match result {
            Ok(done) => Ok(done),
            Err(error) if error.code() == 404 => Ok(true),
            // It changed since it was looked at: look again.
            Err(error) if error.code() == 409 => Ok(false),
            Err(source) => Err(EngineError::object(id, "deleting resource", source)),
        }
    }
}
