//! Writes to the cluster.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use olm_api::keys;
use olm_api::names::Segment;
use olm_text::object::ObjectId;
use serde_json::Value;

use super::call::{call, find};
use super::cluster::Cluster;
use super::error::SourceError;
use super::kinds::Kinds;

/// Field manager of everything that `kubectl olm` writes.
pub(crate) const FIELD_MANAGER: &str = "kubectl-olm";

/// Options of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Apply {
    /// Take over fields of other managers.
    pub(crate) force: bool,
    /// Let the API server check the write without storing it.
    pub(crate) dry_run: bool,
}

/// Reason why an object has no dry run.
#[derive(Debug)]
pub(crate) enum DryRunError {
    /// The user lacks a right.
    Forbidden(String),
    /// The API server or an admission policy refuses the object.
    Refused(String),
    /// The cluster cannot be read.
    Source(SourceError),
}

impl From<SourceError> for DryRunError {
    fn from(error: SourceError) -> Self {
        let SourceError::Cluster { source, .. } = &error else {
            return Self::Source(error);
        };
        let kube::Error::Api(status) = source.as_ref() else {
            return Self::Source(error);
        };
        // The authorizer names the user; admission plugins answer 403 as well, with a text of their own.
        let unauthorized = status.message.contains("User \"") && status.message.contains(" cannot ")
            || status
                .message
                .contains("attempting to grant RBAC permissions not currently held");
        match status.code {
            403 if unauthorized => Self::Forbidden(status.message.clone()),
            400 | 403 | 404 | 409 | 413 | 422 => Self::Refused(status.message.clone()),
            _ => Self::Source(error),
        }
    }
}

impl Cluster {
    /// Applies an object in a dry run, as operator-controller would. Returns the object as it would be stored; none if its name is
    /// invalid or its kind is not served.
    ///
    /// # Errors
    /// The user may not apply the object, the API server refuses it, or the cluster cannot be read.
    pub(crate) async fn dry_run(&self, object: &Value, kinds: &Kinds) -> Result<Option<Value>, DryRunError> {
        let id = ObjectId::of(object);
        let (Some(api), Ok(name)) = (self.api_of(object, kinds), Segment::new(id.name)) else {
            return Ok(None);
        };
        let params = PatchParams {
            dry_run: true,
            force: true,
            ..PatchParams::apply(keys::OBJECT_FIELD_MANAGER)
        };
        let what = format!("applying {} \"{}\" in a dry run", id.kind, id.name);
        let stored = call(&what, api.patch(&name, &params, &Patch::Apply(object))).await?;
        Ok(serde_json::to_value(stored).ok())
    }

    /// Returns the object of the cluster with the identity of `object`; none if it is absent.
    ///
    /// # Errors
    /// The user may not read the object, or the cluster cannot be read.
    pub(crate) async fn seen(&self, object: &Value, kinds: &Kinds) -> Result<Option<Value>, DryRunError> {
        let found = self.present(object, kinds).await?;
        Ok(found.and_then(|found| serde_json::to_value(found).ok()))
    }

    /// Applies an object server-side. Returns the object of the cluster; none if its kind is not served.
    ///
    /// # Errors
    /// The API server refuses the object, or another manager owns one of its fields.
    pub(crate) async fn apply(
        &self,
        object: &Value,
        kinds: &Kinds,
        options: Apply,
    ) -> Result<Option<DynamicObject>, SourceError> {
        let id = ObjectId::of(object);
        let (Some(api), Ok(name)) = (self.api_of(object, kinds), Segment::new(id.name)) else {
            return Ok(None);
        };
        let params = PatchParams {
            force: options.force,
            dry_run: options.dry_run,
            ..PatchParams::apply(FIELD_MANAGER)
        };
        let what = format!("applying {} \"{}\"", id.kind, id.name);
        call(&what, api.patch(&name, &params, &Patch::Apply(object)))
            .await
            .map(Some)
    }

    /// Merges a patch into an existing object. Returns the object of the cluster; none if it is absent or its kind is not served.
    ///
    /// # Errors
    /// The API server refuses the patch.
    pub(crate) async fn merge(
        &self,
        object: &Value,
        patch: &Value,
        kinds: &Kinds,
        dry_run: bool,
    ) -> Result<Option<DynamicObject>, SourceError> {
        let id = ObjectId::of(object);
        let (Some(api), Ok(name)) = (self.api_of(object, kinds), Segment::new(id.name)) else {
            return Ok(None);
        };
        let params = PatchParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let what = format!("changing {} \"{}\"", id.kind, id.name);
        let merging = async { api.patch(&name, &params, &Patch::Merge(patch)).await.map(Some) };
        find(&what, merging).await
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

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn error(code: u16, message: &str) -> DryRunError {
        let status = Status::failure(message, "").with_code(code);
        let source = Box::new(kube::Error::Api(Box::new(status)));
        let what = String::new();
        SourceError::Cluster { what, source }.into()
    }

    #[tokio::test]
    async fn an_absent_object_is_not_merged() {
        let kinds = super::super::stand_in::resources("example.com/v1", "Kite", "kites", false);
        let cluster = super::super::stand_in::cluster(&[("/apis/example.com/v1", 200, kinds)]).await;
        let kite =
            serde_json::json!({"apiVersion": "example.com/v1", "kind": "Kite", "metadata": {"name": "red"}});
        let kinds = cluster.kinds(std::slice::from_ref(&kite)).await.unwrap();
        assert!(kinds.of(&kite).is_some());
        assert!(
            cluster
                .merge(&kite, &kite, &kinds, false)
                .await
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn lacking_rights_are_no_refusal() {
        for message in [
            "configmaps \"a\" is forbidden: User \"u\" cannot patch resource \"configmaps\" in API group \"\"",
            "clusterroles \"r\" is forbidden: user \"u\" is attempting to grant RBAC permissions not currently held: {}",
        ] {
            assert!(matches!(error(403, message), DryRunError::Forbidden(text) if text == message));
        }
        let denied = "admission webhook \"x\" denied the request: no";
        for (code, message) in [
            (403, denied),
            (422, "invalid"),
            (404, "namespaces \"n\" not found"),
        ] {
            assert!(matches!(error(code, message), DryRunError::Refused(text) if text == message));
        }
        assert!(matches!(error(500, "broken"), DryRunError::Source(_)));
    }
}
