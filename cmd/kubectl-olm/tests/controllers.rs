//! Installation, upgrade and removal of the controllers on a real control plane. No container runs there: a stand-in
//! marks the pods ready.

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use common::{Said, run_with};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use olm_api::{ClusterCatalog, ClusterExtension};
use olm_harness::{ControlPlane, PodStandIn};
use serde_json::{Value, json};

const NAMESPACE: &str = "olmv1-system";
const ADMINISTRATOR: &str = "operator-controller-cluster-admin-rolebinding";

struct World {
    _pods: PodStandIn,
    plane: ControlPlane,
}

impl World {
    async fn start() -> Result<Self> {
        olm_harness::tls::install_provider();
        let plane = ControlPlane::start().await?;
        Ok(Self {
            _pods: PodStandIn::start(plane.client()),
            plane,
        })
    }

    /// Runs the program on the cluster.
    async fn olm(&self, line: &str) -> Result<Said> {
        let kubeconfig = self.plane.kubeconfig().display().to_string();
        let line = line.to_owned();
        Ok(tokio::task::spawn_blocking(move || {
            let args: Vec<&str> = line.split_whitespace().collect();
            run_with(&args, &[("KUBECONFIG", &kubeconfig)])
        })
        .await?)
    }

    fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        Api::all(self.plane.client())
    }

    async fn crds(&self) -> Result<Vec<String>> {
        let list = self
            .all::<CustomResourceDefinition>()
            .list(&ListParams::default())
            .await?;
        Ok(list
            .items
            .into_iter()
            .filter_map(|crd| crd.metadata.name)
            .collect())
    }

    async fn image(&self, deployment: &str) -> Result<String> {
        let api: Api<Deployment> = Api::namespaced(self.plane.client(), NAMESPACE);
        let spec = api.get(deployment).await?.spec.context("no spec")?;
        let pod = spec.template.spec.context("no pod")?;
        let container = pod.containers.into_iter().next().context("no container")?;
        Ok(container.image.unwrap_or_default())
    }
}

fn expect(said: &Said, code: i32, parts: &[&str]) -> Result<()> {
    ensure!(said.code == code, "expected exit code {code}: {said}");
    let whole = said.to_string();
    for part in parts {
        ensure!(whole.contains(part), "{part:?} is not in: {whole}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_an_installation() -> Result<()> {
    let world = World::start().await?;
    before(&world).await?;
    install(&world).await?;
    diagnosis(&world).await?;
    bundle(&world).await?;
    upgrade(&world).await?;
    another(&world).await?;
    removal_is_refused(&world).await?;
    removal(&world).await
}

#[test]
fn manifests_are_exported_without_a_cluster() {
    let export = |line: &str| run_with(&line.split_whitespace().collect::<Vec<_>>(), &[]);
    let said = export("install-controllers --export --overlay openshift --image-tag next");
    expect(
        &said,
        0,
        &[
            "kind: Namespace",
            "image: olmv1/catalogd:next",
            "olmv1-service-ca",
        ],
    )
    .unwrap();
    let said = export("install-controllers --export --overlay openshift --overlay cert-manager");
    expect(&said, 2, &["exclude each other"]).unwrap();
    let said = export("install-controllers");
    expect(&said, 3, &["no cluster is configured"]).unwrap();
}

async fn before(world: &World) -> Result<()> {
    let said = world.olm("install-controllers --dry-run").await?;
    expect(&said, 0, &["WOULD APPLY", "Namespace olmv1-system"])?;
    assert_eq!(world.crds().await?, [""; 0]);
    let said = world.olm("install-controllers --overlay cert-manager").await?;
    expect(
        &said,
        1,
        &[
            "nothing is installed",
            "Certificate (cert-manager.io/v1)",
            "install cert-manager first",
        ],
    )?;
    assert_eq!(world.crds().await?, [""; 0]);
    let said = world.olm("uninstall-controllers").await?;
    expect(&said, 0, &["nothing to remove"])
}

async fn install(world: &World) -> Result<()> {
    let said = world.olm("install-controllers --timeout 2m").await?;
    expect(
        &said,
        0,
        &[
            "The controllers are installed and available: olmv1/catalogd:dev",
            "Deployment olmv1-system/catalogd-controller-manager is ready",
            "Next:",
        ],
    )?;
    assert_eq!(world.crds().await?.len(), 3);
    world.all::<ClusterRoleBinding>().get(ADMINISTRATOR).await?;
    Ok(())
}

/// No controller runs on this control plane, so nobody leads; nothing else is wrong.
async fn diagnosis(world: &World) -> Result<()> {
    let said = world.olm("doctor -o json").await?;
    ensure!(said.code == 1, "{said}");
    let value: Value = serde_json::from_str(&said.out)?;
    let objects: BTreeSet<&str> = value["findings"]
        .as_array()
        .context("no findings")?
        .iter()
        .filter_map(|finding| finding["object"].as_str())
        .collect();
    let expected = [
        "Lease olmv1-system/9c4404e7.operatorframework.io",
        "Lease olmv1-system/catalogd-operator-lock",
        "Secret olmv1-system/catalogd-service-own-cert",
        "Secret olmv1-system/operator-controller-service-own-cert",
    ];
    ensure!(objects == BTreeSet::from(expected), "{said}");

    // A webhook that nobody answers, and a role without its rules.
    let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"}, "webhooks": [{"name": "guard.example.com", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "n", "name": "guard"}},
            "rules": [{"apiGroups": ["olm.operatorframework.io"], "apiVersions": ["*"],
                "operations": ["DELETE"], "resources": ["clusterextensions"]}]}]});
    let webhooks: Api<ValidatingWebhookConfiguration> = world.all();
    webhooks
        .create(&PostParams::default(), &serde_json::from_value(webhook)?)
        .await?;
    let roles: Api<ClusterRole> = world.all();
    let role = roles.get("catalogd-manager-role").await?;
    let without = json!({"rules": []});
    roles
        .patch(
            "catalogd-manager-role",
            &PatchParams::default(),
            &Patch::Merge(without),
        )
        .await?;
    let said = world.olm("doctor").await?;
    expect(
        &said,
        1,
        &[
            "Service n/guard has no ready endpoint",
            "ClusterRole catalogd-manager-role",
            "--force-conflicts",
        ],
    )?;
    webhooks.delete("guard", &DeleteParams::default()).await?;
    let restored = json!({"rules": role.rules});
    roles
        .patch(
            "catalogd-manager-role",
            &PatchParams::default(),
            &Patch::Merge(restored),
        )
        .await?;
    Ok(())
}

