//! The real program against a real API server, registry and catalogd.

mod common;
mod extensions;

use std::time::Duration;

use anyhow::{Result, ensure};
use common::{Said, run_with, testdata};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use olm_api::names::LABEL_VALUE_MAX;
use olm_api::{ClusterCatalog, ClusterExtension};
use olm_harness::{Catalogd, ControlPlane, Registry, catalog_image_from_dir, eventually, install_crds};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(2);

async fn ask(args: &[&str], variables: &[(&str, &str)]) -> Result<Said> {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    let variables: Vec<(String, String)> = variables
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Ok(tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        run_with(&args, &variables)
    })
    .await?)
}

fn catalog(name: &str, reference: &str, priority: i32) -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": name, "labels": {"fleet": name}},
        "spec": {"priority": priority, "source": {"type": "Image", "image": {"ref": reference}}},
    })
}

/// Everything that runs, with both catalogs served.
struct World {
    plane: ControlPlane,
    registry: Registry,
    server: Catalogd,
}

impl World {
    async fn start() -> Result<Self> {
        olm_harness::tls::install_provider();
        let plane = ControlPlane::start().await?;
        let registry = Registry::start().await?;
        install_crds(&plane.client()).await?;
        let server = Catalogd::start(&plane, &registry).await?;
        let world = Self {
            plane,
            registry,
            server,
        };
        world.publish("catalog", 0).await?;
        world.publish("update", 10).await?;
        Ok(world)
    }

    /// Makes a catalog of a folder of the test data and waits until it is served.
    async fn publish(&self, name: &str, priority: i32) -> Result<()> {
        let catalogs: Api<ClusterCatalog> = Api::all(self.plane.client());
        catalog_image_from_dir(&testdata().join(name))
            .push(&self.registry, &format!("catalogs/{name}:v1"))
            .await?;
        let reference = format!("{}/catalogs/{name}:v1", self.registry.host());
        let object = catalog(name, &reference, priority);
        let apply = PatchParams::apply("test");
        catalogs.patch(name, &apply, &Patch::Apply(object)).await?;
        eventually(PATIENCE, &format!("{name} is served"), async || {
            let status = catalogs.get(name).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            ensure!(
                conditions
                    .iter()
                    .any(|c| c.type_ == "Serving" && c.status == "True"),
                "{conditions:?}"
            );
            Ok(())
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn asks_a_cluster_a_catalogd_and_a_registry() -> Result<()> {
    let world = World::start().await?;
    of_the_cluster(&world).await?;
    of_a_long_name(&world).await?;
    of_needs(&world).await?;
    by_address(&world).await?;
    of_an_image(&world).await
}

async fn of_the_cluster(World { plane, .. }: &World) -> Result<()> {
    let apply = PatchParams::apply("test");
    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "lamp"},
        "spec": {"namespace": "default", "source": {"sourceType": "Catalog", "catalog": {
            "packageName": "lantern", "channels": ["stable"], "version": "1.x",
            "selector": {"matchLabels": {"fleet": "catalog"}},
        }}},
    });
    Api::<ClusterExtension>::all(plane.client())
        .patch("lamp", &apply, &Patch::Apply(extension))
        .await?;

    let kubeconfig = plane.kubeconfig().display().to_string();
    let cluster = [("KUBECONFIG", kubeconfig.as_str())];
    insta::assert_snapshot!("online_search", ask(&["search"], &cluster).await?);
    insta::assert_snapshot!(
        "online_show",
        ask(&["show", "lantern", "--catalog", "update"], &cluster).await?
    );
    let stable = ["resolve", "lantern", "--channel", "stable"];
    insta::assert_snapshot!("online_resolve", ask(&stable, &cluster).await?);
    insta::assert_snapshot!(
        "online_why",
        ask(&["why", "lamp", "--kubeconfig", &kubeconfig], &[]).await?
    );
    insta::assert_snapshot!(
        "online_why_want",
        ask(&["why", "lamp", "--want", "1.3.0"], &cluster).await?
    );
    insta::assert_snapshot!("online_why_missing", ask(&["why", "whale"], &cluster).await?);
    Ok(())
}

/// No revision carries the name of such an extension as a label, and the API server refuses to look for one.
async fn of_a_long_name(World { plane, .. }: &World) -> Result<()> {
    let name = "x".repeat(LABEL_VALUE_MAX + 1);
    let extensions: Api<ClusterExtension> = Api::all(plane.client());
    let mut long = serde_json::to_value(extensions.get("lamp").await?)?;
    long["metadata"] = json!({ "name": name });
    extensions
        .create(&PostParams::default(), &serde_json::from_value(long)?)
        .await?;
    let kubeconfig = plane.kubeconfig().display().to_string();
    let cluster = [("KUBECONFIG", kubeconfig.as_str())];
    for command in ["status", "tree", "why"] {
        let said = ask(&[command, &name], &cluster).await?;
        ensure!(said.code < 2, "{command}: {said}");
    }
    extensions.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

/// A bundle's dependencies are compared with served APIs and installed packages.
async fn of_needs(world: &World) -> Result<()> {
    world.publish("needs", 0).await?;
    let kubeconfig = world.plane.kubeconfig().display().to_string();
    let cluster = [("KUBECONFIG", kubeconfig.as_str())];
    let resolve = async |range| ask(&["resolve", "mast", "--range", range], &cluster).await;
    insta::assert_snapshot!("online_needs_met", resolve("1.0.0").await?);
    insta::assert_snapshot!("online_needs_unmet", resolve("1.1.0").await?);
    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "mast"},
        "spec": {"namespace": "default", "source": {"sourceType": "Catalog", "catalog": {"packageName": "mast"}}},
    });
    Api::<ClusterExtension>::all(world.plane.client())
        .patch("mast", &PatchParams::apply("test"), &Patch::Apply(extension))
        .await?;
    insta::assert_snapshot!("online_why_unmet", ask(&["why", "mast"], &cluster).await?);
    Ok(())
}

