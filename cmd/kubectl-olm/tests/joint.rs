//! Two extensions whose new versions need each other: held one by one, and moved by one approval of their joint plan.

mod common;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::world::World;
use common::{Said, run_with};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet};
use olm_harness::{ImageBuilder, eventually};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(2);
const PACKAGES: [&str; 2] = ["kite", "lamp"];

impl World {
    /// Pushes the bundles of these versions and a catalog of them, and points the ClusterCatalog at it.
    async fn publish(&self, versions: &[&str]) -> Result<()> {
        let host = self.registry.host();
        let mut metas = Vec::new();
        for package in PACKAGES {
            metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
            let mut entries = Vec::new();
            for version in versions {
                let repository = format!("bundles/{package}:{version}");
                bundle(package, version).push(&self.registry, &repository).await?;
                let mut properties = needs(package, version);
                properties.push(
                    json!({"type": "olm.package", "value": {"packageName": package, "version": version}}),
                );
                metas.push(json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
                    "image": format!("{host}/{repository}"), "properties": properties}));
                let mut entry = json!({"name": format!("{package}.v{version}")});
                if *version != "1.0.0" {
                    entry["replaces"] = json!(format!("{package}.v1.0.0"));
                }
                entries.push(entry);
            }
            metas.push(
                json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}),
            );
        }
        let metas: Vec<String> = metas.iter().map(Value::to_string).collect();
        let tag = format!("both:{}", versions.len());
        ImageBuilder::new()
            .label("operators.operatorframework.io.index.configs.v1", "/configs")
            .file("configs/catalog.json", metas.join("\n"))
            .push(&self.registry, &tag)
            .await?;
        let catalog = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "both"},
            "spec": {"source": {"type": "Image", "image": {"ref": format!("{host}/{tag}")}}}});
        let catalogs: Api<ClusterCatalog> = Api::all(self.plane.client());
        let params = PatchParams::apply("test");
        catalogs.patch("both", &params, &Patch::Apply(catalog)).await?;
        Ok(())
    }

    /// Installs both packages, each by an extension of its name.
    async fn install(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.plane.client());
        let params = PatchParams::apply("test");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "both"}});
        namespaces
            .patch("both", &params, &Patch::Apply(namespace))
            .await?;
        for package in PACKAGES {
            let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                "metadata": {"name": package}, "spec": {"namespace": "both",
                    "source": {"sourceType": "Catalog", "catalog": {"packageName": package}}}});
            self.extensions()
                .patch(package, &params, &Patch::Apply(extension))
                .await?;
        }
        Ok(())
    }

    fn extensions(&self) -> Api<ClusterExtension> {
        Api::all(self.plane.client())
    }

    async fn has_installed(&self, version: &str) -> Result<()> {
        eventually(PATIENCE, &format!("both have version {version}"), async || {
            for package in PACKAGES {
                let status = self.extensions().get(package).await?.status.unwrap_or_default();
                let installed = status
                    .install
                    .as_ref()
                    .map(|install| install.bundle.version.as_str());
                ensure!(installed == Some(version), "{package}: {:?}", status.conditions);
            }
            Ok(())
        })
        .await
    }

    /// Waits until both extensions report that they wait for each other.
    async fn are_held(&self) -> Result<()> {
        eventually(PATIENCE, "both are held", async || {
            for package in PACKAGES {
                let status = self.extensions().get(package).await?.status.unwrap_or_default();
                let held = |message: &str| message.contains("has dependencies that are not met");
                let conditions = status.conditions.iter().flatten();
                ensure!(
                    conditions.clone().any(|condition| held(&condition.message)),
                    "{package}: {:?}",
                    status.conditions
                );
            }
            Ok(())
        })
        .await
    }

    async fn olm(&self, line: &str) -> Result<Said> {
        let kubeconfig = self.plane.kubeconfig().display().to_string();
        let line = format!("{line} --plain-http-registry {}", self.registry.host());
        let line: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        Ok(tokio::task::spawn_blocking(move || {
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            run_with(&line, &[("KUBECONFIG", &kubeconfig)])
        })
        .await?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_moves_two_extensions() {
    let world = World::start().await.unwrap();
    world.publish(&["1.0.0"]).await.unwrap();
    world.install().await.unwrap();
    world.has_installed("1.0.0").await.unwrap();
    world.publish(&["1.0.0", "2.0.0"]).await.unwrap();
    world.are_held().await.unwrap();
    plans(&world).await.unwrap();
    // Plans change nothing.
    world.are_held().await.unwrap();
    world.has_installed("1.0.0").await.unwrap();
    half_an_approval(&world).await.unwrap();
    approves(&world).await.unwrap();
    world.has_installed("2.0.0").await.unwrap();
    afterwards(&world).await.unwrap();
}

/// Each extension alone would be refused; the joint plan moves both.
async fn plans(world: &World) -> Result<()> {
    for package in PACKAGES {
        let alone = world.olm(&format!("plan {package}")).await?;
        ensure!(
            alone.code == 2 && alone.out.contains("it needs package"),
            "{alone}"
        );
    }
    let joint = world.olm("plan kite lamp").await?;
    ensure!(
        joint.code == 1 && joint.out.starts_with("Joint plan sha256:"),
        "{joint}"
    );
    let printed = world.olm("plan lamp kite -o json").await?;
    let plan: Value = serde_json::from_str(&printed.out).with_context(|| printed.to_string())?;
    let versions: Vec<&Value> = plan["plans"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|plan| &plan["to"]["version"])
        .collect();
    ensure!(
        versions == ["2.0.0", "2.0.0"] && plan["pins"].is_null(),
        "{printed}"
    );
    let digest = plan["digest"].as_str().context("no digest")?;
    ensure!(joint.out.contains(digest), "{joint}");
    for wrong in [
        "plan kite kite",
        "plan kite lamp --to 2.0.0",
        "plan kite lamp -o html",
    ] {
        let wrong = world.olm(wrong).await?;
        ensure!(wrong.code == 2, "{wrong}");
    }
    Ok(())
}

/// A joint plan in one spec only, and one with digests of other plans, move nothing.
async fn half_an_approval(world: &World) -> Result<()> {
    let digest = format!("sha256:{}", "0".repeat(64));
    let members: Vec<Value> = PACKAGES
        .iter()
        .map(|package| json!({"extension": package, "plan": digest}))
        .collect();
    for package in PACKAGES {
        let patch = json!({"spec": {"rollout": {"jointPlan": members}}});
        let params = PatchParams::default();
        world
            .extensions()
            .patch(package, &params, &Patch::Merge(patch))
            .await?;
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.are_held().await?;
    }
    let revisions: Api<ClusterObjectSet> = Api::all(world.plane.client());
    let count = revisions.list(&ListParams::default()).await?.items.len();
    ensure!(count == 2, "there are {count} revisions");
    Ok(())
}

async fn approves(world: &World) -> Result<()> {
    let unasked = world.olm("plan kite lamp --approve").await?;
    ensure!(
        unasked.code == 2 && unasked.err.contains("there is no terminal to ask on"),
        "{unasked}"
    );
    let approved = world.olm("plan kite lamp --approve --yes").await?;
    ensure!(approved.code == 0, "{approved}");
    for package in PACKAGES {
        let line = format!("clusterextension/{package}: version 2.0.0 is approved\n");
        ensure!(approved.out.contains(&line), "{approved}");
    }
    Ok(())
}

/// The old joint plan does not disturb later passes.
async fn afterwards(world: &World) -> Result<()> {
    eventually(PATIENCE, "both are ready", async || {
        for package in PACKAGES {
            let extension = world.extensions().get(package).await?;
            let ready = olm_api::condition::is_true(
                extension.conditions(),
                olm_api::condition::types::Extension::Ready,
            );
            ensure!(ready, "{:?}", extension.conditions());
        }
        Ok(())
    })
    .await?;
    let nothing = world.olm("plan kite lamp").await?;
    ensure!(nothing.code == 0, "{nothing}");
    Ok(())
}

/// Returns the requirements of a version: 2.0.0 of each package needs 2.0.0 of the other, and kite 1.0.0 needs lamp before 2.0.0.
fn needs(package: &str, version: &str) -> Vec<Value> {
    let (other, range) = match (package, version) {
        ("kite", "1.0.0") => ("lamp", ">=1.0.0 <2.0.0"),
        ("kite", _) => ("lamp", ">=2.0.0"),
        (_, "1.0.0") => return Vec::new(),
        _ => ("kite", ">=2.0.0"),
    };
    vec![json!({"type": "olm.package.required", "value": {"packageName": other, "versionRange": range}})]
}

/// Returns a bundle with a `ConfigMap`.
fn bundle(package: &str, version: &str) -> ImageBuilder {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{package}.v{version}")},
        "spec": {"version": version, "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {"deployments": []}}},
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": package}, "data": {"version": version}});
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": package,
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    }});
    ImageBuilder::new()
        .file("manifests/csv.yaml", csv.to_string())
        .file("manifests/map.yaml", map.to_string())
        .file("metadata/annotations.yaml", annotations.to_string())
}
