//! A real control plane with both controllers.

use anyhow::Result;
use kube::Client;
use olm_harness::{Catalogd, ControlPlane, OperatorController, PodStandIn, Registry, install_crds};

/// Control plane, registry, a stand-in for pods, and both controllers.
pub(crate) struct World {
    // The controllers end before what they talk to.
    _controller: OperatorController,
    _catalogd: Catalogd,
    pub(crate) pods: PodStandIn,
    pub(crate) plane: ControlPlane,
    pub(crate) registry: Registry,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        olm_harness::tls::install_provider();
        let plane = ControlPlane::start().await?;
        let registry = Registry::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        let pods = PodStandIn::start(client.clone());
        let catalogd = Catalogd::start(&plane, &registry).await?;
        let controller = OperatorController::start(&plane, &registry).await?;
        Ok(Self {
            _controller: controller,
            _catalogd: catalogd,
            pods,
            plane,
            registry,
            client,
        })
    }
}
