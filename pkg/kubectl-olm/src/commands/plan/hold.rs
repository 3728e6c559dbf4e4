//! Hold of the installed operator on its upgrade, read with the user's rights.

use kube::ResourceExt;
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_plan::Change;
use olm_resolve::Installed;
use olm_rollout::hold::{
    Hold, NamedObject, OPERATOR_CONDITION_GROUP, OPERATOR_CONDITION_KIND, OPERATOR_CONDITION_VERSION,
    Opinion, begins_upgrade, of_named_object, of_operator_condition,
};
use olm_text::chain;
use olm_version::BundleVersion;
use serde_json::{Value, json};

use super::place::install_namespace;
use crate::source::{Cluster, SourceError};

/// Adds the hold to the reasons for which operator-controller would not make the change now.
pub(super) async fn check(
    cluster: &Cluster,
    extension: &ClusterExtension,
    installed: Option<&Installed>,
    newest: Option<&ClusterObjectSet>,
    to: &BundleVersion,
    change: &mut Change,
) {
    let Some(installed) = installed.filter(|installed| begins_upgrade(Some(&installed.version), None, to))
    else {
        return;
    };
    match held(cluster, extension, installed, newest).await {
        Ok(None) => {}
        Ok(Some((object, hold))) => change.refusals.push(format!(
            "the installed operator holds its upgrade: {object} has {hold}"
        )),
        Err(error) => change
            .unchecked
            .push(format!("holds of the installed operator: {}", chain(&error))),
    }
}

async fn held(
    cluster: &Cluster,
    extension: &ClusterExtension,
    installed: &Installed,
    newest: Option<&ClusterObjectSet>,
) -> Result<Option<(String, Hold)>, SourceError> {
    let namespace = install_namespace(extension, newest).unwrap_or_default();
    let extension_name = extension.name_any();
    let mut verdict = Opinion::Silent;
    for name in [installed.name.as_str(), &extension_name] {
        let version = format!("{OPERATOR_CONDITION_GROUP}/{OPERATOR_CONDITION_VERSION}");
        let object = reference(&version, OPERATOR_CONDITION_KIND, namespace, name);
        let read = read(cluster, &object, of_operator_condition).await?;
        verdict = verdict.and(read.map(|hold| (phrase(&object), hold)));
        if verdict == Opinion::Permits {
            break;
        }
    }
    if verdict != Opinion::Silent {
        return Ok(verdict.hold());
    }
    let annotations = newest.map(ResourceExt::annotations);
    let Some(named) = annotations
        .filter(|known| {
            known.get(keys::BUNDLE_NAME_ANNOTATION).map(String::as_str) == Some(installed.name.as_str())
        })
        .and_then(|known| NamedObject::parse(known.get(keys::UPGRADEABLE_CONDITION_ANNOTATION)?))
    else {
        return Ok(None);
    };
    let version = match named.group.as_str() {
        "" => named.version.clone(),
        group => format!("{group}/{}", named.version),
    };
    let object = reference(&version, &named.kind, namespace, &named.name);
    let verdict = read(cluster, &object, of_named_object).await?;
    Ok(verdict.hold().map(|hold| (phrase(&object), hold)))
}

fn reference(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
}

fn phrase(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!("{} {:?}", text("/kind"), text("/metadata/name"))
}

async fn read(
    cluster: &Cluster,
    object: &Value,
    opinion: fn(&Value) -> Opinion,
) -> Result<Opinion, SourceError> {
    let kinds = cluster.kinds(std::slice::from_ref(object)).await?;
    let found = cluster.present(object, &kinds).await?;
    let found = found.and_then(|found| serde_json::to_value(found).ok());
    Ok(opinion(&found.unwrap_or_default()))
}
