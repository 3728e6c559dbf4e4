//! Install, upgrade and delete against a real API server, registry, catalogd and operator-controller.

mod former_secret;
mod one_truth;
mod operation;
mod outages;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet};
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, OperatorController, PodStandIn, Registry,
    eventually, install_crds,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(90);
const PACKAGE: &str = "sample";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn installs_upgrades_and_removes() -> Result<()> {
    let world = World::start().await?;
    world.publish("catalog:v1", &[("1.0.0", "")]).await?;
    world.apply_catalog("catalog:v1").await?;

    // Refused in words: nothing is there to install yet.
    world
        .apply_extension("sample", "sample-ns", json!({"packageName": "absent"}))
        .await?;
    let refused = "no bundles found for package \"absent\"";
    world
        .until("sample", "Progressing", "True", "Retrying", refused)
        .await?;
    world.delete("sample").await?;

    // Without its namespace nothing is written, and it heals by itself.
    world
        .apply_extension("sample", "sample-ns", json!({"packageName": PACKAGE}))
        .await?;
    let missing = "namespace \"sample-ns\" does not exist";
    world
        .until("sample", "Progressing", "True", "Retrying", missing)
        .await?;
    ensure!(
        world.revisions().await?.is_empty(),
        "a revision was made without a namespace"
    );
    world.create_namespace("sample-ns").await?;
    world
        .until(
            "sample",
            "Progressing",
            "True",
            "Succeeded",
            "Revision 1.0.0 has rolled out.",
        )
        .await?;
    let image = format!(
        "Installed bundle {}/bundles/sample:1.0.0 successfully",
        world.registry.host()
    );
    let extension = world
        .until("sample", "Installed", "True", "Succeeded", &image)
        .await?;
    let installed = extension
        .status
        .and_then(|s| s.install)
        .context("status.install is missing")?;
    ensure!(installed.bundle.name == "sample.v1.0.0" && installed.bundle.version == "1.0.0");
    world
        .until("sample", "Available", "True", "ProbesSucceeded", "")
        .await?;
    world
        .until("sample", "Deprecated", "False", "NotDeprecated", "not deprecated")
        .await?;
    ensure!(world.config_map().await?.as_deref() == Some("1.0.0"));

    // A successor in the catalog is installed without being asked for.
    world
        .publish("catalog:v2", &[("1.0.0", ""), ("1.0.1", "1.0.0")])
        .await?;
    world.apply_catalog("catalog:v2").await?;
    world
        .until(
            "sample",
            "Progressing",
            "True",
            "Succeeded",
            "Revision 1.0.1 has rolled out.",
        )
        .await?;
    world
        .until("sample", "Installed", "True", "Succeeded", "sample:1.0.1")
        .await?;
    ensure!(world.config_map().await?.as_deref() == Some("1.0.1"));

    // Nothing happens when nothing changes, once the revision that was replaced has been put away.
    eventually(LIMIT, "nothing is written when nothing changes", async || {
        let before = world.versions().await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = world.versions().await?;
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(())
    })
    .await?;

    // The catalog goes, the extension stays.
    let catalogs: Api<ClusterCatalog> = Api::all(world.client.clone());
    catalogs.delete("catalog", &DeleteParams::default()).await?;
    let patch = json!({"spec": {"config": {"configType": "Inline", "inline": {"nonsense": true}}}});
    world.patch("sample", &patch).await?;
    let unknown = "unknown field \"nonsense\"";
    world
        .until("sample", "Progressing", "False", "InvalidConfiguration", unknown)
        .await?;
    world.patch("sample", &json!({"spec": {"config": null}})).await?;
    world
        .until(
            "sample",
            "Progressing",
            "True",
            "Succeeded",
            "Revision 1.0.1 has rolled out.",
        )
        .await?;
    let unknown = "deprecation status unknown: catalog data unavailable";
    world
        .until(
            "sample",
            "Deprecated",
            "Unknown",
            "DeprecationStatusUnknown",
            unknown,
        )
        .await?;

    world.delete("sample").await?;
    ensure!(world.revisions().await?.is_empty(), "revisions are left");
    ensure!(world.config_map().await?.is_none(), "objects are left");
    let ours = ListParams::default().labels("olm.operatorframework.io/owner-name=sample");
    let deployments = Api::<Deployment>::all(world.client.clone()).list(&ours).await?;
    ensure!(deployments.items.is_empty(), "a Deployment is left");
    let secrets = Api::<Secret>::all(world.client.clone());
    eventually(LIMIT, "no Secret is left", async || {
        let left = secrets.list(&ours).await?.items;
        ensure!(left.is_empty(), "{} Secrets", left.len());
        Ok(())
    })
    .await?;
    Ok(())
}

