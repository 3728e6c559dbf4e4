//! Reads and writes about custom resources: the deletion of an extension, and the stored versions of a CRD.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use olm_api::{ClusterExtension, CustomResourcePolicy};
use olm_applier::custom_resources::Count;
use olm_applier::engine::{CallError, count_custom_resources};
use serde_json::{Value, json};

use super::call::{call, find};
use super::cluster::Cluster;
use super::error::SourceError;
use super::write::FIELD_MANAGER;

impl Cluster {
    /// Returns the number of custom resources of a CRD of the cluster.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn custom_resources(&self, crd: &DynamicObject) -> Result<Count, SourceError> {
        let what = || format!("counting the custom resources of {}", crd.name_any());
        count_custom_resources(self.client(), crd)
            .await
            .map_err(|error| match error {
                CallError::Kube(source) => SourceError::Cluster { what: what(), source },
                _ => SourceError::Slow { what: what() },
            })
    }

    /// Writes `spec.deletion.customResources`. Returns false if the cluster's API has no such field.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub(crate) async fn set_custom_resources(
        &self,
        extension: &ClusterExtension,
        policy: CustomResourcePolicy,
    ) -> Result<bool, SourceError> {
        let name = extension.name_any();
        let patch =
            json!({"metadata": {"uid": extension.uid()}, "spec": {"deletion": {"customResources": policy}}});
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api: Api<ClusterExtension> = Api::all(self.client().clone());
        let what = format!("setting spec.deletion.customResources of ClusterExtension \"{name}\"");
        let written = call(&what, api.patch(&name, &params, &Patch::Merge(&patch))).await?;
        let deletion = written.spec.deletion.as_ref();
        Ok(deletion.and_then(|deletion| deletion.custom_resources) == Some(policy))
    }

    /// Sets `status.storedVersions` of a CRD to one version, if the CRD is still as in `present`.
    ///
    /// # Errors
    /// The CRD changed, or the API server refuses the change.
    pub(crate) async fn set_stored_versions(
        &self,
        name: &str,
        present: &Value,
        version: &str,
    ) -> Result<(), SourceError> {
        let metadata = present.get("metadata");
        let of_present = |key: &str| metadata.and_then(|metadata| metadata.get(key)).cloned();
        let patch = json!({
            "metadata": {"uid": of_present("uid"), "resourceVersion": of_present("resourceVersion")},
            "status": {"storedVersions": [version]},
        });
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api: Api<CustomResourceDefinition> = Api::all(self.client().clone());
        let what =
            format!("removing versions from status.storedVersions of CustomResourceDefinition \"{name}\"");
        call(&what, api.patch_status(name, &params, &Patch::Merge(&patch)))
            .await
            .map(drop)
    }

    /// Requests the deletion of an extension, if it is still the one with this uid.
    ///
    /// # Errors
    /// The API server refuses the deletion.
    pub(crate) async fn delete_extension(&self, extension: &ClusterExtension) -> Result<(), SourceError> {
        let name = extension.name_any();
        // In the foreground, the garbage collector would delete the objects itself, CRDs with custom resources included.
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: extension.uid(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let api: Api<ClusterExtension> = Api::all(self.client().clone());
        let what = format!("deleting ClusterExtension \"{name}\"");
        find(&what, async { api.delete(&name, &params).await.map(Some) })
            .await
            .map(drop)
    }
}
