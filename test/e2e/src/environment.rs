//! The environment that all scenarios of a run share: a control plane, a registry, a stand-in for nodes, and the real binaries of
//! both controllers. It ends with the process.

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

/// The running components.
pub struct Environment {
    /// API server, etcd and kube-controller-manager.
    pub control_plane: ControlPlane,
    /// Registry of catalogs and bundles.
    pub registry: Registry,
    /// Stand-in for nodes, which marks pods ready or not.
    pub pods: PodStandIn,
    /// URL of catalogd's content server, `https://127.0.0.1:PORT`.
    pub catalogd_url: String,
    /// Cache directory of catalogd.
    pub catalogd_cache: PathBuf,
    /// Recorded statuses of all ClusterExtensions.
    pub history: History,
    /// Reader of operator-controller's metrics.
    pub metrics: MetricsReader,
    /// The controllers, which are kept here so that they are not dropped.
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
            // operator-controller has its own user, which tells its writes in the audit log from those of the tests.
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

/// Returns a `registries.conf` with which only the registry of the tests is reachable. It is also the mirror of
/// [`MIRRORED_REGISTRY`].
fn with_mirror(host: &str) -> String {
    let only = registries_conf::only(host);
    format!(
        "{only}\n[[registry]]\nlocation = \"{MIRRORED_REGISTRY}\"\n\n[[registry.mirror]]\nlocation = \"{host}\"\n"
    )
}