/// Everything that runs during a test; ends with it.
struct World {
    // Dropped in this order: the controllers before what they talk to.
    controller: tokio::sync::Mutex<OperatorController>,
    catalogd: Catalogd,
    pods: PodStandIn,
    client: Client,
    registry: Registry,
    plane: ControlPlane,
    /// True if bundles hold `ClusterRoles`. Only one extension can own a `ClusterRole`.
    roles: bool,
    /// Cache directory of catalogd.
    cache: PathBuf,
    _folder: TempDir,
}

impl World {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        let registry = Registry::start().await?;
        let pods = PodStandIn::start(client.clone());
        let folder = tempfile::tempdir()?;
        let cache = folder.path().join("catalogd");
        let options = ControllerOptions {
            cache: Some(cache.clone()),
            ..ControllerOptions::default()
        };
        let catalogd = Catalogd::start_with(&plane, &registry, options).await?;
        let controller = OperatorController::start(&plane, &registry).await?;
        Ok(Self {
            controller: controller.into(),
            catalogd,
            pods,
            client,
            registry,
            plane,
            roles: true,
            cache,
            _folder: folder,
        })
    }

    /// Pushes a catalog of these (version, replaced version) and the bundles it names. Returns the catalog's digest.
    async fn publish(&self, tag: &str, versions: &[(&str, &str)]) -> Result<String> {
        for (version, _) in versions {
            bundle(version, self.roles)
                .push(&self.registry, &format!("bundles/sample:{version}"))
                .await?;
        }
        let metas: Vec<String> = catalog(&self.registry.host(), versions)
            .iter()
            .map(ToString::to_string)
            .collect();
        let text = metas.join(
            "
",
        );
        ImageBuilder::new()
            .label("operators.operatorframework.io.index.configs.v1", "/configs")
            .file("configs/catalog.json", text)
            .push(&self.registry, tag)
            .await
    }

    /// Returns the log of operator-controller.
    fn log(&self) -> Result<String> {
        let path = self.controller.try_lock()?.controller().log();
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    async fn apply_catalog(&self, tag: &str) -> Result<()> {
        let reference = format!("{}/{tag}", self.registry.host());
        let catalog = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "catalog"},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        });
        let api: Api<ClusterCatalog> = Api::all(self.client.clone());
        api.patch("catalog", &PatchParams::apply("test"), &Patch::Apply(catalog))
            .await?;
        Ok(())
    }

    async fn apply_extension(&self, name: &str, namespace: &str, catalog: Value) -> Result<()> {
        let extension = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name},
            "spec": {"namespace": namespace, "source": {"sourceType": "Catalog", "catalog": catalog}},
        });
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(extension))
            .await?;
        Ok(())
    }

    async fn patch(&self, name: &str, patch: &Value) -> Result<()> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        Api::<Namespace>::all(self.client.clone())
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(())
    }

    /// Waits until a condition is so, with a message that contains `text`.
    async fn until(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
        text: &str,
    ) -> Result<ClusterExtension> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        let what = format!("{name} reports {type_}={status}/{reason} {text}");
        let seen = eventually(LIMIT, &what, async || {
            let extension = api.get(name).await?;
            let conditions = extension
                .status
                .clone()
                .and_then(|s| s.conditions)
                .unwrap_or_default();
            let now = extension.metadata.generation;
            let found = conditions.iter().any(|c| {
                let same =
                    (c.type_.as_str(), c.status.as_str(), c.reason.as_str()) == (type_, status, reason);
                same && c.message.contains(text) && c.observed_generation == now
            });
            if !found {
                let told: Vec<String> = conditions
                    .iter()
                    .map(|c| format!("{}={}/{} {}", c.type_, c.status, c.reason, c.message))
                    .collect();
                bail!("{}", told.join(" | "));
            }
            Ok(extension)
        })
        .await;
        match seen {
            Ok(extension) => Ok(extension),
            Err(error) => Err(error.context(self.controller.lock().await.controller().tail(40))),
        }
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        api.delete(name, &DeleteParams::default()).await?;
        let gone = eventually(LIMIT, "the extension is gone", async || {
            match api.get_opt(name).await? {
                None => Ok(()),
                Some(extension) => bail!("{:?}", extension.status),
            }
        })
        .await;
        match gone {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(self.controller.lock().await.controller().tail(40))),
        }
    }

    async fn revisions(&self) -> Result<Vec<ClusterObjectSet>> {
        Ok(Api::all(self.client.clone())
            .list(&ListParams::default())
            .await?
            .items)
    }

    /// Resource versions of the extensions and their revisions.
    async fn versions(&self) -> Result<Vec<Option<String>>> {
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let list = extensions.list(&ListParams::default()).await?;
        let mut versions: Vec<_> = list.items.iter().map(ResourceExt::resource_version).collect();
        versions.extend(self.revisions().await?.iter().map(ResourceExt::resource_version));
        Ok(versions)
    }

    /// The version that the installed `ConfigMap` names.
    async fn config_map(&self) -> Result<Option<String>> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), "sample-ns");
        let found = api.get_opt("sample-config").await?;
        Ok(found.and_then(|map| map.data?.get("version").cloned()))
    }
}

