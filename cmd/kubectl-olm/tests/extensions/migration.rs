//! `crd migrate` on a real API server.

use anyhow::{Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use olm_harness::{ControlPlane, eventually};
use serde_json::{Value, json};

use super::super::{PATIENCE, ask};
use crate::common::Said;

const NAME: &str = "boats.example.com";
/// More than one page.
const OBJECTS: usize = 120;

fn crd(versions: &[&str], storage: &str) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Boat", "listKind": "BoatList", "plural": "boats", "singular": "boat"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()}})
}

async fn replace(client: &Client, crd: &Value) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut new: CustomResourceDefinition = serde_json::from_value(crd.clone())?;
    new.metadata.resource_version = api.get(NAME).await?.resource_version();
    api.replace(NAME, &PostParams::default(), &new).await?;
    Ok(())
}

fn boats(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", version, "Boat");
    Api::namespaced_with(
        client.clone(),
        "default",
        &ApiResource::from_gvk_with_plural(&kind, "boats"),
    )
}

async fn stored_versions(client: &Client) -> Result<Vec<String>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    Ok(api
        .get(NAME)
        .await?
        .status
        .and_then(|status| status.stored_versions)
        .unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_migrated_to_the_storage_version() -> Result<()> {
    olm_harness::tls::install_provider();
    let plane = ControlPlane::start().await?;
    let client = plane.client();
    let says = async |args: &[&str]| -> Result<Said> {
        let kubeconfig = plane.kubeconfig().display().to_string();
        ask(args, &[("KUBECONFIG", kubeconfig.as_str())]).await
    };
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let first = serde_json::from_value(crd(&["v1alpha1", "v1"], "v1alpha1"))?;
    crds.create(&PostParams::default(), &first).await?;
    await_condition(crds, NAME, conditions::is_crd_established()).await?;
    let old = boats(&client, "v1alpha1");
    for number in 0..OBJECTS {
        let boat = json!({"apiVersion": "example.com/v1alpha1", "kind": "Boat",
            "metadata": {"name": format!("boat-{number}")}, "spec": {"number": number}});
        old.create(&PostParams::default(), &serde_json::from_value(boat)?)
            .await?;
    }
    let none = says(&["crd", "migrate", NAME]).await?;
    ensure!(
        none.code == 0 && none.out.contains("nothing to migrate"),
        "{none}"
    );

    replace(&client, &crd(&["v1alpha1", "v1"], "v1")).await?;
    eventually(PATIENCE, "both versions are stored", async || {
        let stored = stored_versions(&client).await?;
        ensure!(stored == ["v1alpha1", "v1"], "{stored:?}");
        Ok(())
    })
    .await?;
    let before = boats(&client, "v1").get("boat-7").await?;
    let dry = says(&["crd", "migrate", NAME, "--dry-run"]).await?;
    ensure!(
        dry.code == 0 && dry.out.contains("remove v1alpha1 from status.storedVersions"),
        "{dry}"
    );
    ensure!(stored_versions(&client).await?.len() == 2);

    // The new storage version takes effect a moment after the CRD.
    eventually(PATIENCE, "updates are stored in the new version", async || {
        let probe = boats(&client, "v1").get("boat-0").await?;
        let written = boats(&client, "v1")
            .replace("boat-0", &PostParams::default(), &probe)
            .await?;
        ensure!(written.resource_version() != probe.resource_version(), "not yet");
        Ok(())
    })
    .await?;
    let done = says(&["crd", "migrate", NAME]).await?;
    assert_eq!(done.code, 0, "{done}");
    ensure!(
        done.out.contains("120 custom resources are stored in v1"),
        "{done}"
    );
    ensure!(done.err.contains("100 custom resources are written"), "{done}");
    ensure!(stored_versions(&client).await? == ["v1"]);
    let after = boats(&client, "v1").get("boat-7").await?;
    ensure!(
        after.resource_version() != before.resource_version(),
        "it was not written"
    );
    ensure!(after.data == before.data && after.metadata.generation == before.metadata.generation);

    // The API server accepts the removal, and all objects are still readable.
    replace(&client, &crd(&["v1"], "v1")).await?;
    eventually(PATIENCE, "all objects are readable", async || {
        let left = boats(&client, "v1")
            .list(&ListParams::default())
            .await?
            .items
            .len();
        ensure!(left == OBJECTS, "{left}");
        Ok(())
    })
    .await?;
    let missing = says(&["crd", "migrate", "ships.example.com"]).await?;
    assert_eq!(missing.code, 1, "{missing}");
    Ok(())
}
