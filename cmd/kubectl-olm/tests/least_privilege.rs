//! Three real operators under `config/overlays/least-privilege`: operator-controller is no cluster administrator, and
//! each operator is installed, upgraded and removed as an account that has what `bundle permissions` prints, and no
//! more.

mod common;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::run_with;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use olm_api::keys;
use olm_e2e::cluster::Cluster;
use olm_e2e::rbac::{grants, lease_of_dead_leader, refused, requests, requests_as, unused};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, OperatorController, PodStandIn, Registry,
    bundle_image_from_dir, eventually, install_crds,
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_mins(2);
/// The API server was seen to forget a CRD that is being deleted, until its controller goes through all of them again.
const GONE_WITHIN: Duration = Duration::from_mins(7);
const ACCOUNT: &str = "operator-controller-controller-manager";
const USER: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Rights that not every run shows in a request: checked in the course of others (`create` of what is applied,
/// finalizers of owners), of other clusters, of metrics, of pull secrets and of certificates that are renewed, of
/// events that repeat, of Secrets of an attempt that was cut off, of what the watch mostly knows, of revisions that others
/// change or that are rolled back to, and of upgrades that an `OperatorCondition` holds.
const ELSEWHERE: [&str; 14] = [
    "list operatorconditions.",
    "watch operatorconditions.",
    "create clusterobjectsets.",
    "/finalizers.olm.operatorframework.io",
    ".config.openshift.io ",
    "create tokenreviews.",
    "create subjectaccessreviews.",
    "watch secrets. olmv1-system/*",
    "update secrets. olmv1-system/*",
    "delete secrets. olmv1-system/*",
    "create events.",
    "patch events.",
    "get clusterextensions.",
    "get clusterobjectsets.",
];

struct Operator {
    package: &'static str,
    versions: [&'static str; 2],
    /// True if both versions remove fields from CRDs, which the check refuses.
    unsafe_crds: bool,
    /// True if the test shows that the operator waits for its account, and for the right to impersonate the account.
    shows_refusals: bool,
}

const OPERATORS: [Operator; 3] = [
    Operator {
        package: "argocd-operator",
        versions: ["0.16.0", "0.17.0"],
        unsafe_crds: true,
        shows_refusals: false,
    },
    Operator {
        package: "rabbitmq-cluster-operator",
        versions: ["2.22.2", "2.22.3"],
        unsafe_crds: false,
        shows_refusals: true,
    },
    Operator {
        package: "strimzi-kafka-operator",
        versions: ["1.1.0", "1.2.0"],
        unsafe_crds: true,
        shows_refusals: false,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn real_operators_need_only_the_printed_rights() -> Result<()> {
    let Some(vectors) = common::vectors("no real operator was installed") else {
        return Ok(());
    };
    let control_plane = ControlPlane::start_audited().await?;
    let registry = Registry::start().await?;
    let client = control_plane.client();
    let cluster = Cluster::new(client.clone());
    install_crds(&client).await?;
    namespace(&cluster, SYSTEM_NAMESPACE).await?;
    let rights = overlay(&cluster).await?;
    cluster
        .apply(&lease_of_dead_leader("9c4404e7.operatorframework.io"))
        .await?;
    let _pods = PodStandIn::start(client.clone());
    let _catalogd = Catalogd::start(&control_plane, &registry).await?;
    let options = ControllerOptions {
        args: vec![
            "--leader-elect".to_owned(),
            "--service-account-policy=Require".to_owned(),
        ],
        kubeconfig: Some(control_plane.kubeconfig_for(USER, None)?),
        ..ControllerOptions::default()
    };
    let _operator_controller = OperatorController::start_with(&control_plane, &registry, options).await?;
    publish(&vectors, &registry, &cluster).await?;

    let lives = OPERATORS
        .iter()
        .map(|operator| life(&cluster, &vectors, operator));
    futures::future::try_join_all(lives).await?;
    // The leader creates its lease again.
    let lease = "leases.coordination.k8s.io/9c4404e7.operatorframework.io";
    let (api, lease) = cluster.lookup(lease, SYSTEM_NAMESPACE).await?;
    api.delete(&lease, &DeleteParams::default()).await?;
    eventually(LIMIT, "the lease is back", async || {
        ensure!(api.get_opt(&lease).await?.is_some());
        Ok(())
    })
    .await?;

    let log = control_plane.audit_log();
    let own = requests(&log, USER)?;
    // The one kind that is not watched, and the accounts before they could be acted as.
    let beyond = |request: &String| {
        !matches!(request.as_str(), "list secrets. /" | "watch secrets. /")
            && !request.starts_with("get serviceaccounts. ")
    };
    let missing: Vec<String> = refused(&own).into_iter().filter(beyond).collect();
    ensure!(missing.is_empty(), "the controller lacks: {missing:#?}");
    let superfluous: Vec<String> = unused(&grants(&rights, ACCOUNT), &own)
        .into_iter()
        .filter(|right| !ELSEWHERE.iter().any(|part| right.contains(part)))
        .collect();
    ensure!(superfluous.is_empty(), "superfluous: {superfluous:#?}");
    for operator in &OPERATORS {
        let name = operator.package;
        let made = requests_as(&log, &format!("system:serviceaccount:{name}:installer"))?;
        ensure!(!made.is_empty(), "nothing was done as the account of {name}");
        let missing = refused(&made);
        ensure!(missing.is_empty(), "the account of {name} lacks: {missing:#?}");
    }
    Ok(())
}

/// The rights of the overlay, and its policies.
async fn overlay(cluster: &Cluster) -> Result<Vec<Value>> {
    let deleted = [
        "operator-controller-cluster-admin-rolebinding",
        "operator-controller-impersonator-rolebinding",
    ];
    let base = "config/rbac/operator-controller.yaml";
    let mut objects = cluster.apply_file(base, &deleted).await?;
    let own = "config/overlays/least-privilege/rbac.yaml";
    objects.extend(cluster.apply_file(own, &[]).await?);
    for policy in ["protect-revisions", "require-service-account"] {
        let path = format!("config/optional/{policy}/policy.yaml");
        cluster.apply_file(&path, &[]).await?;
    }
    Ok(objects)
}

async fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .await
}

/// Pushes the bundles and a catalog of them.
async fn publish(vectors: &Path, registry: &Registry, cluster: &Cluster) -> Result<()> {
    let mut metas = Vec::new();
    for Operator {
        package, versions, ..
    } in &OPERATORS
    {
        let [first, second] = versions.map(|version| format!("{package}.v{version}"));
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        metas.push(
            json!({"schema": "olm.channel", "package": package, "name": "stable",
            "entries": [{"name": first}, {"name": second, "replaces": first}]}),
        );
        for version in versions {
            let folder = vectors.join("bundles").join(package).join(version);
            let name = format!("least/{package}:{version}");
            bundle_image_from_dir(&folder)?.push(registry, &name).await?;
            metas.push(json!({
                "schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
                "image": format!("{}/{name}", registry.host()),
                "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}],
            }));
        }
    }
    let lines: Vec<String> = metas.iter().map(ToString::to_string).collect();
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", lines.join("\n"))
        .push(registry, "least/catalog:v1")
        .await?;
    let image = format!("{}/least/catalog:v1", registry.host());
    cluster
        .apply(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "least"},
            "spec": {"source": {"type": "Image", "image": {"ref": image}}},
        }))
        .await
}

