//! Writes the status: once per reconcile, and only if it changes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterExtensionStatus, keys};
use olm_decide::extension::events::events;
use olm_status::cluster_extension::{self, Outcome};
use serde_json::{Value, json};

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};

/// Writes `outcome` to the status of `extension`, as read at the start of the reconcile, and emits the events of the change.
///
/// Returns false, without writing, if the extension has changed since: the outcome of an old spec must not stand beside a new one, and a
/// process that no longer leads must not overwrite what its successor says. The next pass reads the extension as it is now.
pub(crate) async fn write(
    context: &Context,
    extension: &ClusterExtension,
    outcome: &Outcome,
    now: &Time,
) -> Result<bool, CallError> {
    let old = extension.status.clone().unwrap_or_default();
    let generation = extension.metadata.generation.unwrap_or_default();
    let mut new = cluster_extension::extension(&old, outcome, generation, now);
    if let Some(install) = &mut new.install {
        // A field of its own, since the messages of conditions are upstream's and become events.
        install.warning = context.images.warning().map(str::to_owned);
    }
    context
        .shared
        .inventory
        .note_conditions(&extension.name_any(), new.conditions());
    if cluster_extension::same(&old, &new) {
        return Ok(true);
    }
    let name = extension.name_any();
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let read = extension.metadata.resource_version.as_deref();
    let patch = Patch::Merge(json!({ "metadata": {"resourceVersion": read}, "status": whole(&new) }));
    let params = PatchParams {
        field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
        ..Default::default()
    };
    let what = format!("writing the status of ClusterExtension \"{name}\"");
    match call(what, api.patch_status(&name, &params, &patch)).await {
        Err(error) if error.is_not_found() => return Ok(true),
        Err(error) if error.is_conflict() => {
            let what = format!("reading ClusterExtension \"{name}\"");
            if let Some(changed) = call(what, api.get_opt(&name)).await? {
                context.stores.wrote(&changed);
            }
            return Ok(false);
        }
        written => context.stores.wrote(&written?),
    }
    for event in events(&old, &new) {
        let object = extension.object_ref(&());
        let reason = event.reason.as_str();
        if event.warning {
            context.events.warning(object, reason, "Reconcile", &event.note);
        } else {
            context.events.normal(object, reason, "Reconcile", &event.note);
        }
    }
    Ok(true)
}

/// Returns the status with explicit nulls for absent fields, since a merge patch keeps fields that it does not name.
fn whole(status: &ClusterExtensionStatus) -> Value {
    let mut whole = json!({"observedGeneration": null, "conditions": null, "install": null, "activeRevisions": null,
        "pendingPlan": null, "rollout": null, "upgrade": null});
    if status.pending_plan.is_some() {
        whole["pendingPlan"] =
            json!({"bundle": {"release": null}, "catalog": null, "requiredBy": null, "findings": null});
    }
    if status.rollout.is_some() {
        whole["rollout"] = json!({"closesAt": null, "opensAt": null});
    }
    if status.upgrade.is_some() {
        whole["upgrade"] = json!({"catalog": null});
    }
    if status.install.is_some() {
        whole["install"] =
            json!({"bundle": {"release": null}, "catalog": null, "movedFrom": null, "warning": null});
    }
    if let Ok(known) = serde_json::to_value(status) {
        overlay(&mut whole, known);
    }
    whole
}

fn overlay(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                overlay(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(version: Option<&str>, reason: &str, message: &str) -> ClusterExtensionStatus {
        let install =
            version.map(|version| json!({"bundle": {"name": format!("a.v{version}"), "version": version}}));
        serde_json::from_value(json!({
            "install": install,
            "conditions": [{"type": "Progressing", "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }))
        .unwrap()
    }

    #[test]
    fn absent_fields_are_removed() {
        let whole = whole(&ClusterExtensionStatus::default());
        assert_eq!(
            whole,
            json!({"observedGeneration": null, "conditions": null, "install": null, "activeRevisions": null,
                "pendingPlan": null, "rollout": null, "upgrade": null})
        );
        let installed = super::whole(&status(Some("1.0.0"), "Succeeded", ""));
        assert_eq!(
            installed["install"],
            json!({"bundle": {"name": "a.v1.0.0", "version": "1.0.0", "release": null},
                "catalog": null, "movedFrom": null, "warning": null})
        );
    }
}
