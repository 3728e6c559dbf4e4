//! Installs and removes the product: manifests of `config` with the images of this build.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use olm_harness::eventually;

use crate::cluster::{SYSTEM, apply, delete_sample, get, is_ready, items, kubectl};
use crate::content::{Access, Content, REGISTRY};

const INSTALL_LIMIT: Duration = Duration::from_mins(2);
const REMOVAL_LIMIT: Duration = Duration::from_secs(90);
pub(crate) const DEPLOYMENTS: [&str; 2] = [
    "catalogd-controller-manager",
    "operator-controller-controller-manager",
];

/// References of the images. They name digests, and the registry by its name in the cluster.
pub(crate) struct Images {
    pub(crate) catalogd: String,
    pub(crate) operator_controller: String,
    pub(crate) kubectl_olm: String,
    pub(crate) sample_operator: String,
}

impl Images {
    /// Parses lines `HOST/PREFIX/NAME@sha256:...` of `hack/image.sh`. The host becomes the name of the registry in the cluster.
    pub(crate) fn from_lines(lines: impl Iterator<Item = String>) -> Result<Self> {
        let lines: Vec<String> = lines.collect();
        let find = |name: &str| {
            let line = lines.iter().find(|line| line.contains(&format!("/{name}@")));
            let (_, path) = line
                .and_then(|line| line.split_once('/'))
                .with_context(|| format!("no image of {name} is given"))?;
            anyhow::Ok(format!("{REGISTRY}/{path}"))
        };
        Ok(Self {
            catalogd: find("catalogd")?,
            operator_controller: find("operator-controller")?,
            kubectl_olm: find("kubectl-olm")?,
            sample_operator: find("sample-operator")?,
        })
    }
}

/// Rendered manifests of a folder of `config`.
pub(crate) struct Product {
    folder: String,
    manifests: String,
}

impl Product {
    /// Renders a folder with the images of this build from the registry of the node.
    pub(crate) fn render(folder: &str, images: &Images) -> Result<Self> {
        let rendered = kubectl(&format!("kustomize {folder}"))?;
        let mut manifests = rendered.clone();
        for (image, reference) in [
            ("olmv1/catalogd:dev", &images.catalogd),
            ("olmv1/operator-controller:dev", &images.operator_controller),
        ] {
            ensure!(rendered.contains(image), "{folder} does not run {image}");
            manifests = manifests.replace(image, reference);
        }
        let flag = format!("--plain-http-registry={REGISTRY}");
        let listed = format!("--allow-registry-host={REGISTRY}");
        manifests = if manifests.contains(&listed) {
            manifests.replace(&listed, &flag)
        } else {
            manifests.replace(
                "- --leader-elect\n",
                &format!("- --leader-elect\n        - {flag}\n"),
            )
        };
        ensure!(
            manifests.matches(&flag).count() == 2,
            "{folder}: a Deployment lacks {flag}"
        );
        Ok(Self {
            folder: folder.to_owned(),
            manifests,
        })
    }

    /// Applies the manifests, a catalog and an extension, and waits until the extension and the product are ready.
    pub(crate) async fn install(&self, content: &Content) -> Result<String> {
        let started = Instant::now();
        apply(&self.manifests)?;
        if self.folder.ends_with("internal-registry") {
            trust_registry()?;
        }
        let sample = content.manifests(Access::PlainHttp, self.folder.ends_with("least-privilege"));
        // The API server serves the kinds only a moment after their CRDs were applied.
        eventually(INSTALL_LIMIT, "the sample is accepted", async || apply(&sample)).await?;
        eventually(INSTALL_LIMIT, "the extension is Ready", async || {
            is_ready("1.0.0")
        })
        .await?;
        let ready = started.elapsed();
        rolled_out()?;
        for pod in items(&get(&format!("-n {SYSTEM} pods"))?) {
            let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
            ensure!(
                *restarts == 0,
                "{} restarted {restarts} times",
                pod["metadata"]["name"]
            );
        }
        Ok(format!(
            "first extension Ready {:.1} s after kubectl apply",
            ready.as_secs_f64()
        ))
    }

    /// Removes the extension, the catalog and the product.
    pub(crate) async fn uninstall(&self) -> Result<String> {
        delete_sample()?;
        kubectl("delete clusterrolebinding sample-installer --ignore-not-found")?;
        // Pods release their Leases while they stop, so their rights are removed after them.
        kubectl(&format!(
            "-n {SYSTEM} delete deployments --all --cascade=foreground --timeout=60s"
        ))?;
        let args = ["delete", "--ignore-not-found", "--timeout=90s", "-f", "-"];
        crate::cluster::run("kubectl", &args, &self.manifests)?;
        eventually(REMOVAL_LIMIT, "the namespace is gone", async || {
            let name = kubectl(&format!("get namespace {SYSTEM} --ignore-not-found -o name"))?;
            ensure!(name.is_empty(), "{name} is there");
            Ok(())
        })
        .await?;
        Ok(String::new())
    }
}

/// Creates the `ConfigMap` of overlay internal-registry with the certificate of the node's authority.
pub(crate) fn trust_registry() -> Result<()> {
    let authority = std::env::var("PKI").context("PKI is not set")?;
    kubectl(&format!(
        "-n {SYSTEM} create configmap internal-registry-ca --from-file=ca.crt={authority}/ca.crt"
    ))
    .map(drop)
}

/// Waits until both Deployments are rolled out.
pub(crate) fn rolled_out() -> Result<()> {
    for deployment in DEPLOYMENTS {
        kubectl(&format!(
            "-n {SYSTEM} rollout status deployment/{deployment} --timeout=120s"
        ))?;
    }
    Ok(())
}