/// No secret of the cluster is in the bundle.
async fn bundle(world: &World) -> Result<()> {
    const CANARY: &str = "c4n4ry-5ecret";
    let secret = json!({"metadata": {"name": "pull-secret"}, "stringData": {"password": CANARY}});
    let secrets: Api<Secret> = Api::namespaced(world.plane.client(), NAMESPACE);
    secrets
        .create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    let deployments: Api<Deployment> = Api::namespaced(world.plane.client(), NAMESPACE);
    let environment = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "manager", "env": [{"name": "HTTPS_PROXY", "value": format!("http://u:{CANARY}@proxy")}]}]}}}});
    let catalogd = "catalogd-controller-manager";
    deployments
        .patch(catalogd, &PatchParams::default(), &Patch::Strategic(environment))
        .await?;
    let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "lamp", "annotations": {"example.com/note": format!("password={CANARY}")}},
        "spec": {"namespace": "default", "config": {"configType": "Inline", "inline": {"key": CANARY}},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "lantern"}}}});
    let extensions: Api<ClusterExtension> = world.all();
    extensions
        .patch("lamp", &PatchParams::apply("test"), &Patch::Apply(extension))
        .await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.tar.gz");
    let said = world
        .olm(&format!("support-bundle -f {}", file.display()))
        .await?;
    expect(&said, 0, &["wrote", "not-collected.txt"])?;
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(&file)
        .arg("-C")
        .arg(folder.path())
        .status()?;
    ensure!(unpacked.success(), "the bundle cannot be unpacked");
    let found = Command::new("grep")
        .args(["-rl", CANARY])
        .arg(folder.path())
        .output()?;
    assert_eq!(
        String::from_utf8_lossy(&found.stdout),
        "",
        "a secret is in the bundle"
    );
    let list = Command::new("tar").arg("-tzf").arg(&file).output()?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    for part in [
        "/versions.yaml",
        "/doctor.yaml",
        "/not-collected.txt",
        "/objects/clusterextension/lamp.yaml",
        "/objects/secret/pull-secret.yaml",
        "/objects/deployment/catalogd-controller-manager.yaml",
        "/objects/customresourcedefinitions/clusterextensions.olm.operatorframework.io.yaml",
    ] {
        ensure!(list.contains(part), "{part} is not in\n{list}");
    }
    // An existing file is not replaced.
    let again = world
        .olm(&format!("support-bundle -f {}", file.display()))
        .await?;
    expect(&again, 1, &["choose another file"])?;
    extensions.delete("lamp", &DeleteParams::default()).await?;
    secrets.delete("pull-secret", &DeleteParams::default()).await?;
    Ok(())
}

