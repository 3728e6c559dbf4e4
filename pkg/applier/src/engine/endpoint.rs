//! The API of one object. A foreign name becomes part of a URL here and nowhere else in the engine.

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use olm_api::names::{Segment, check_parts};
use serde_json::Value;

use super::call::{CallError, timed};
use super::{Engine, EngineError, Id};

/// One object on the API server, whether it is there or not.
pub(super) struct Endpoint {
    api: Api<DynamicObject>,
    name: Segment,
    /// Names and scope of the kind, as the API server serves it.
    pub(super) resource: ApiResource,
}

impl Endpoint {
    pub(super) async fn read(&self) -> Result<Option<DynamicObject>, CallError> {
        timed(self.api.get_opt(&self.name)).await
    }

    pub(super) async fn apply(&self, params: &PatchParams, body: &Value) -> Result<DynamicObject, CallError> {
        timed(self.api.patch(&self.name, params, &Patch::Apply(body))).await
    }

    pub(super) async fn merge_metadata(
        &self,
        params: &PatchParams,
        metadata: &Value,
    ) -> Result<(), CallError> {
        let patch = Patch::Merge(metadata);
        timed(self.api.patch_metadata(&self.name, params, &patch))
            .await
            .map(drop)
    }

    /// Deletes the object. Returns its last metadata where the API server answers with them.
    pub(super) async fn delete(&self, params: &DeleteParams) -> Result<Option<ObjectMeta>, CallError> {
        let answer = timed(self.api.delete(&self.name, params)).await?;
        Ok(answer.either(|last| Some(last.metadata), |_| None))
    }
}

impl Engine {
    /// The endpoint with the controller's own rights: for reading.
    pub(super) async fn endpoint(&self, id: &Id) -> Result<Endpoint, EngineError> {
        self.endpoint_of(&self.client, id).await
    }

    /// The endpoint, spoken to by `client`. The API server is asked once how a kind is served.
    pub(super) async fn endpoint_of(&self, client: &Client, id: &Id) -> Result<Endpoint, EngineError> {
        let name = check_parts(&id.group, &id.version, &id.kind, &id.namespace, &id.name)
            .and_then(|()| Segment::new(&id.name))
            .map_err(|source| EngineError::name(id, source))?;
        let kind = id.watch_kind();
        let known = self.kinds.lock().get(&kind).cloned();
        let (resource, scope) = if let Some(known) = known {
            known
        } else {
            let gvk = GroupVersionKind::gvk(&id.group, &id.version, &id.kind);
            let found = timed(discovery::pinned_kind(&self.client, &gvk)).await;
            let (resource, capabilities) = found.map_err(|source| EngineError::kind(id, source))?;
            let found = (resource, capabilities.scope);
            self.kinds.lock().insert(kind, found.clone());
            found
        };
        let api = match (&scope, id.namespace.is_empty()) {
            // The namespace is a DNS label: it stands for itself.
            (Scope::Namespaced, false) => Api::namespaced_with(client.clone(), &id.namespace, &resource),
            (Scope::Cluster, true) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, true) => {
                return Err(EngineError::scope(id, "needs a namespace and has none"));
            }
            (Scope::Cluster, false) => {
                return Err(EngineError::scope(
                    id,
                    "is cluster-scoped and must not have a namespace",
                ));
            }
        };
        Ok(Endpoint { api, name, resource })
    }

    /// Forgets how a kind is served, after the API server said it is not.
    pub(super) fn forget_kind(&self, id: &Id) {
        self.kinds.lock().remove(&id.watch_kind());
    }
}
