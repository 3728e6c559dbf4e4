//! Upgradeability of the cluster, on plain Kubernetes and on a simulated OpenShift, and the metrics of the real
//! process.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet, keys};
use olm_e2e::metrics::{MetricsPort, MetricsReader};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, OperatorController, Registry, apply_crds,
    eventually, install_crds, workspace,
};
use serde_json::{Value, json};

/// The version of the cluster is read once a minute.
const TIMEOUT: Duration = Duration::from_mins(2);
const RETRIES: &str = "olm_cluster_extension_retries_total{reason=\"";
/// Reasons that docs/status.md lists.
const REASONS: [&str; 12] = [
    "resolution",
    "constraints",
    "namespace",
    "rights",
    "image",
    "bundle",
    "render",
    "certificates",
    "crd_safety",
    "pack",
    "api",
    "interrupted",
];
/// Package, version, replaced version, `olm.maxOpenShiftVersion` as JSON.
type Row = (&'static str, &'static str, &'static str, &'static str);
const BUNDLES: [Row; 5] = [
    ("kite", "1.0.0", "", "4.18"),
    ("kite", "1.1.0", "1.0.0", "\"4.30\""),
    ("boat", "1.0.0", "", "\"4.10\""),
    ("odd", "1.0.0", "", "4"),
    ("torn", "1.0.0", "", "\"4.30\""),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_bundles_block_the_cluster_upgrade() -> Result<()> {
    let world = World::start().await?;
    world.apply("kite", json!({"version": "1.0.0"})).await?;
    world.apply("boat", json!({})).await?;
    world.ready("kite").await?;
    world.ready("boat").await?;

    // Plain Kubernetes: metrics and events report the block.
    world.metric("olm_cluster_upgradeable 0").await?;
    for name in ["boat", "kite"] {
        let line = format!("olm_cluster_extension_blocks_cluster_upgrade{{name=\"{name}\"}} 1");
        world.metric(&line).await?;
        world.event(name, "ClusterUpgradeBlocked").await?;
    }
    world
        .metric("olm_cluster_extension_info{name=\"kite\",package=\"kite\",version=\"1.0.0\",catalog=\"catalog\"} 1")
        .await?;
    world
        .metric("olm_cluster_extension_condition{name=\"kite\",type=\"Ready\",status=\"True\"} 1")
        .await?;
    world.metric("olm_managed_objects{name=\"kite\"} 1").await?;
    let text = world.metrics.read().await?;
    for step in ["resolve", "pull", "render", "write", "apply"] {
        let count = format!("olm_step_duration_seconds_count{{step=\"{step}\"}} ");
        let line = text.lines().find(|line| line.starts_with(&count));
        ensure!(line.is_some_and(|line| !line.ends_with(" 0")), "{step}: {line:?}");
    }

    // Retries are counted by reason.
    world.apply("odd", json!({"version": "9.x"})).await?;
    world.retries("resolution").await?;

    // OpenShift: the ClusterOperator reports the block, also for an invalid limit.
    world.become_openshift("4.18.3").await?;
    world.apply("odd", json!({})).await?;
    world
        .upgradeable(
            "False",
            "InstalledOLMOperators_IncompatibleOperatorsInstalled",
            "InstalledOLMOperatorsUpgradeable: Found ClusterExtensions that require upgrades prior to upgrading cluster \
             to version 4.19: bundle \"boat.v1.0.0\" for ClusterExtension \"boat\",bundle \"kite.v1.0.0\" for \
             ClusterExtension \"kite\".\n Additionally the following errors were encountered while getting extension \
             metadata: error(s) with cluster extension odd: error in bundle odd.v1.0.0: error converting to semver for \
             version 4: invalid semver format \"4\": expected <major>.<minor>\n",
        )
        .await?;
    world
        .upgradeable("False", "", "an upgrade to version 1.1.0 lifts the block")
        .await?;
    world.apply("kite", json!({})).await?;
    world
        .upgradeable(
            "False",
            "",
            "version 4.19: bundle \"boat.v1.0.0\" for ClusterExtension \"boat\".",
        )
        .await?;
    world.event("kite", "ClusterUpgradeUnblocked").await?;
    world.delete("boat").await?;
    world
        .upgradeable(
            "False",
            "InstalledOLMOperators_FailureGettingExtensionMetadata",
            "InstalledOLMOperatorsUpgradeable: error(s) with cluster extension odd",
        )
        .await?;
    world.force_delete("odd").await?;
    world.upgradeable("True", "AsExpected", "All is well").await?;
    world.metric("olm_cluster_upgradeable 1").await?;
    let text = world.metrics.read().await?;
    ensure!(!text.contains("name=\"boat\""), "{text}");
    // A force-deleted extension leaves no metrics, nor do its revisions.
    eventually(TIMEOUT, "nothing is told of odd", async || {
        let text = world.metrics.read().await?;
        let left: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("name=\"odd\""))
            .collect();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await?;

    // An extension that cannot be judged blocks by name, and holds up no verdict.
    world.tear_release("torn").await?;
    world.apply("torn", json!({})).await?;
    world
        .upgradeable(
            "False",
            "InstalledOLMOperators_FailureGettingExtensionMetadata",
            "InstalledOLMOperatorsUpgradeable: error returning the last deployed release for torn: migrating storage: the Helm \
             release in Secret \"torn\"",
        )
        .await?;
    world.metric("olm_cluster_upgradeable 0").await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), SYSTEM_NAMESPACE);
    secrets.delete("torn", &DeleteParams::default()).await?;
    world.apply("torn", json!({"version": "1.0.0"})).await?;
    world.upgradeable("True", "AsExpected", "All is well").await
}

