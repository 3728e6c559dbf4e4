//! Changes by the user of a scenario. They reach the API server directly, so no fault disturbs them.

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{FOREIGN_SECRET, Scenario, Stage, Version, content};
use crate::kinds::{self, Kind};

/// Field manager of the user.
const MANAGER: &str = "faults-user";

/// Makes the change of a stage.
pub(super) async fn perform(client: &Client, scenario: &mut Scenario, stage: Stage) -> Result<()> {
    if stage != Stage::Uninstall && stage != Stage::CatalogGone {
        ensure_catalog(client, scenario).await?;
    }
    let namespace = scenario.namespace();
    let id = scenario.id.clone();
    match stage {
        Stage::Install => set_version(client, scenario, Version::V1, false).await,
        Stage::Upgrade => {
            let next = stage.leads_to(scenario.installed).unwrap_or(Version::V3);
            set_version(client, scenario, next, false).await
        }
        Stage::Overtaken(after) => {
            set_version(client, scenario, Version::V2, false).await?;
            tokio::time::sleep(after).await;
            set_version(client, scenario, Version::V3, false).await
        }
        Stage::RollBack => set_version(client, scenario, Version::V1, true).await,
        Stage::Drift => {
            let wrong = json!({"data": {"version": "wrong"}});
            merge(
                client,
                kinds::CONFIG_MAP,
                &namespace,
                &format!("test-configmap-{id}"),
                &wrong,
            )
            .await?;
            let wrong = json!({"spec": {"template": {"metadata": {"annotations": {"version": "wrong"}}}}});
            merge(
                client,
                kinds::DEPLOYMENT,
                &namespace,
                &format!("test-operator-{id}"),
                &wrong,
            )
            .await?;
            delete(
                client,
                kinds::SERVICE_ACCOUNT,
                &namespace,
                &format!("bundle-manager-{id}"),
            )
            .await
        }
        Stage::CatalogGone => {
            scenario.catalog = false;
            delete(client, kinds::CATALOG, "", &scenario.catalog()).await?;
            delete(
                client,
                kinds::CONFIG_MAP,
                &namespace,
                &format!("test-configmap-{id}"),
            )
            .await
        }
        Stage::Uninstall => delete(client, kinds::EXTENSION, "", &scenario.extension()).await,
    }
}

/// Creates the catalog if it does not exist.
pub(super) async fn ensure_catalog(client: &Client, scenario: &mut Scenario) -> Result<()> {
    if scenario.catalog {
        return Ok(());
    }
    let spec = json!({"source": {"type": "Image", "image": {"ref": scenario.catalog_image}}});
    let name = scenario.catalog();
    apply(client, kinds::CATALOG, "", &name, json!({"spec": spec})).await?;
    scenario.catalog = true;
    Ok(())
}

/// Creates the extension, or changes its spec, with this version. `self_certified` allows a downgrade.
async fn set_version(
    client: &Client,
    scenario: &Scenario,
    version: Version,
    self_certified: bool,
) -> Result<()> {
    let policy = if self_certified {
        "SelfCertified"
    } else {
        "CatalogProvided"
    };
    let selector = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": scenario.catalog()}});
    let spec = json!({
        "namespace": scenario.namespace(),
        "source": {"sourceType": "Catalog", "catalog": {
            "packageName": content::package(&scenario.id), "version": version.number(), "selector": selector,
            "upgradeConstraintPolicy": policy,
        }},
    });
    apply(
        client,
        kinds::EXTENSION,
        "",
        &scenario.extension(),
        json!({"spec": spec}),
    )
    .await
    .map(drop)
}

/// Creates foreign objects beside those of the extension, and returns them as the API server created them.
pub(super) async fn create_foreign(client: &Client, scenario: &Scenario) -> Result<Vec<Value>> {
    let name = format!("foreign-{}", scenario.id);
    let labels = json!({"labels": {"app": format!("test-operator-{}", scenario.id)}});
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let mut created = Vec::new();
    for (kind, body) in [
        (
            kinds::CONFIG_MAP,
            json!({"metadata": labels, "data": {"owner": "somebody else"}}),
        ),
        (
            kinds::SECRET,
            json!({"metadata": labels, "stringData": {"password": FOREIGN_SECRET}}),
        ),
        (kinds::SERVICE_ACCOUNT, json!({"metadata": labels})),
        (kinds::CLUSTER_ROLE, json!({"metadata": labels, "rules": rules})),
    ] {
        created.push(apply(client, kind, &scenario.namespace(), &name, body).await?);
    }
    Ok(created)
}

/// Deletes the catalog, the namespace and the foreign objects.
pub(super) async fn retire(client: &Client, scenario: &mut Scenario) -> Result<()> {
    let foreign = format!("foreign-{}", scenario.id);
    delete(client, kinds::CLUSTER_ROLE, "", &foreign).await?;
    delete(client, kinds::NAMESPACE, "", &scenario.namespace()).await?;
    scenario.foreign.clear();
    scenario.catalog = false;
    delete(client, kinds::CATALOG, "", &scenario.catalog()).await
}

/// Applies an object by server-side apply with force, and returns it.
async fn apply(client: &Client, kind: Kind, namespace: &str, name: &str, mut body: Value) -> Result<Value> {
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.name().into();
    body["metadata"]["name"] = name.into();
    let params = PatchParams::apply(MANAGER).force();
    let applied = kind
        .api(client, namespace)
        .patch(name, &params, &Patch::Apply(&body))
        .await;
    let applied = applied.with_context(|| format!("cannot apply {} {name}", kind.name()))?;
    Ok(serde_json::to_value(applied)?)
}

/// Changes an object by a merge patch.
async fn merge(client: &Client, kind: Kind, namespace: &str, name: &str, change: &Value) -> Result<()> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let merged = kind
        .api(client, namespace)
        .patch(name, &params, &Patch::Merge(change))
        .await;
    merged
        .with_context(|| format!("cannot change {} {name}", kind.name()))
        .map(drop)
}

/// Deletes an object; an absent object is no error.
async fn delete(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<()> {
    match kind
        .api(client, namespace)
        .delete(name, &DeleteParams::default())
        .await
    {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other
            .with_context(|| format!("cannot delete {} {name}", kind.name()))
            .map(drop),
    }
}
