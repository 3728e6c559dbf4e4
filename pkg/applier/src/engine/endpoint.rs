//! API endpoint of one object. In the engine, foreign names become parts of a URL in this module only.

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use olm_api::names::{Segment, check_parts};
use serde_json::Value;

use super::call::{CallError, timed};
use super::{Engine, EngineError, Id};

/// API endpoint of an object that may or may not exist.
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

    /// Deletes the object. Returns its last metadata if the API server responds with them.
    pub(super) async fn delete(&self, params: &DeleteParams) -> Result<Option<ObjectMeta>, CallError> {
        let answer = timed(self.api.delete(&self.name, params)).await?;
        Ok(answer.either(|last| Some(last.metadata), |_| None))
    }
}

impl Engine {
    /// Returns the endpoint with the controller's own rights, for reads.
    pub(super) async fn endpoint(&self, id: &Id) -> Result<Endpoint, EngineError> {
        self.endpoint_as(&self.client, id).await
    }

    /// Returns the endpoint with the rights of `client`. Discovery runs once per kind, and again if the scope that it found does not
    /// fit the object: a CRD that is deleted and created again may have another scope.
    pub(super) async fn endpoint_as(&self, client: &Client, id: &Id) -> Result<Endpoint, EngineError> {
        let name = check_parts(&id.group, &id.version, &id.kind, &id.namespace, &id.name)
            .and_then(|()| Segment::new(&id.name))
            .map_err(|source| EngineError::name(id, source))?;
        let kind = id.watch_kind();
        let namespaced = !id.namespace.is_empty();
        let fits = |scope: &Scope| (*scope == Scope::Namespaced) == namespaced;
        let cached = self.kinds.lock().get(&kind).cloned();
        let cached = cached.filter(|(_, scope)| fits(scope));
        let (resource, scope) = if let Some(cached) = cached {
            cached
        } else {
            let gvk = GroupVersionKind::gvk(&id.group, &id.version, &id.kind);
            let discovered = timed(discovery::pinned_kind(&self.client, &gvk)).await;
            let (resource, capabilities) = discovered.map_err(|source| EngineError::kind(id, source))?;
            let discovered = (resource, capabilities.scope);
            self.kinds.lock().insert(kind, discovered.clone());
            discovered
        };
        let api = match (&scope, namespaced) {
            // The namespace is a DNS label and needs no escaping.
            (Scope::Namespaced, true) => Api::namespaced_with(client.clone(), &id.namespace, &resource),
            (Scope::Cluster, false) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, false) => {
                return Err(EngineError::scope(id, "needs a namespace and has none"));
            }
            (Scope::Cluster, true) => {
                return Err(EngineError::scope(
                    id,
                    "is cluster-scoped and must not have a namespace",
                ));
            }
        };
        Ok(Endpoint { api, name, resource })
    }

    /// Removes the cached discovery of a kind, after the API server reported that it is not served.
    pub(super) fn forget_kind(&self, id: &Id) {
        self.kinds.lock().remove(&id.watch_kind());
    }
}