struct World {
    _plane: ControlPlane,
    _registry: Registry,
    _catalogd: Catalogd,
    _controller: OperatorController,
    client: Client,
    metrics: MetricsReader,
}

impl World {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::start().await?;
        let registry = Registry::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        let metrics = MetricsPort::reserve()?;
        let options = ControllerOptions {
            args: metrics.args(),
            ..ControllerOptions::default()
        };
        let catalogd = Catalogd::start(&plane, &registry).await?;
        let controller = OperatorController::start_with(&plane, &registry, options).await?;
        publish(&client, &registry).await?;
        Ok(Self {
            metrics: metrics.reader(&client).await?,
            _plane: plane,
            _registry: registry,
            _catalogd: catalogd,
            _controller: controller,
            client,
        })
    }

    async fn apply(&self, name: &str, mut catalog: Value) -> Result<()> {
        catalog["packageName"] = json!(name);
        let extension = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name},
            "spec": {"namespace": "default", "source": {"sourceType": "Catalog", "catalog": catalog}},
        });
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(extension))
            .await?;
        Ok(())
    }

    async fn ready(&self, name: &str) -> Result<()> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        eventually(TIMEOUT, &format!("{name} is ready"), async || {
            let status = api.get(name).await?.status.unwrap_or_default();
            let mut conditions = status.conditions.iter().flatten();
            ensure!(
                conditions.any(|c| c.type_ == "Ready" && c.status == "True"),
                "{:?}",
                status.conditions
            );
            Ok(())
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        api.delete(name, &DeleteParams::default()).await?;
        eventually(TIMEOUT, &format!("{name} is gone"), async || {
            ensure!(api.get_opt(name).await?.is_none(), "still there");
            Ok(())
        })
        .await
    }

    /// Deletes an extension and its revisions without running their finalizers.
    async fn force_delete(&self, name: &str) -> Result<()> {
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let set = format!("{name}-1");
        let (merge, none) = (PatchParams::default(), json!({"metadata": {"finalizers": null}}));
        // An additional finalizer keeps the object until its own finalizers are removed.
        let with_finalizer = json!({"metadata": {"finalizers": ["test/held"]}});
        sets.patch(&set, &merge, &Patch::Merge(&with_finalizer)).await?;
        extensions.delete(name, &DeleteParams::default()).await?;
        eventually(TIMEOUT, &format!("{name} is gone"), async || {
            for gone in [
                extensions.patch(name, &merge, &Patch::Merge(&none)).await.err(),
                sets.patch(&set, &merge, &Patch::Merge(&none)).await.err(),
            ] {
                let found = gone
                    .is_none_or(|error| !matches!(error, kube::Error::Api(status) if status.is_not_found()));
                ensure!(!found, "still there");
            }
            Ok(())
        })
        .await
    }

    /// Creates a Helm release of an extension that cannot be read.
    async fn tear_release(&self, name: &str) -> Result<()> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": keys::RELEASE_INDEX_SECRET_TYPE,
            "metadata": {"name": name, "labels": {
                "owner": "operator-controller", "name": name, "type": "index", "status": "deployed", "version": "1"}},
            "stringData": {"chunk": "torn"}});
        let api: Api<Secret> = Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(secret))
            .await?;
        Ok(())
    }

    async fn become_openshift(&self, version: &str) -> Result<()> {
        apply_crds(&self.client, &workspace::root().join("test/testdata/openshift")).await?;
        let api = self.openshift("ClusterVersion", "clusterversions");
        let object = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}});
        let params = PatchParams::apply("test").force();
        api.patch("version", &params, &Patch::Apply(&object)).await?;
        let status = json!({"status": {"desired": {"version": version}}});
        api.patch_status("version", &PatchParams::default(), &Patch::Merge(status))
            .await?;
        Ok(())
    }

    fn openshift(&self, kind: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("config.openshift.io", "v1", kind);
        Api::all_with(
            self.client.clone(),
            &ApiResource::from_gvk_with_plural(&kind, plural),
        )
    }

    /// Waits for the condition of `ClusterOperator` `olm`; an empty reason matches any.
    async fn upgradeable(&self, status: &str, reason: &str, text: &str) -> Result<()> {
        let api = self.openshift("ClusterOperator", "clusteroperators");
        eventually(
            TIMEOUT,
            &format!("Upgradeable={status}/{reason} {text}"),
            async || {
                let operator = api.get("olm").await?;
                let conditions = operator.data["status"]["conditions"].as_array().cloned();
                let found = conditions
                    .into_iter()
                    .flatten()
                    .find(|c| c["type"] == "Upgradeable");
                let found = found.context("there is no condition")?;
                let same = found["status"] == status && (reason.is_empty() || found["reason"] == reason);
                let message = found["message"].as_str().unwrap_or_default();
                ensure!(same && message.contains(text), "{found}");
                Ok(())
            },
        )
        .await
    }

    async fn metric(&self, line: &str) -> Result<()> {
        eventually(TIMEOUT, line, async || {
            let text = self.metrics.read().await?;
            if text.lines().any(|found| found == line) {
                return Ok(());
            }
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let near: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
            bail!("{near:?}")
        })
        .await
    }

    /// Waits until a retry is counted for this reason, and checks that all reasons are documented.
    async fn retries(&self, reason: &str) -> Result<()> {
        let wanted = format!("{RETRIES}{reason}\"}} ");
        eventually(TIMEOUT, &wanted, async || {
            let text = self.metrics.read().await?;
            let mut counted = text.lines().filter_map(|line| line.strip_prefix(RETRIES));
            let foreign = counted.find(|line| {
                !REASONS
                    .iter()
                    .any(|reason| line.starts_with(&format!("{reason}\"}}")))
            });
            ensure!(foreign.is_none(), "no reason that is documented: {foreign:?}");
            ensure!(text.lines().any(|line| line.starts_with(&wanted)), "not counted");
            Ok(())
        })
        .await
    }

    async fn event(&self, name: &str, reason: &str) -> Result<()> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), "default");
        eventually(TIMEOUT, &format!("event {reason} of {name}"), async || {
            let events = api.list(&ListParams::default()).await?.items;
            let about = |event: &Event| event.regarding.as_ref().and_then(|object| object.name.clone());
            let own = events
                .iter()
                .filter(|event| about(event).as_deref() == Some(name));
            let reasons: Vec<_> = own.filter_map(|event| event.reason.clone()).collect();
            ensure!(reasons.iter().any(|found| found == reason), "{reasons:?}");
            Ok(())
        })
        .await
    }
}

