//! Tests of the commands in docs/operations.md that move a cluster from upstream's manifests to those of this project, and back.

use std::ops::Deref;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::cluster::{Cluster, commands_of};
use crate::kubectl::{has_kubectl, render};

const STANDARD: &str = "test/testdata/upstream/standard";
const EXPERIMENTAL: &str = "test/testdata/upstream/experimental";
/// Field managers that the objects may have: those of `kubectl apply`, of the API server and of controllers that write to these
/// objects.
const EXPECTED_MANAGERS: [&str; 5] = [
    "kubectl",
    "kubectl-last-applied",
    "kube-apiserver",
    "kube-controller-manager",
    "clusterrole-aggregation-controller",
];

/// A cluster with upstream's manifests, applied as upstream documents it.
struct Migration {
    cluster: Cluster,
    upstream_file: PathBuf,
}

impl Deref for Migration {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Migration {
    async fn with_upstream(release: &str) -> Result<Self> {
        let cluster = Cluster::start().await?;
        let upstream_file = cluster.file("upstream.yaml", &render(EXPERIMENTAL)?)?;
        cluster.shell(
            "kubectl create namespace cert-manager
             kubectl apply --server-side -f test/testdata/upstream/foreign-crds.yaml
             kubectl wait --for=condition=Established --timeout=1m crd --all",
        )?;
        // Upstream's install.sh also uses client-side apply.
        cluster.shell(&format!("kubectl apply -k {release}"))?;
        // cert-manager, which is absent, would create these Secrets.
        cluster.shell(
            r"for secret in catalogd-service-cert-v1.11.0 operator-controller-cert; do
                 kubectl -n olmv1-system create secret generic $secret --from-literal=tls.crt=c
                 kubectl -n olmv1-system label secret $secret controller.cert-manager.io/fao=true
               done
               kubectl -n cert-manager create secret generic olmv1-ca --from-literal=tls.crt=c",
        )?;
        Ok(Self {
            cluster,
            upstream_file,
        })
    }

    /// Checks that only server-side apply and controllers own fields of the objects, so that no field of another manager is left.
    fn owned_by_kubectl(&self, manifests: &str) -> Result<()> {
        let file = self.file("applied.yaml", manifests)?;
        let list = self.shell(&format!(
            "kubectl get -f {} --show-managed-fields -o json",
            file.display()
        ))?;
        let list: Value = serde_json::from_str(&list)?;
        for object in list["items"].as_array().context("no list")? {
            for entry in object["metadata"]["managedFields"]
                .as_array()
                .into_iter()
                .flatten()
            {
                if entry["subresource"] == "status" {
                    continue;
                }
                let manager = entry["manager"].as_str().unwrap_or_default();
                ensure!(
                    EXPECTED_MANAGERS.contains(&manager),
                    "{manager} still owns {} of {} {}",
                    entry["fieldsV1"],
                    object["kind"],
                    object["metadata"]["name"]
                );
            }
        }
        Ok(())
    }
}

const THERE: &str = "Moving from upstream";
const BACK: &str = "Moving back to upstream";

fn move_there(cluster: &Migration, folder: &str) -> Result<()> {
    cluster.step(THERE, 1, &[])?;
    cluster.step(THERE, 3, &[("config/default", folder)])?;
    if folder.ends_with("least-privilege") {
        cluster.step(THERE, 4, &[])?;
    }
    if !folder.ends_with("cert-manager") {
        cluster.step(THERE, 5, &[])?;
        let secrets = cluster.shell("kubectl get secrets -A -o name")?;
        assert_eq!(
            secrets, "secret/catalogd-service-own-cert\n",
            "Secrets of upstream's certificates are left, or that of catalogd's own certificate is missing"
        );
    }
    Ok(())
}

fn move_back(cluster: &Migration, folder: &str) -> Result<()> {
    let url = commands_of(BACK, 1)?
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("UPSTREAM=").map(str::to_owned))
        .context("no URL of upstream's release")?;
    let Some(file) = cluster.upstream_file.to_str() else {
        bail!("path is no UTF-8")
    };
    cluster.step(BACK, 1, &[(url.as_str(), file)])?;
    cluster.step(BACK, 2, &[])?;
    if folder.ends_with("least-privilege") {
        cluster.step(BACK, 3, &[])?;
    }
    Ok(())
}

async fn there_and_back(release: &str, folder: &str) -> Result<()> {
    let manifests = render(folder)?;
    let cluster = Migration::with_upstream(release).await?;

    move_there(&cluster, folder)?;
    let left = cluster.left_over(&render(release)?, &manifests)?;
    ensure!(left.is_empty(), "left of upstream: {left}");
    cluster.owned_by_kubectl(&manifests)?;

    move_back(&cluster, folder)?;
    let experimental = render(EXPERIMENTAL)?;
    let left = cluster.left_over(&manifests, &experimental)?;
    // The overlay for OpenShift is not moved back, because upstream's manifests do not run there.
    if !folder.ends_with("openshift") {
        ensure!(left.is_empty(), "left of {folder}: {left}");
    }
    cluster.owned_by_kubectl(&experimental)?;
    let budget = cluster.shell(
        "kubectl -n olmv1-system get pdb catalogd-controller-manager -o jsonpath='{.spec.minAvailable}-{.spec.maxUnavailable}'",
    )?;
    assert_eq!(budget, "1-");
    Ok(())
}

async fn check(release: &str, folders: &[&str]) -> Result<()> {
    if !has_kubectl() {
        return Ok(());
    }
    for folder in folders {
        Box::pin(there_and_back(release, folder))
            .await
            .with_context(|| format!("from {release} to {folder}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn from_upstreams_standard_release_and_back() {
    check(
        STANDARD,
        &[
            "config/default",
            "config/overlays/ignore-service-accounts",
            "config/overlays/least-privilege",
            "config/overlays/cert-manager",
        ],
    )
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn from_upstreams_experimental_release_and_back() {
    check(
        EXPERIMENTAL,
        &[
            "config/default",
            "config/overlays/high-availability",
            "config/overlays/internal-registry",
            "config/overlays/mirrors",
            "config/overlays/openshift",
            "config/overlays/private-catalogs",
        ],
    )
    .await
    .unwrap();
}

/// Tests the last step of the way back, which removes conditions of catalogs. Upstream's catalogd stores a catalog again and
/// again while it has unknown conditions.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_catalogs_are_removed() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster::start().await.unwrap();
    olm_harness::install_crds(&cluster.client()).await.unwrap();
    let condition = r#"{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}"#;
    cluster
        .shell(&format!(
            r#"kubectl apply --server-side -f config/samples/clustercatalog.yaml
               kubectl patch clustercatalog operatorhubio --subresource=status --type=merge \
                 --patch '{{"status": {{"conditions": [{condition}]}}}}'"#
        ))
        .unwrap();
    cluster.step(BACK, 4, &[]).unwrap();
    let conditions = cluster
        .shell("kubectl get clustercatalog operatorhubio -o jsonpath='{.status.conditions}'")
        .unwrap();
    assert!(matches!(conditions.as_str(), "" | "[]"), "{conditions}");
}