/// Refused, closed, installed, upgraded, gone.
async fn life(cluster: &Cluster, vectors: &Path, operator: &Operator) -> Result<()> {
    let name = operator.package;
    let [first, second] = operator.versions;
    namespace(cluster, name).await?;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "installer", "namespace": name}}))
        .await?;
    for version in operator.versions {
        grant(cluster, vectors, name, version).await?;
    }

    let account = json!({"name": "installer"});
    if operator.shows_refusals {
        cluster.apply(&extension(operator, first, &Value::Null)).await?;
        let required = "spec.serviceAccount.name is required: operator-controller runs with --service-account-policy=Require";
        says(cluster, name, "Blocked", required).await?;
        cluster.apply(&extension(operator, first, &account)).await?;
        let closed = "operator-controller may not act as the service account \"installer\"";
        says(cluster, name, "Retrying", closed).await?;
    }
    open(cluster, name).await?;

    for version in [first, second] {
        cluster.apply(&extension(operator, version, &account)).await?;
        eventually(LIMIT, &format!("{name} {version} to be installed"), async || {
            let status = status(cluster, name).await?;
            let progressing = condition(&status, "Progressing");
            let done =
                status["install"]["bundle"]["version"] == version && progressing["reason"] == "Succeeded";
            ensure!(done, "{progressing}");
            Ok(())
        })
        .await?;
    }
    let owner = format!("{}={name}", keys::OWNER_NAME_LABEL);
    ensure!(
        cluster.labeled(&owner).await?.len() > 5,
        "{name} has brought too little"
    );

    restored(cluster, name).await?;

    let reference = format!("clusterextension/{name}");
    let (api, object) = cluster.lookup(&reference, "").await?;
    api.delete(&object, &DeleteParams::default()).await?;
    eventually(
        GONE_WITHIN,
        &format!("{name} to be gone"),
        async || match cluster.get(&reference, "").await? {
            None => Ok(()),
            Some(object) => anyhow::bail!("{}", object.data["status"]),
        },
    )
    .await?;
    let left = cluster.labeled(&owner).await?;
    ensure!(left.is_empty(), "left of {name}: {left:?}");
    Ok(())
}