/// A second run changes images and overlays, and removes what the new overlay omits.
async fn upgrade(world: &World) -> Result<()> {
    let said = world
        .olm("install-controllers --overlay least-privilege --dry-run")
        .await?;
    let (_, deleted) = said.out.split_once("WOULD DELETE").context("no deletions")?;
    ensure!(deleted.contains(ADMINISTRATOR), "{said}");
    world.all::<ClusterRoleBinding>().get(ADMINISTRATOR).await?;
    let said = world
        .olm("install-controllers --overlay least-privilege --overlay high-availability --overlay ui --image-tag next --timeout 2m -o json")
        .await?;
    expect(
        &said,
        0,
        &[
            "\"kind\": \"List\"",
            "operator-controller-cluster-admin-rolebinding deleted",
        ],
    )?;
    assert_eq!(
        world.image("catalogd-controller-manager").await?,
        "olmv1/catalogd:next"
    );
    assert_eq!(world.image("olmv1-ui").await?, "olmv1/kubectl-olm:next");
    let left = world.all::<ClusterRoleBinding>().get_opt(ADMINISTRATOR).await?;
    assert!(
        left.is_none(),
        "operator-controller is still a cluster administrator"
    );
    let said = world.olm("install-controllers --overlay ui --timeout 2m").await?;
    expect(&said, 0, &["olmv1/catalogd:dev"])?;
    assert_eq!(world.image("olmv1-ui").await?, "olmv1/kubectl-olm:dev");
    Ok(())
}

/// An installation that another tool applied is not taken over silently.
async fn another(world: &World) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(world.plane.client(), "elsewhere");
    let namespace = json!({"metadata": {"name": "elsewhere"}});
    let namespaces: Api<Namespace> = world.all();
    namespaces
        .create(&PostParams::default(), &serde_json::from_value(namespace)?)
        .await?;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "catalogd-controller-manager"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    api.patch(
        "catalogd-controller-manager",
        &PatchParams::apply("kubectl"),
        &Patch::Apply(deployment),
    )
    .await?;
    let said = world.olm("install-controllers").await?;
    expect(
        &said,
        1,
        &[
            "Deployment elsewhere/catalogd-controller-manager",
            "another installation",
        ],
    )?;
    api.delete("catalogd-controller-manager", &DeleteParams::default())
        .await?;
    Ok(())
}

/// Fields of the tool that applied the Deployments go, those that somebody added stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_installation_of_another_tool_is_taken_over() -> Result<()> {
    let world = World::start().await?;
    let said = world.olm("install-controllers --export -o json").await?;
    let exported: Value = serde_json::from_str(&said.out)?;
    let items = exported["items"].as_array().context("no list")?.iter();
    let namespaces: Api<Namespace> = world.all();
    namespaces
        .create(
            &PostParams::default(),
            &serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?,
        )
        .await?;
    let api: Api<Deployment> = Api::namespaced(world.plane.client(), NAMESPACE);
    // Helm 3 writes without server-side apply, Helm 4 with it.
    for (at, deployment) in items.filter(|item| item["kind"] == "Deployment").enumerate() {
        let mut deployment = deployment.clone();
        let pod = deployment
            .pointer_mut("/spec/template/spec")
            .context("no template")?;
        let list = |list: &mut Value, entry: Value| list.as_array_mut().map(|list| list.push(entry));
        let certificates = json!({"name": "certs", "secret": {"secretName": "of-upstream"}});
        list(&mut pod["volumes"], certificates).context("no volumes")?;
        let mount = json!({"name": "certs", "mountPath": "/var/certs"});
        list(&mut pod["containers"][0]["volumeMounts"], mount).context("no mounts")?;
        let name = deployment["metadata"]["name"]
            .as_str()
            .context("no name")?
            .to_owned();
        if at == 0 {
            let params = PostParams {
                field_manager: Some("helm".to_owned()),
                ..PostParams::default()
            };
            api.create(&params, &serde_json::from_value(deployment)?).await?;
        } else {
            api.patch(&name, &PatchParams::apply("helm"), &Patch::Apply(deployment))
                .await?;
        }
        let environment = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "manager", "env": [{"name": "HTTPS_PROXY", "value": "http://proxy"}]}]}}}});
        let params = PatchParams {
            field_manager: Some("kubectl-set".to_owned()),
            ..PatchParams::default()
        };
        api.patch(&name, &params, &Patch::Strategic(environment)).await?;
    }
    let said = world.olm("install-controllers").await?;
    expect(&said, 1, &["it was applied by helm", "add --force-conflicts"])?;
    let said = world
        .olm("install-controllers --force-conflicts --dry-run")
        .await?;
    expect(&said, 0, &["the fields of helm would be taken over"])?;
    let said = world
        .olm("install-controllers --force-conflicts --timeout 2m")
        .await?;
    expect(
        &said,
        0,
        &["the fields of helm are taken over", "installed and available"],
    )?;
    let deployments = api.list(&ListParams::default()).await?.items;
    assert_eq!(deployments.len(), 2);
    for deployment in deployments {
        let pod = serde_json::to_value(deployment.spec.context("no spec")?.template)?.to_string();
        ensure!(
            !pod.contains("certs"),
            "a volume of the other tool is left: {pod}"
        );
        ensure!(pod.contains("HTTPS_PROXY"), "the environment is gone: {pod}");
    }
    let said = world.olm("install-controllers --timeout 2m").await?;
    expect(&said, 0, &["installed and available"])
}

