//! Writes of the installation and removal of the controllers.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use olm_api::names::Segment;
use olm_text::object::ObjectId;
use serde_json::Value;

use super::call::{call, find};
use super::cluster::Cluster;
use super::error::SourceError;
use super::kinds::Kinds;

/// Field manager of the objects that `install-controllers` applies.
pub(crate) const FIELD_MANAGER: &str = "kubectl-olm";

impl Cluster {
    /// Applies an object server-side. With `force`, fields of other managers are taken over. Returns the object of the
    /// cluster; none if its kind is not served.
    ///
    /// # Errors
    /// The API server refuses the object, or another manager owns one of its fields.
    pub(crate) async fn apply(
        &self,
        object: &Value,
        kinds: &Kinds,
        force: bool,
    ) -> Result<Option<DynamicObject>, SourceError> {
        let id = ObjectId::of(object);
        let (Some(api), Ok(name)) = (self.api_of(object, kinds), Segment::new(id.name)) else {
            return Ok(None);
        };
        let params = PatchParams {
            force,
            ..PatchParams::apply(FIELD_MANAGER)
        };
        let what = format!("applying {} \"{}\"", id.kind, id.name);
        call(&what, api.patch(&name, &params, &Patch::Apply(object)))
            .await
            .map(Some)
    }

    /// Deletes an object, if it is still the one with the uid of `present`. The object is gone only after its dependents, such as
    /// the pods of a Deployment.
    ///
    /// # Errors
    /// The API server refuses the deletion.
    pub(crate) async fn delete(
        &self,
        object: &Value,
        present: &DynamicObject,
        kinds: &Kinds,
    ) -> Result<(), SourceError> {
        let id = ObjectId::of(object);
        let (Some(api), Ok(name)) = (self.api_of(object, kinds), Segment::new(id.name)) else {
            return Ok(());
        };
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: present.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::foreground()
        };
        let what = format!("deleting {} \"{}\"", id.kind, id.name);
        let deletion = async { api.delete(&name, &params).await.map(Some) };
        find(&what, deletion).await.map(drop)
    }
}
