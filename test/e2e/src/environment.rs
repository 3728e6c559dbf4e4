//! Environment that all scenarios of a run share: a control plane, a registry, the pod stand-in and the real
//! binaries of both controllers. It ends with the process.

use std::path::PathBuf;

use olm_harness::audit::OPERATOR_CONTROLLER;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, OperatorController, PodStandIn, Registry, registries_conf,
};
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::content::{BAD_IMAGE, MIRRORED_REGISTRY};
use crate::history::History;
use crate::metrics::{MetricsPort, MetricsReader};

/// Running components.
pub struct Environment {
    /// The API server and its companions.
    pub control_plane: ControlPlane,
    /// Registry of catalogs and bundles.
    pub registry: Registry,
    /// Marks pods ready, or not.
    pub pods: PodStandIn,
    /// URL of catalogd's content server, `https://127.0.0.1:PORT`.
    pub catalogd_url: String,
    /// Cache directory of catalogd.
    pub catalogd_cache: PathBuf,
    /// Statuses of all ClusterExtensions.
    pub history: History,
    /// Metrics of operator-controller.
    pub metrics: MetricsReader,
    /// The controllers, kept for their lifetime only.
    _controllers: (Catalogd, OperatorController),
}

impl Environment {
    /// Returns the environment of this process, started at the first call.
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<Environment> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts an environment.
    pub async fn start() -> anyhow::Result<Self> {
        let control_plane = ControlPlane::start_recorded().await?;
        let registry = Registry::start().await?;
        olm_harness::install_crds(&control_plane.client()).await?;
        let history = History::record(control_plane.client());
        let pods = PodStandIn::start(control_plane.client());
        pods.set_image_pulls(BAD_IMAGE, false).await;
        let mut catalogd = Catalogd::start(&control_plane, &registry).await?;
        let metrics = MetricsPort::reserve()?;
        let options = ControllerOptions {
            args: metrics.args(),
            registries_conf: Some(with_mirror(&registry.host())),
            // A user of its own, so that its writes can be told from those of the tests.
            kubeconfig: Some(control_plane.kubeconfig_for(OPERATOR_CONTROLLER, Some("system:masters"))?),
            ..ControllerOptions::default()
        };
        let operator_controller = OperatorController::start_with(&control_plane, &registry, options).await?;
        let metrics = metrics.reader(&control_plane.client()).await?;
        Ok(Self {
            control_plane,
            registry,
            pods,
            catalogd_url: catalogd.url(),
            catalogd_cache: catalogd.controller().directory().join("cache"),
            history,
            metrics,
            _controllers: (catalogd, operator_controller),
        })
    }

    /// Returns access to the cluster's objects.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(self.control_plane.client())
    }
}

/// Makes only the test's registry reachable, also as the mirror of another one.
fn with_mirror(host: &str) -> String {
    let only = registries_conf::only(host);
    format!(
        "{only}\n[[registry]]\nlocation = \"{MIRRORED_REGISTRY}\"\n\n[[registry.mirror]]\nlocation = \"{host}\"\n"
    )
}