fn catalog(host: &str, versions: &[(&str, &str)]) -> Vec<Value> {
    let name = |version: &str| format!("sample.v{version}");
    let mut metas = vec![json!({"schema": "olm.package", "name": PACKAGE, "defaultChannel": "stable"})];
    let entries: Vec<Value> = versions
        .iter()
        .map(|(version, replaces)| match *replaces {
            "" => json!({"name": name(version)}),
            replaces => json!({"name": name(version), "replaces": name(replaces)}),
        })
        .collect();
    metas.push(json!({"schema": "olm.channel", "package": PACKAGE, "name": "stable", "entries": entries}));
    for (version, _) in versions {
        metas.push(json!({
            "schema": "olm.bundle", "package": PACKAGE, "name": name(version),
            "image": format!("{host}/bundles/sample:{version}"),
            "properties": [{"type": "olm.package", "value": {"packageName": PACKAGE, "version": version}}],
        }));
    }
    metas
}

fn bundle(version: &str, roles: bool) -> ImageBuilder {
    let labels = json!({"app": "sample"});
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("sample.v{version}")},
        "spec": {
            "version": version,
            "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": "sample", "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}],
                "deployments": [{"name": "sample", "spec": {
                    "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {
                        "serviceAccountName": "sample",
                        "containers": [{"name": "manager", "image": format!("registry.example/sample:{version}")}]}},
                }}],
            }},
        },
    });
    if !roles {
        // Without a role there is no account to run as, either.
        csv["spec"]["install"]["spec"]["permissions"] = json!([]);
        csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["serviceAccountName"] =
            Value::Null;
    }
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sample-config"},
        "data": {"version": version},
    });
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": PACKAGE,
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    }});
    ImageBuilder::new()
        .file("manifests/sample.clusterserviceversion.yaml", csv.to_string())
        .file("manifests/sample-config.yaml", config.to_string())
        .file("metadata/annotations.yaml", annotations.to_string())
}
