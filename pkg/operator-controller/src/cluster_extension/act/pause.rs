//! Writes the pause of the extension to its revisions, which are applied by another controller.

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use olm_api::{ClusterObjectSet, LifecycleState, keys};
use serde_json::json;

use crate::cluster_extension::call::{CallError, call};
use crate::cluster_extension::pass::Pass;

/// Pauses the Active revisions, or resumes them if `paused` is false.
pub(crate) async fn follow(
    pass: &Pass<'_>,
    revisions: &[ClusterObjectSet],
    paused: bool,
) -> Result<(), CallError> {
    let differs = |revision: &&ClusterObjectSet| {
        revision.metadata.deletion_timestamp.is_none()
            && revision.spec.lifecycle_state == LifecycleState::Active
            && (revision.spec.paused == Some(true)) != paused
    };
    let api: Api<ClusterObjectSet> = Api::all(pass.context.shared.client.clone());
    for revision in revisions.iter().filter(differs) {
        let name = revision.name_any();
        // Null removes the field: revisions that were never paused do not have it.
        let patch =
            json!({"metadata": {"uid": revision.metadata.uid}, "spec": {"paused": paused.then_some(true)}});
        let params = PatchParams {
            field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let what = format!("setting spec.paused of ClusterObjectSet \"{name}\"");
        match call(what, api.patch(&name, &params, &Patch::Merge(&patch))).await {
            Err(error) if !error.is_not_found() => return Err(error),
            Err(_) => {}
            Ok(written) => pass.context.stores.wrote_revision(&pass.name, &written),
        }
    }
    Ok(())
}