/// Deletes the first Deployment of the namespace, and waits until it is there again: drift is seen and repaired.
async fn restored(cluster: &Cluster, namespace: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), namespace);
    let all = deployments.list_metadata(&ListParams::default()).await?;
    let first = all.items.into_iter().next().context("no Deployment")?;
    let name = first.name_any();
    deployments.delete(&name, &DeleteParams::background()).await?;
    eventually(
        LIMIT,
        &format!("Deployment {namespace}/{name} to be restored"),
        async || {
            let there = deployments.get_metadata(&name).await?;
            ensure!(there.uid() != first.uid(), "it is the former one");
            Ok(())
        },
    )
    .await
}

/// Gives the account what the program prints for one version.
async fn grant(cluster: &Cluster, vectors: &Path, package: &str, version: &str) -> Result<()> {
    let folder = vectors.join("bundles").join(package).join(version);
    let folder = folder.to_str().context("path is no UTF-8")?.to_owned();
    let namespace = package.to_owned();
    let said = tokio::task::spawn_blocking(move || {
        run_with(
            &["bundle", "permissions", &folder, "-n", &namespace, "-o", "yaml"],
            &[],
        )
    })
    .await?;
    ensure!(said.code == 0, "{said}");
    let mut role: Value = serde_saphyr::from_str(&said.out)?;
    let name = format!("{package}-{version}");
    role["metadata"]["name"] = json!(name);
    cluster.apply(&role).await?;
    cluster
        .apply(&json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": package}],
        }))
        .await
}

/// Lets the controller act as the installer, as docs/service-accounts.md says.
async fn open(cluster: &Cluster, namespace: &str) -> Result<()> {
    let metadata = json!({"name": "operator-controller-acts-as-installer", "namespace": namespace});
    cluster
        .apply(&json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["installer"],
                "verbs": ["get", "impersonate"]}],
        }))
        .await?;
    cluster
        .apply(&json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM_NAMESPACE}],
        }))
        .await
}

fn extension(operator: &Operator, version: &str, account: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": operator.package},
        "spec": {
            "namespace": operator.package,
            "source": {"sourceType": "Catalog", "catalog": {"packageName": operator.package, "version": version}},
        },
    });
    if !account.is_null() {
        object["spec"]["serviceAccount"] = account.clone();
    }
    if operator.unsafe_crds {
        object["spec"]["install"] = json!({"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}});
    }
    object
}

async fn status(cluster: &Cluster, name: &str) -> Result<Value> {
    let object = cluster.get(&format!("clusterextension/{name}"), "").await?;
    Ok(object.context("it is not there")?.data["status"].clone())
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|found| found["type"] == kind);
    found.unwrap_or(&Value::Null)
}

async fn says(cluster: &Cluster, name: &str, reason: &str, part: &str) -> Result<()> {
    eventually(LIMIT, &format!("{name} to say {part:?}"), async || {
        let status = status(cluster, name).await?;
        let progressing = condition(&status, "Progressing");
        let message = progressing["message"].as_str().unwrap_or_default();
        ensure!(
            progressing["reason"] == reason && message.contains(part),
            "{progressing}"
        );
        Ok(())
    })
    .await
}
