//! Secrets that hold the objects of a revision.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use olm_api::ClusterObjectSet;
use serde_json::json;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};

/// Creates the Secrets of a revision. Secrets of an interrupted attempt stay: they have the same content.
pub(super) async fn create_secrets(context: &Context, secrets: &[Secret]) -> Result<(), CallError> {
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &context.shared.system_namespace);
    for secret in secrets {
        let what = format!("creating ref Secret \"{}\"", secret.name_any());
        match call(what, api.create(&PostParams::default(), secret)).await {
            Err(error) if !error.is_already_exists() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the revision the owner of its Secrets, so that they are deleted with it.
pub(super) async fn own_secrets(
    context: &Context,
    secrets: &[Secret],
    revision: &ClusterObjectSet,
) -> Result<(), CallError> {
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &context.shared.system_namespace);
    let ownership = json!({ "metadata": { "ownerReferences": [reference::<ClusterObjectSet>(revision)] } });
    for secret in secrets {
        let name = secret.name_any();
        let what = format!("making ref Secret \"{name}\" go with its revision");
        let (params, patch) = (PatchParams::default(), Patch::Merge(&ownership));
        call(what, api.patch_metadata(&name, &params, &patch)).await?;
    }
    Ok(())
}

/// Returns a controller reference to `owner`.
pub(super) fn reference<K: kube::Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
