//! Refuses a bundle whose CRDs would break what is stored on the cluster.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use olm_api::{ClusterExtension, CrdUpgradeSafetyEnforcement};
use olm_bundle::crd_safety::Finding;
use serde_json::Value;

use super::Context;
use super::call::call;
use super::failure::Failure;

/// Compares every CRD among `objects` with the one on the cluster; findings are a [`Failure`] that names them all.
pub(crate) async fn check(
    context: &Context,
    extension: &ClusterExtension,
    objects: &[Value],
) -> Result<(), Failure> {
    if off(extension) {
        return Ok(());
    }
    // Read as it is: a typed copy would lose the fields this build does not know, and report them as removed.
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(context.shared.client.clone(), &kind);
    let mut findings = Vec::new();
    for new in objects.iter().filter(|object| is_crd(object)) {
        let Some(name) = new.pointer("/metadata/name").and_then(Value::as_str) else {
            continue;
        };
        let what = format!("reading CustomResourceDefinition \"{name}\"");
        let Some(old) = call(what, api.get_opt(name)).await? else {
            continue;
        };
        let old = serde_json::to_value(&old).map_err(|_| Failure::Interrupted("reading a CRD"))?;
        for finding in olm_bundle::crd_safety::check(&old, new) {
            findings.push(format!(
                "validating upgrade for CRD \"{name}\": {}",
                text(&finding)
            ));
        }
    }
    if findings.is_empty() {
        Ok(())
    } else {
        Err(Failure::CrdSafety(findings))
    }
}

fn text(finding: &Finding) -> String {
    let Finding { path, rule, message } = finding;
    // Without a path the whole CRD is meant.
    if path.is_empty() {
        format!("{rule}: {message}")
    } else {
        format!("{path}: {rule}: {message}")
    }
}

fn off(extension: &ClusterExtension) -> bool {
    extension
        .spec
        .install
        .as_ref()
        .and_then(|install| install.preflight.as_ref())
        .is_some_and(|preflight| {
            preflight.crd_upgrade_safety.enforcement == CrdUpgradeSafetyEnforcement::None
        })
}

fn is_crd(object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    text("kind") == "CustomResourceDefinition" && text("apiVersion").starts_with("apiextensions.k8s.io/")
}
