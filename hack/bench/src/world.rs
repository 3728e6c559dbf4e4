//! A control plane and a registry, and helpers about catalogs and catalogd on them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use olm_api::ClusterCatalog;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, Registry, catalog_image_from_dir, install_crds,
};
use serde_json::json;

use crate::kernel::ProcessStats;
use crate::load::Target;

/// Maximum time of any step.
pub(crate) const PATIENCE: Duration = Duration::from_mins(20);

/// A control plane with the CRDs of this product, and a registry.
pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    pub(crate) registry: Registry,
    pub(crate) catalogs: Api<ClusterCatalog>,
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        Self::over(ControlPlane::start().await?).await
    }

    /// Variant of [`World::start`] with an audit log of all requests.
    pub(crate) async fn start_audited() -> Result<Self> {
        Self::over(ControlPlane::start_audited().await?).await
    }

    async fn over(plane: ControlPlane) -> Result<Self> {
        install_crds(&plane.client()).await?;
        Ok(Self {
            registry: Registry::start().await?,
            catalogs: Api::all(plane.client()),
            plane,
        })
    }

    /// Pushes a folder as a catalog image. Returns the references of the image by tag and by digest.
    pub(crate) async fn push(&self, folder: &Path, name: &str) -> Result<(String, String)> {
        let digest = catalog_image_from_dir(folder).push(&self.registry, name).await?;
        let host = self.registry.host();
        let repository = name.split(':').next().unwrap_or(name);
        Ok((format!("{host}/{name}"), format!("{host}/{repository}@{digest}")))
    }

    /// Creates a ClusterCatalog with this image, or changes the image of an existing one.
    pub(crate) async fn apply(&self, name: &str, reference: &str, poll_minutes: Option<u32>) -> Result<()> {
        let mut image = json!({ "ref": reference });
        if let Some(minutes) = poll_minutes {
            image["pollIntervalMinutes"] = json!(minutes);
        }
        let object = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": image}},
        });
        self.catalogs
            .patch(name, &PatchParams::apply("bench").force(), &Patch::Apply(object))
            .await?;
        Ok(())
    }

    /// Waits until the status of the catalog says that it serves `digest` (`repository@sha256:...`).
    pub(crate) async fn serving(&self, name: &str, digest: &str) -> Result<()> {
        let wanted = digest.to_owned();
        let serves = move |catalog: Option<&ClusterCatalog>| {
            let status = catalog.and_then(|catalog| catalog.status.as_ref());
            let source = status.and_then(|status| status.resolved_source.as_ref());
            let serving = status
                .and_then(|status| status.conditions.as_deref())
                .unwrap_or_default()
                .iter()
                .any(|condition| condition.type_ == "Serving" && condition.status == "True");
            serving && source.is_some_and(|source| source.image.ref_ == wanted)
        };
        let wait = await_condition(self.catalogs.clone(), name, serves);
        if let Ok(seen) = tokio::time::timeout(PATIENCE, wait).await {
            return seen.map(drop).context("cannot watch the catalog");
        }
        let status = self.catalogs.get(name).await?.status;
        bail!("{name} does not serve {digest}: {status:?}")
    }

    /// Deletes a catalog and waits until it is gone.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.catalogs.delete(name, &DeleteParams::default()).await?;
        let gone = await_condition(self.catalogs.clone(), name, |catalog: Option<&ClusterCatalog>| {
            catalog.is_none()
        });
        tokio::time::timeout(PATIENCE, gone)
            .await
            .context("it is not deleted")??;
        Ok(())
    }

    /// Starts catalogd with a cache directory and waits until it is ready. If a wrapper is given, it is started instead and
    /// starts the program, whose path is in `OLM_BENCH_PROGRAM`.
    pub(crate) async fn catalogd(
        &self,
        program: &Path,
        cache: &Path,
        wrapper: Option<&Path>,
    ) -> Result<Running> {
        let program = program
            .canonicalize()
            .with_context(|| format!("there is no {}", program.display()))?;
        let options = ControllerOptions {
            program: Some(wrapper.unwrap_or(&program).to_owned()),
            cache: Some(cache.to_owned()),
            args: vec!["--feature-gates=GraphQLCatalogQueries=true".to_owned()],
            envs: vec![("OLM_BENCH_PROGRAM".to_owned(), program.display().to_string())],
            ..ControllerOptions::default()
        };
        let start = Instant::now();
        let mut catalogd = Catalogd::start_with(&self.plane, &self.registry, options).await?;
        let ready_in = start.elapsed();
        let pid = catalogd
            .controller()
            .process()
            .and_then(|process| process.pid())
            .context("catalogd has no process")?;
        Ok(Running {
            target: target_of(&self.plane, &catalogd).await?,
            kernel: ProcessStats { pid },
            ready_in,
            catalogd,
        })
    }
}

/// Returns the content server of a ready catalogd.
pub(crate) async fn target_of(plane: &ControlPlane, catalogd: &Catalogd) -> Result<Target> {
    let secrets = Api::<Secret>::namespaced(plane.client(), SYSTEM_NAMESPACE);
    let secret = secrets.get("catalogd-service-own-cert").await?;
    let ca = secret
        .data
        .as_ref()
        .and_then(|data| data.get("ca.crt"))
        .context("catalogd's Secret has no ca.crt")?;
    Target::new(catalogd.url().replace("https://", ""), &ca.0)
}

/// A ready catalogd.
pub(crate) struct Running {
    /// Content server.
    pub(crate) target: Target,
    /// Kernel's statistics about the process.
    pub(crate) kernel: ProcessStats,
    /// Time from the start of the process to its readiness.
    pub(crate) ready_in: Duration,
    pub(crate) catalogd: Catalogd,
}

impl Running {
    /// Kills catalogd with SIGKILL and waits for its end.
    pub(crate) fn kill(mut self) -> Result<()> {
        if let Some(process) = self.catalogd.controller().process() {
            process.signal("KILL")?;
            process.wait(Duration::from_secs(30))?;
        }
        Ok(())
    }
}
