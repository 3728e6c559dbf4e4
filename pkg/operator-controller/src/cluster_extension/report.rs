//! Writes the status, once per reconcile and only when it says something new.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterExtensionStatus, keys};
use olm_status::cluster_extension::{self, Outcome};
use serde_json::{Map, Value, json};

use super::call::{CallError, call};

/// Tells `outcome` in the status of `extension`, as read at the start of this reconcile.
pub(crate) async fn write(
    client: &Client,
    extension: &ClusterExtension,
    outcome: &Outcome,
    now: &Time,
) -> Result<(), CallError> {
    let old = extension.status.clone().unwrap_or_default();
    let generation = extension.metadata.generation.unwrap_or_default();
    let new = cluster_extension::extension(&old, outcome, generation, now);
    if cluster_extension::same(&old, &new) {
        return Ok(());
    }
    let name = extension.name_any();
    let api: Api<ClusterExtension> = Api::all(client.clone());
    let patch = Patch::Merge(json!({ "status": whole(&new) }));
    let params = PatchParams {
        field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
        ..Default::default()
    };
    let what = format!("writing the status of ClusterExtension \"{name}\"");
    match call(what, api.patch_status(&name, &params, &patch)).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The status with an explicit null for what is absent: a merge patch keeps what it does not name.
fn whole(status: &ClusterExtensionStatus) -> Value {
    let mut map = Map::new();
    for key in ["conditions", "install", "activeRevisions"] {
        map.insert(key.to_owned(), Value::Null);
    }
    if let Ok(Value::Object(known)) = serde_json::to_value(status) {
        map.extend(known);
    }
    Value::Object(map)
}