/// catalogd's authority is its own: without the file it is not trusted.
async fn by_address(World { plane, server, .. }: &World) -> Result<()> {
    let url = format!("{}/catalogs/update", server.url());
    let untrusted = ask(&["show", "lantern", "--catalogd", &url], &[]).await?;
    assert_eq!(untrusted.code, 3, "{untrusted}");
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(plane.client(), "olmv1-system");
    let secret = secrets.get("catalogd-service-own-cert").await?;
    let authority = &secret.data.unwrap_or_default()["ca.crt"].0;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), authority)?;
    let file = file.path().display().to_string();
    let by_url = ask(
        &["versions", "lantern", "--catalogd", &url, "--ca-file", &file],
        &[],
    )
    .await?;
    let by_dir = ask(&["versions", "lantern", "--dir", "update"], &[]).await?;
    assert_eq!(by_url.out, by_dir.out, "{by_url}");
    let search = ask(
        &["search", "--catalogd", &url, "--ca-file", &file, "-o", "json"],
        &[],
    )
    .await?;
    assert_eq!(search.code, 0, "{search}");
    let diff = ask(
        &["diff", "catalog", &url, "--ca-file", &file, "--channel", "stable"],
        &[],
    )
    .await?;
    let on_disk = ask(&["diff", "catalog", "update", "--channel", "stable"], &[]).await?;
    assert_eq!(diff.out, on_disk.out, "{diff}");
    Ok(())
}

/// The second time it comes out of the cache.
async fn of_an_image(World { registry, .. }: &World) -> Result<()> {
    let host = registry.host();
    let by_dir = ask(&["versions", "lantern", "--dir", "update"], &[]).await?;
    let cache = tempfile::tempdir()?;
    let cache = [("XDG_CACHE_HOME", cache.path().to_str().unwrap_or_default())];
    let image = format!("{host}/catalogs/update:v1");
    for _ in 0..2 {
        let args = [
            "versions",
            "lantern",
            "--image",
            &image,
            "--plain-http-registry",
            &host,
        ];
        let by_image = ask(&args, &cache).await?;
        assert_eq!(by_image.out, by_dir.out, "{by_image}");
    }
    let old = format!("{host}/catalogs/catalog:v1");
    let diff = ask(
        &[
            "diff",
            &old,
            &image,
            "--plain-http-registry",
            &host,
            "--channel",
            "stable",
        ],
        &cache,
    )
    .await?;
    let on_disk = ask(&["diff", "catalog", "update", "--channel", "stable"], &[]).await?;
    assert_eq!(diff.out, on_disk.out, "{diff}");
    Ok(())
}
