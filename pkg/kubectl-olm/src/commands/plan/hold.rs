//! Hold of the installed operator on its upgrade, read with the user's rights.

use kube::ResourceExt;
use olm_api::ClusterExtension;
use olm_decide::extension::{History, Revision};
use olm_plan::Change;
use olm_rollout::hold::{
    Hold, NamedObject, OPERATOR_CONDITION_GROUP, OPERATOR_CONDITION_KIND, OPERATOR_CONDITION_VERSION,
    Opinion, of_named_object, of_operator_condition,
};
use olm_text::chain;
use olm_version::BundleVersion;
use serde_json::{Value, json};

use crate::source::{Cluster, SourceError};

/// Adds the hold to the reasons for which operator-controller would not make the change now.
pub(super) async fn check(
    cluster: &Cluster,
    extension: &ClusterExtension,
    history: &History,
    to: &BundleVersion,
    change: &mut Change,
) {
    let Some(installed) = history.upgraded_by(to) else {
        return;
    };
    match held(cluster, extension, installed).await {
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
    installed: &Revision,
) -> Result<Option<(String, Hold)>, SourceError> {
    let given = extension.spec.namespace.as_deref();
    let chosen = installed.install_namespace.as_deref();
    let namespace = given.or(chosen).unwrap_or_default();
    let extension_name = extension.name_any();
    let mut verdict = Opinion::Silent;
    for name in [installed.bundle.name.as_str(), &extension_name] {
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
    let named = installed.upgradeable_condition.as_deref();
    let Some(named) = named.and_then(NamedObject::parse) else {
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

#[cfg(test)]
mod tests {
    use olm_api::{ClusterObjectSet, keys};

    use super::*;
    use crate::source::stand_in;

    /// Returns a revision whose bundle names object `named` for its condition.
    fn revision(number: i64, version: &str, succeeded: bool, named: &str) -> ClusterObjectSet {
        let mut revision = stand_in::revision(number, version, succeeded);
        let annotations = revision.annotations_mut();
        let named = format!("Kite.v1.example.com/{named}");
        annotations.insert(keys::UPGRADEABLE_CONDITION_ANNOTATION.to_owned(), named);
        annotations.insert(keys::INSTALL_NAMESPACE_ANNOTATION.to_owned(), "sky".to_owned());
        revision
    }

    /// Returns the refusals of a plan to a version, on a cluster where object `old` holds the upgrade.
    async fn refusals(revisions: &[ClusterObjectSet], to: &str) -> Vec<String> {
        let said = json!([{"type": "Upgradeable", "status": "False", "reason": "Busy", "message": "no"}]);
        let kite = json!({"apiVersion": "example.com/v1", "kind": "Kite",
            "metadata": {"name": "old", "namespace": "sky"}, "status": {"conditions": said}});
        let api = "/apis/example.com/v1";
        let cluster = stand_in::cluster(&[
            (
                api,
                200,
                stand_in::resources("example.com/v1", "Kite", "kites", true),
            ),
            (&format!("{api}/namespaces/sky/kites/old"), 200, kite),
        ])
        .await;
        let spec = json!({"source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}}});
        let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "kite"}, "spec": spec});
        let extension: ClusterExtension = serde_json::from_value(extension).unwrap();
        let mut change = Change::default();
        let history = History::read(revisions);
        check(&cluster, &extension, &history, &to.into(), &mut change).await;
        assert_eq!(change.unchecked, Vec::<String>::new());
        change.refusals
    }

    #[tokio::test]
    async fn the_object_of_the_installed_bundle_holds_its_upgrade() {
        let held = [
            "the installed operator holds its upgrade: Kite \"old\" has Upgradeable=False in status.conditions (Busy: no)",
        ];
        let installed = revision(1, "1.0.0", true, "old");
        let rolling_out = revision(2, "1.1.0", false, "new");
        assert_eq!(refusals(std::slice::from_ref(&installed), "1.1.0").await, held);
        let both = [installed, rolling_out];
        // The bundle that is rolling out names another object.
        assert_eq!(refusals(&both, "1.2.0").await, held);
        let none = Vec::<String>::new();
        assert_eq!(refusals(&both, "1.1.0").await, none, "the upgrade has begun");
        assert_eq!(refusals(&both, "1.0.0").await, none, "back from an upgrade");
    }
}
