//! Commands about installed extensions, from the rights that an installation takes to the cluster upgrade that an
//! extension blocks, with the real operator-controller.

mod page;
mod plan;
mod rollout;
mod tenants;
mod ui;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use olm_api::{ClusterCatalog, ClusterExtension};
use olm_harness::{ImageBuilder, eventually};
use serde_json::{Value, json};

mod migration;

use super::{PATIENCE, ask};
use crate::common::Said;
use crate::common::world::World;

const NAMESPACE: &str = "kites";
/// Tree of the sample operator. The ends of role and binding names are hashes of their content.
const TREE: &str = "\
kite → kite-1
├─ identity
│  └─ ServiceAccount kites/kite healthy
├─ configuration
│  └─ ConfigMap kites/kite-settings healthy
├─ crds
│  └─ CustomResourceDefinition kites.example.com healthy
├─ roles
│  ├─ ClusterRole kite.v1.0.0-… healthy
│  └─ ClusterRole kite.v1.0.0-… healthy
├─ bindings
│  ├─ ClusterRoleBinding kite.v1.0.0-… healthy
│  └─ ClusterRoleBinding kite.v1.0.0-… healthy
└─ deploy
   └─ Deployment kites/kite healthy
";

impl World {
    async fn publish(&self) -> Result<()> {
        let host = self.registry.host();
        let mut metas = vec![
            json!({"schema": "olm.package", "name": "kite", "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": "kite", "name": "stable", "entries": [
                {"name": "kite.v1.0.0"}, {"name": "kite.v1.1.0", "replaces": "kite.v1.0.0"}]}),
        ];
        for version in ["1.0.0", "1.1.0"] {
            let repository = format!("bundles/kite:{version}");
            bundle(version).push(&self.registry, &repository).await?;
            metas.push(json!({
                "schema": "olm.bundle", "package": "kite", "name": format!("kite.v{version}"),
                "image": format!("{host}/{repository}"),
                "properties": [{"type": "olm.package", "value": {"packageName": "kite", "version": version}}],
            }));
        }
        let metas: Vec<String> = metas.iter().map(Value::to_string).collect();
        ImageBuilder::new()
            .label("operators.operatorframework.io.index.configs.v1", "/configs")
            .file("configs/catalog.json", metas.join("\n"))
            .push(&self.registry, "kites:v1")
            .await?;
        let catalog = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "kites"},
            "spec": {"source": {"type": "Image", "image": {"ref": format!("{host}/kites:v1")}}},
        });
        let catalogs: Api<ClusterCatalog> = Api::all(self.client.clone());
        let apply = PatchParams::apply("test");
        catalogs.patch("kites", &apply, &Patch::Apply(catalog)).await?;
        Ok(())
    }

    async fn create<K>(&self, api: Api<K>, object: Value) -> Result<()>
    where
        K: serde::de::DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
    {
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
        Ok(())
    }

    async fn apply(&self, version: &str) -> Result<()> {
        let extension = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "kite"},
            "spec": {"namespace": NAMESPACE, "serviceAccount": {"name": "installer"},
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite", "version": version}}},
        });
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        api.patch("kite", &PatchParams::apply("test"), &Patch::Apply(extension))
            .await?;
        Ok(())
    }

    /// Gives the account these rules, and no others.
    async fn grant(&self, rules: &[Value]) -> Result<()> {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "kite-installer"}, "rules": rules});
        let api: Api<ClusterRole> = Api::all(self.client.clone());
        let params = PatchParams::apply("test").force();
        api.patch("kite-installer", &params, &Patch::Apply(role)).await?;
        Ok(())
    }

    /// Waits until this version is there and ready; without that `--watch` would go on for ever.
    async fn ready(&self, version: &str) -> Result<()> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        eventually(PATIENCE, &format!("{version} is ready"), async || {
            let status = api.get("kite").await?.status.unwrap_or_default();
            let there = status
                .install
                .as_ref()
                .is_some_and(|install| install.bundle.version == version);
            let mut conditions = status.conditions.iter().flatten();
            let ready = conditions.any(|c| c.type_ == "Ready" && c.status == "True");
            ensure!(there && ready, "{status:#?}");
            Ok(())
        })
        .await
    }

    /// Returns the rules that `bundle permissions` prints for this version.
    async fn printed_rules(&self, version: &str) -> Result<Vec<Value>> {
        let host = self.registry.host();
        let image = format!("{host}/bundles/kite:{version}");
        let role = self
            .value(&[
                "bundle",
                "permissions",
                &image,
                "-n",
                NAMESPACE,
                "--plain-http-registry",
                &host,
            ])
            .await?;
        ensure!(role["kind"] == "ClusterRole", "{role}");
        Ok(role["rules"].as_array().context("no rules")?.clone())
    }

    async fn says(&self, args: &[&str]) -> Result<Said> {
        let kubeconfig = self.plane.kubeconfig().display().to_string();
        ask(args, &[("KUBECONFIG", kubeconfig.as_str())]).await
    }

    async fn value(&self, args: &[&str]) -> Result<Value> {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        let said = self.says(&args).await?;
        serde_json::from_str(&said.out).with_context(|| said.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_from_permissions_to_cluster_upgrade() -> Result<()> {
    let world = World::start().await?;
    world.publish().await?;
    installs_with_the_printed_rights(&world).await?;
    tells_of_what_is_installed(&world).await?;
    rollout::pauses_and_resumes(&world).await?;
    upgrades_and_tells_so(&world).await?;
    the_clusters_upgrade(&world).await?;
    a_change_of_a_crd(&world).await?;
    a_deletion_is_shown_and_confirmed(&world).await?;
    goes_with_the_same_rights(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_on_rollouts_and_tenants() -> Result<()> {
    let world = World::start().await?;
    world.publish().await?;
    page::install(&world).await?;
    page::commands(&world).await?;
    tenants::see_their_namespace(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_the_ui() -> Result<()> {
    let world = World::start().await?;
    world.publish().await?;
    page::install(&world).await?;
    ui::opens_a_browser(&world).await?;
    ui::shows_what_is_installed(&world).await?;
    ui::shows_the_pages(&world).await
}

/// Checks that a missing rule is reported and nothing is written, and that the bundle is installed with all rules.
async fn installs_with_the_printed_rights(world: &World) -> Result<()> {
    let rules = world.printed_rules("1.0.0").await?;
    let client = &world.client;
    world
        .create(
            Api::<Namespace>::all(client.clone()),
            json!({"metadata": {"name": NAMESPACE}}),
        )
        .await?;
    world
        .create(
            Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE),
            json!({"metadata": {"name": "installer"}}),
        )
        .await?;
    let binding = json!({"metadata": {"name": "kite-installer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kite-installer"},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": NAMESPACE}]});
    world
        .create(Api::<ClusterRoleBinding>::all(client.clone()), binding)
        .await?;
    let about_deployments = |rule: &&Value| rule["resources"].to_string().contains("\"deployments\"");
    let without: Vec<Value> = rules
        .iter()
        .filter(|rule| !about_deployments(rule))
        .cloned()
        .collect();
    ensure!(
        without.len() < rules.len(),
        "no rule is about Deployments: {rules:?}"
    );
    world.grant(&without).await?;
    world.apply("1.0.0").await?;
    let extensions: Api<ClusterExtension> = Api::all(client.clone());
    eventually(PATIENCE, "the missing right is named", async || {
        let status = extensions.get("kite").await?.status.unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let named = conditions.any(|c| {
            c.message.contains("pre-authorization failed") && c.message.contains("Resources:[deployments]")
        });
        ensure!(named && status.install.is_none(), "{:?}", status.conditions);
        Ok(())
    })
    .await?;
    let revisions = world.value(&["history", "kite"]).await?;
    ensure!(revisions["revisions"] == json!([]), "{revisions}");
    world.grant(&rules).await?;
    world.ready("1.0.0").await?;
    let watched = world.says(&["status", "kite", "--watch"]).await?;
    assert_eq!(watched.code, 0, "{watched}");
    ensure!(watched.err.contains("Ready: Version 1.0.0"), "{watched}");
    Ok(())
}

async fn tells_of_what_is_installed(world: &World) -> Result<()> {
    let all = world.says(&["get"]).await?;
    assert_eq!(all.code, 0, "{all}");
    let row: Vec<&str> = all
        .out
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(
        row.get(..5),
        Some(["kite", "kite", "1.0.0", "kites", "Ready"].as_slice()),
        "{all}"
    );
    ensure!(
        all.out.contains("1.1.0"),
        "the successor that is held back is shown: {all}"
    );

    let tree = world.says(&["tree", "kite"]).await?;
    let shown: Vec<String> = tree.out.lines().map(shortened).collect();
    assert_eq!(
        (tree.code, shown.join("\n").as_str()),
        (0, TREE.trim_end()),
        "{tree}"
    );
    says_why_a_workload_is_not_available(world).await?;
    let missing = world.says(&["status", "none"]).await?;
    assert_eq!(missing.code, 1, "{missing}");
    ensure!(
        missing.err.contains("there is no ClusterExtension \"none\""),
        "{missing}"
    );
    Ok(())
}

fn shortened(line: &str) -> String {
    let Some((before, rest)) = line.split_once("kite.v1.0.0-") else {
        return line.to_owned();
    };
    let health = rest.split_once(' ').map_or("", |(_, health)| health);
    format!("{before}kite.v1.0.0-… {health}")
}

/// Roles are named after the version: what goes and what comes have to be written.
/// `tree` and `status` name the workload, its pod and the cause.
async fn says_why_a_workload_is_not_available(world: &World) -> Result<()> {
    world.pods.set_image_pulls("kite", false).await;
    let why = "container manager cannot start: ImagePullBackOff: \"the test says so\"";
    eventually(PATIENCE, "the cause is told", async || {
        let tree = world.says(&["tree", "kite"]).await?;
        let line = tree
            .out
            .lines()
            .find(|line| line.contains("Deployment kites/kite not ready: pod kite-"));
        ensure!(
            tree.code == 1 && line.is_some_and(|line| line.contains(why)),
            "{tree}"
        );
        let status = world.says(&["status", "kite"]).await?;
        let told = "Deployment kites/kite is not available: pod kite-";
        ensure!(status.out.contains(told) && status.out.contains(why), "{status}");
        Ok(())
    })
    .await?;
    world.pods.set_image_pulls("kite", true).await;
    world.ready("1.0.0").await
}

async fn upgrades_and_tells_so(world: &World) -> Result<()> {
    let mut rules = world.printed_rules("1.0.0").await?;
    rules.extend(world.printed_rules("1.1.0").await?);
    world.grant(&rules).await?;
    let before = plan::objects(world).await?;
    let planned = plan::of_the_upgrade(world).await?;
    plan::of_a_user_with_few_rights(world, &planned).await?;
    rollout::approves_an_upgrade(world).await?;
    world.ready("1.1.0").await?;
    plan::covers(world, &before, &planned).await?;
    plan::of_nothing(world).await?;
    plan::of_selected_namespaces(world).await?;
    plan::of_a_suggested_namespace(world).await?;
    let watched = world.says(&["status", "kite", "--watch"]).await?;
    assert_eq!(watched.code, 0, "{watched}");
    ensure!(watched.out.contains("Version    1.1.0"), "{watched}");
    eventually(PATIENCE, "the first revision is archived", async || {
        let history = world.value(&["history", "kite"]).await?;
        let states: Vec<(&str, &str)> = history["revisions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| Some((row["version"].as_str()?, row["state"].as_str()?)))
            .collect();
        ensure!(
            states == [("1.0.0", "Archived"), ("1.1.0", "Succeeded")],
            "{history}"
        );
        Ok(())
    })
    .await?;
    eventually(PATIENCE, "the events are told", async || {
        let events = world.says(&["events", "kite"]).await?;
        for reason in ["Retrying", "Resolved", "Installed", "Upgraded"] {
            ensure!(events.out.contains(reason), "no {reason}: {events}");
        }
        Ok(())
    })
    .await
}

/// The bundle runs up to OpenShift 5.3, which is made of Kubernetes 1.39.
async fn the_clusters_upgrade(world: &World) -> Result<()> {
    let next = world.says(&["cluster-upgrade", "check"]).await?;
    assert_eq!(next.code, 0, "{next}");
    ensure!(next.out.contains("No extension blocks the upgrade"), "{next}");
    let far = world.says(&["cluster-upgrade", "check", "--to", "1.41"]).await?;
    assert_eq!(far.code, 1, "{far}");
    ensure!(
        far.out.contains("kite") && far.out.contains("OpenShift 5.3"),
        "{far}"
    );
    let next = world.value(&["cluster-upgrade", "check"]).await?;
    ensure!(
        next["waiting"] == json!([]) && next["unchecked"] == json!([]),
        "{next}"
    );
    let odd = world.says(&["cluster-upgrade", "check", "--to", "soon"]).await?;
    assert_eq!(odd.code, 2, "{odd}");
    Ok(())
}

async fn a_change_of_a_crd(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("crd.yaml");
    let path = file.display().to_string();
    for (type_, code, word) in [("integer", 0, "safe"), ("string", 1, "1 finding\n")] {
        std::fs::write(&file, crd(type_).to_string())?;
        let said = world.says(&["crd-safety", &path]).await?;
        assert_eq!(said.code, code, "{said}");
        ensure!(said.out.contains(word), "{said}");
    }
    Ok(())
}

/// Checks that a deletion is shown before it happens, and that custom resources are not deleted unasked.
async fn a_deletion_is_shown_and_confirmed(world: &World) -> Result<()> {
    for name in ["red", "blue"] {
        let kite = json!({"apiVersion": "example.com/v1", "kind": "Kite",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"size": 3}});
        world.create(kites(world), kite).await?;
    }
    let shown = world.says(&["delete", "kite", "--dry-run"]).await?;
    assert_eq!(shown.code, 0, "{shown}");
    for line in [
        "CustomResourceDefinition kites.example.com  would be kept: kites.example.com holds 2 custom resources",
        "Deployment kites/kite                       would be deleted",
    ] {
        ensure!(
            squeezed(&shown.out).contains(&squeezed(line)),
            "no {line:?}: {shown}"
        );
    }
    let delete = ["delete", "kite", "--custom-resources", "Delete"];
    let all = world.value(&[&delete[..], &["--dry-run"]].concat()).await?;
    let crd = all["objects"].as_array().into_iter().flatten();
    let crd = crd
        .into_iter()
        .find(|row| row["kind"] == "CustomResourceDefinition");
    let crd = crd.context("no CRD")?;
    ensure!(
        crd["deleted"] == true && crd["customResources"] == json!({"kind": "Kite", "number": 2}),
        "{all}"
    );
    // The standard input of a test is no terminal.
    let refused = world.says(&delete).await?;
    assert_eq!(refused.code, 2, "{refused}");
    ensure!(
        refused.err.contains("deletes custom resources: 2 Kite."),
        "{refused}"
    );
    let extensions: Api<ClusterExtension> = Api::all(world.client.clone());
    let extension = extensions.get("kite").await?;
    ensure!(extension.metadata.deletion_timestamp.is_none() && extension.spec.deletion.is_none());
    let missing = world.says(&["delete", "kit"]).await?;
    assert_eq!(missing.code, 1, "{missing}");
    Ok(())
}

/// Returns the text with single spaces.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kites(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Kite"));
    Api::namespaced_with(world.client.clone(), NAMESPACE, &kind)
}

/// Checks that the printed rights suffice for a removal that keeps custom resources.
async fn goes_with_the_same_rights(world: &World) -> Result<()> {
    world.grant(&world.printed_rules("1.1.0").await?).await?;
    let gone = world.says(&["delete", "kite", "--timeout", "90s"]).await?;
    assert_eq!(gone.code, 0, "{gone}");
    let kept = "CustomResourceDefinition kites.example.com kept: kites.example.com holds 2 custom resources";
    ensure!(squeezed(&gone.out).contains(kept), "{gone}");
    ensure!(
        gone.err.contains("ClusterExtension kite is being deleted"),
        "{gone}"
    );
    ensure!(kites(world).list(&ListParams::default()).await?.items.len() == 2);
    let none = world.says(&["get"]).await?;
    assert_eq!(none.out, "no ClusterExtensions\n", "{none}");
    Ok(())
}

fn crd(size: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kites.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Kite", "listKind": "KiteList", "plural": "kites", "singular": "kite"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": size}}},
                }}}}],
        },
    })
}

