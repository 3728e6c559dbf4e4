//! Runs the plans one after another and measures them.

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use olm_e2e::cluster::Cluster;
use olm_e2e::conditions;
use olm_e2e::environment::Environment;
use olm_harness::eventually;
use serde_json::{Value, json};

use crate::content;
use crate::plan::{PLANS, Plan, Watch};

const TIMEOUT: Duration = Duration::from_mins(1);
/// Timeout of a deletion. The API server may forget a CRD under deletion, although none of its objects is left,
/// until the resync of its controller every five minutes.
const DELETE_TIMEOUT: Duration = Duration::from_mins(7);

/// Columns of an [`Outcome`]'s line.
const HEADER: &str =
    "package                            version           objects    install   upgrades    delete  result";

/// Outcome of one operator.
pub(crate) struct Outcome {
    pub(crate) package: &'static str,
    pub(crate) failure: Option<String>,
    version: &'static str,
    objects: usize,
    install: Option<Duration>,
    upgrades: Vec<Duration>,
    delete: Option<Duration>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: &Duration| format!("{:.1}", time.as_secs_f64());
        let upgrades: Vec<String> = self.upgrades.iter().map(seconds).collect();
        write!(
            f,
            "{:<34} {:<16} {:>8} {:>10} {:>10} {:>9}  {}",
            self.package,
            self.version,
            self.objects,
            self.install.as_ref().map_or_else(|| "-".to_owned(), seconds),
            if upgrades.is_empty() {
                "-".to_owned()
            } else {
                upgrades.join(" ")
            },
            self.delete.as_ref().map_or_else(|| "-".to_owned(), seconds),
            self.failure.as_deref().unwrap_or("ok"),
        )
    }
}

/// Runs all plans in one environment.
pub(crate) async fn all(vectors: &Path) -> anyhow::Result<Vec<Outcome>> {
    let environment = Environment::start().await?;
    let cluster = environment.cluster();
    let registry = &environment.registry;
    monitoring_kinds(&cluster).await?;
    content::bundles(vectors, registry).await?;
    let community = content::catalog(vectors, registry).await?;
    let started = Instant::now();
    catalog(&cluster, "community", &community).await?;
    writeln!(
        std::io::stderr(),
        "the real catalog is served after {:.1} s\n{HEADER}",
        started.elapsed().as_secs_f64()
    )?;
    let extra = content::extra_catalog(vectors, registry, "shipwright-operator").await?;
    catalog(&cluster, "extra", &extra).await?;

    let mut outcomes = Vec::new();
    // A filter for developers.
    let only = std::env::var("OLM_REAL_ONLY").unwrap_or_default();
    for plan in PLANS
        .iter()
        .filter(|plan| only.is_empty() || only.split(',').any(|name| name == plan.package))
    {
        let mut outcome = Outcome {
            package: plan.package,
            failure: None,
            version: plan.versions.last().copied().unwrap_or_default(),
            objects: 0,
            install: None,
            upgrades: Vec::new(),
            delete: None,
        };
        if let Err(error) = run_plan(&cluster, plan, &mut outcome).await {
            outcome.failure = Some(format!("{error:#}"));
        }
        writeln!(std::io::stderr(), "{outcome}")?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

async fn run_plan(cluster: &Cluster, plan: &Plan, outcome: &mut Outcome) -> anyhow::Result<()> {
    let name = format!("real-{}", plan.package);
    for namespace in [name.clone(), format!("{name}-watched")] {
        cluster
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .await?;
    }
    for (index, version) in plan.versions.iter().enumerate() {
        let started = Instant::now();
        cluster.apply(&extension(plan, &name, version)).await?;
        installed(cluster, &name, version).await?;
        if index == 0 {
            outcome.install = Some(started.elapsed());
        } else {
            outcome.upgrades.push(started.elapsed());
        }
    }
    let owner = format!("{}={name}", olm_api::keys::OWNER_NAME_LABEL);
    outcome.objects = cluster.labeled(&owner).await?.len();

    let started = Instant::now();
    let reference = format!("clusterextension/{name}");
    let (api, object) = cluster.lookup(&reference, "").await?;
    api.delete(&object, &DeleteParams::default()).await?;
    eventually(
        DELETE_TIMEOUT,
        "the extension to be gone",
        async || match cluster.get(&reference, "").await? {
            None => Ok(()),
            Some(object) => anyhow::bail!("{}", object.data["status"]),
        },
    )
    .await?;
    outcome.delete = Some(started.elapsed());
    eventually(TIMEOUT, "all of its objects to be gone", async || {
        let left = cluster.labeled(&owner).await?;
        anyhow::ensure!(left.is_empty(), "left: {left:?}");
        Ok(())
    })
    .await
}

/// Creates the Prometheus operator's kinds without a schema; several operators have objects of these kinds.
async fn monitoring_kinds(cluster: &Cluster) -> anyhow::Result<()> {
    const GROUP: &str = "monitoring.coreos.com";
    for (kind, plural) in [
        ("ServiceMonitor", "servicemonitors"),
        ("PodMonitor", "podmonitors"),
        ("PrometheusRule", "prometheusrules"),
    ] {
        cluster
            .apply(&json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{GROUP}")},
                "spec": {
                    "group": GROUP, "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                    }],
                },
            }))
            .await?;
    }
    Ok(())
}

async fn installed(cluster: &Cluster, name: &str, version: &str) -> anyhow::Result<()> {
    let reference = format!("clusterextension/{name}");
    conditions::wait(
        cluster,
        &reference,
        TIMEOUT,
        "Progressing",
        version,
        |object, found| {
            object.data["status"]["install"]["bundle"]["version"] == version && found["reason"] == "Succeeded"
        },
    )
    .await?;
    Ok(())
}

async fn catalog(cluster: &Cluster, name: &str, reference: &str) -> anyhow::Result<()> {
    cluster
        .apply(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        }))
        .await?;
    let object = format!("clustercatalog/{name}");
    conditions::wait(cluster, &object, TIMEOUT, "Serving", "success", |_, found| {
        found["status"] == "True"
    })
    .await?;
    Ok(())
}

fn extension(plan: &Plan, name: &str, version: &str) -> Value {
    let mut object = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name},
        "spec": {
            "namespace": name,
            "source": {"sourceType": "Catalog", "catalog": {"packageName": plan.package, "version": version}},
        },
    });
    if plan.unsafe_crds {
        object["spec"]["install"] = json!({"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}});
    }
    let watch = match plan.watch {
        Watch::All => return object,
        Watch::Own => name.to_owned(),
        Watch::Single => format!("{name}-watched"),
    };
    object["spec"]["config"] = json!({"configType": "Inline", "inline": {"watchNamespace": watch}});
    object
}