async fn removal_is_refused(world: &World) -> Result<()> {
    let catalogs: Api<ClusterCatalog> = world.all();
    let catalog = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": "harbour"},
        "spec": {"source": {"type": "Image", "image": {"ref": "example.com/harbour:v1"}}}});
    catalogs
        .create(&PostParams::default(), &serde_json::from_value(catalog)?)
        .await?;
    let said = world.olm("uninstall-controllers").await?;
    expect(&said, 1, &["the controllers are in use: ClusterCatalog harbour"])?;
    assert_eq!(
        world.image("catalogd-controller-manager").await?,
        "olmv1/catalogd:dev"
    );
    catalogs.delete("harbour", &DeleteParams::default()).await?;
    Ok(())
}

async fn removal(world: &World) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(world.plane.client(), NAMESPACE);
    let map = json!({"metadata": {"name": "internal-registry-ca"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map)?)
        .await?;
    // Somebody replaced the Secret of an overlay without this program.
    let pages = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "olmv1-ui-own-cert", "labels": {"somebodys": "secret"}}});
    let secrets: Api<Secret> = Api::namespaced(world.plane.client(), NAMESPACE);
    secrets
        .delete("olmv1-ui-own-cert", &DeleteParams::default())
        .await?;
    secrets
        .patch(
            "olmv1-ui-own-cert",
            &PatchParams::apply("kubectl"),
            &Patch::Apply(pages),
        )
        .await?;
    let foreign = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "operator-controller-watch-role", "labels": {"someones": "role"}}});
    let roles: Api<ClusterRole> = world.all();
    roles
        .patch(
            "operator-controller-watch-role",
            &PatchParams::apply("someone"),
            &Patch::Apply(foreign),
        )
        .await?;

    let said = world.olm("uninstall-controllers --dry-run").await?;
    expect(&said, 0, &["would be deleted"])?;
    assert_eq!(
        world.image("catalogd-controller-manager").await?,
        "olmv1/catalogd:dev"
    );
    let said = world.olm("uninstall-controllers --timeout 2m").await?;
    expect(
        &said,
        0,
        &[
            "kept: applied by kubectl, not by kubectl olm",
            "kept: it also holds Secret olmv1-ui-own-cert, ConfigMap internal-registry-ca",
            "kept: --delete-crds is not set",
            "kept: applied by someone, not by kubectl olm",
        ],
    )?;
    let deployments: Api<Deployment> = Api::namespaced(world.plane.client(), NAMESPACE);
    assert!(deployments.list(&ListParams::default()).await?.items.is_empty());
    assert_eq!(world.crds().await?.len(), 3);
    roles.get("operator-controller-watch-role").await?;

    let said = world.olm("uninstall-controllers --timeout 2m").await?;
    expect(&said, 0, &["kept: it also holds Secret olmv1-ui-own-cert"])?;
    secrets.get("olmv1-ui-own-cert").await?;

    maps.delete("internal-registry-ca", &DeleteParams::default())
        .await?;
    secrets
        .delete("olmv1-ui-own-cert", &DeleteParams::default())
        .await?;
    let said = world
        .olm("uninstall-controllers --delete-crds --timeout 2m")
        .await?;
    expect(&said, 0, &["Namespace olmv1-system"])?;
    assert_eq!(world.crds().await?, [""; 0]);
    let namespaces: Api<Namespace> = world.all();
    assert!(namespaces.get_opt(NAMESPACE).await?.is_none());
    Ok(())
}