/// A bundle of most kinds: a CRD, roles of both kinds, a workload with its account, settings.
fn bundle(version: &str) -> ImageBuilder {
    let labels = json!({"app": "kite"});
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("kite.v{version}"), "annotations": {
            "olm.properties": "[{\"type\":\"olm.maxOpenShiftVersion\",\"value\":\"5.3\"}]"}},
        "spec": {
            "version": version,
            "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "MultiNamespace", "supported": true}],
            "customresourcedefinitions": {"owned": [{"name": "kites.example.com", "kind": "Kite", "version": "v1"}]},
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": "kite", "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}],
                "clusterPermissions": [{"serviceAccountName": "kite", "rules": [
                    {"apiGroups": ["example.com"], "resources": ["kites"], "verbs": ["*"]},
                    {"nonResourceURLs": ["/version"], "verbs": ["get"]}]}],
                "deployments": [{"name": "kite", "spec": {
                    "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {
                        "serviceAccountName": "kite",
                        "containers": [{"name": "manager", "image": format!("registry.example/kite:{version}")}]}},
                }}],
            }},
        },
    });
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kite-settings"},
        "data": {"version": version}});
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": "kite",
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    }});
    ImageBuilder::new()
        .file("manifests/kite.clusterserviceversion.yaml", csv.to_string())
        .file("manifests/kites.crd.yaml", crd("integer").to_string())
        .file("manifests/settings.yaml", settings.to_string())
        .file("metadata/annotations.yaml", annotations.to_string())
}
