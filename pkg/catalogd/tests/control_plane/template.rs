//! The annotation `olm.catalogImageTemplate`.

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use olm_api::{CatalogPollResult, ClusterCatalog};
use olm_harness::eventually;
use serde_json::json;

use crate::world::{PATIENCE, World};

/// An image template gives the image of the cluster's version, and the status says which. A template that cannot be expanded keeps
/// the served content; without the annotation, the reference of the spec counts again.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_follows_the_version_of_the_cluster() -> Result<()> {
    let world = World::new().await?;
    let catalogd = world.catalogd()?;
    let version = world.client.apiserver_version().await?.git_version;
    let minor = version.split('.').nth(1).context("no minor")?.to_owned();
    world.push("test/catalog:any", "any").await?;
    let of_version = world
        .push(&format!("test/catalog:v1.{minor}"), "versioned")
        .await?;
    let annotate = async |template: Option<&str>| {
        let patch = json!({"metadata": {"annotations": {"olm.catalogImageTemplate": template}}});
        world
            .catalogs
            .patch("sample", &PatchParams::default(), &Patch::Merge(patch))
            .await
    };
    let poll = |catalog: &ClusterCatalog| catalog.status.clone().and_then(|status| status.poll);

    world.apply("sample", "test/catalog:any", json!({})).await?;
    let catalog = world.condition("sample", "Serving=True/Available", "").await?;
    let first = poll(&catalog).context("no check in the status")?;
    assert_eq!(first.image, format!("{}/test/catalog:any", world.registry.host()));
    assert_eq!((first.result, first.next_time), (CatalogPollResult::Stored, None));

    let host = world.registry.host();
    annotate(Some(&format!(
        "{host}/test/catalog:v{{kube_major_version}}.{{kube_minor_version}}"
    )))
    .await?;
    world.serves("sample", "versioned").await?;
    let catalog = eventually(PATIENCE, "the status names the image", async || {
        let catalog = world.catalogs.get("sample").await?;
        let image = poll(&catalog).map(|poll| poll.image).unwrap_or_default();
        ensure!(image == format!("{host}/test/catalog:v1.{minor}"), "{image}");
        Ok(catalog)
    })
    .await?;
    let resolved = catalog.status.and_then(|status| status.resolved_source);
    assert_eq!(
        resolved.map(|source| source.image.ref_),
        Some(format!("{host}/test/catalog@{of_version}"))
    );

    annotate(Some("{kube_version}")).await?;
    let message = "annotation olm.catalogImageTemplate has the unknown variable {kube_version}; use {kube_major_version}";
    world
        .condition("sample", "Progressing=False/Blocked", message)
        .await?;
    world.serves("sample", "versioned").await?;
    annotate(Some(&format!("{host}/test/catalog:v{{openshift_minor_version}}"))).await?;
    world
        .condition(
            "sample",
            "Progressing=True/Retrying",
            "the version of OpenShift is unknown",
        )
        .await?;
    annotate(Some("no reference")).await?;
    world
        .condition("sample", "Progressing=False/Blocked", "no reference")
        .await?;
    annotate(None).await?;
    world.serves("sample", "any").await?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    catalogd.stop().await
}