/// Pushes all bundles and their catalog, and creates the ClusterCatalog.
async fn publish(client: &Client, registry: &Registry) -> Result<()> {
    let mut metas: Vec<Value> = Vec::new();
    for package in ["kite", "boat", "odd", "torn"] {
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let rows = BUNDLES.iter().filter(|row| row.0 == package);
        let entries: Vec<Value> = rows
            .map(|(_, version, replaces, _)| {
                let mut entry = json!({"name": format!("{package}.v{version}")});
                if !replaces.is_empty() {
                    entry["replaces"] = json!(format!("{package}.v{replaces}"));
                }
                entry
            })
            .collect();
        metas
            .push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
    }
    for (package, version, _, limit) in BUNDLES {
        let limit_value: Value = serde_json::from_str(limit)?;
        metas.push(json!({
            "schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
            "image": format!("{}/bundles/{package}:{version}", registry.host()),
            "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}},
                {"type": "olm.maxOpenShiftVersion", "value": limit_value}],
        }));
        bundle(package, version, limit)
            .push(registry, &format!("bundles/{package}:{version}"))
            .await?;
    }
    let metas: Vec<String> = metas.iter().map(ToString::to_string).collect();
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", metas.join("\n"))
        .push(registry, "catalog:v1")
        .await?;
    let reference = format!("{}/catalog:v1", registry.host());
    let catalog = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "catalog"},
        "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
    });
    let api: Api<ClusterCatalog> = Api::all(client.clone());
    api.patch("catalog", &PatchParams::apply("test"), &Patch::Apply(catalog))
        .await?;
    Ok(())
}

fn bundle(package: &str, version: &str, limit: &str) -> ImageBuilder {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{package}.v{version}"), "annotations": {
            "olm.properties": format!("[{{\"type\":\"olm.maxOpenShiftVersion\",\"value\":{limit}}}]"),
        }},
        "spec": {"version": version, "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {}}},
    });
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": package},
        "data": {"version": version}});
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": package,
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    }});
    ImageBuilder::new()
        .file("manifests/csv.yaml", csv.to_string())
        .file("manifests/config.yaml", config.to_string())
        .file("metadata/annotations.yaml", annotations.to_string())
}
