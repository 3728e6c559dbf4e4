//! The environment of a run: a control plane, a registry, and catalogd and the controller under test, each behind a proxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use olm_e2e::content::BAD_IMAGE;
use olm_harness::audit::OPERATOR_CONTROLLER;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{ControlPlane, PodStandIn, Registry, install_crds};
use serde_json::json;

use crate::proxy::{Kubeconfig, Ledger, Proxy, Sender, Tunnel, Upstream};
use crate::{Program, Programs};

/// User as whom catalogd runs. It is a member of `system:masters`.
const CATALOGD: &str = "catalogd";

/// Number of catalogd's process in the [`Ledger`].
pub(crate) const CATALOGD_PROCESS: Sender = 1;

/// The running components. The controllers reach the API server only through proxies, which know the sender of each write.
pub struct World {
    // Fields are dropped in this order: programs before the servers that they use.
    /// The controller under test.
    pub controller: Program,
    /// catalogd.
    pub catalogd: Program,
    /// Proxy before the API server for the controller, which is process 0 of [`olm_proof::Actor::Controller`].
    pub proxy: Proxy,
    /// Proxy before the API server for catalogd, which is process 1 and not under test.
    pub catalogd_proxy: Proxy,
    /// Proxy before the registry. The controllers know only this address.
    pub registry_tunnel: Tunnel,
    /// Proxy before the content server of catalogd.
    pub catalogd_tunnel: Tunnel,
    /// Senders of accepted writes.
    pub ledger: Arc<Ledger>,
    /// Stand-in for nodes, which marks pods ready or not.
    pub pods: PodStandIn,
    /// Registry with the images of catalogs and bundles.
    pub registry: Registry,
    /// API server, etcd and kube-controller-manager.
    pub plane: ControlPlane,
    /// Kubeconfig files, which the programs read at every start.
    _kubeconfigs: [Kubeconfig; 2],
}

impl World {
    /// Starts all components and waits until they are ready.
    ///
    /// # Errors
    /// A component does not start; the message has the tail of its log.
    pub async fn start(programs: &Programs) -> Result<Self> {
        let plane = ControlPlane::start().await?;
        let registry = Registry::start().await?;
        install_crds(&plane.client()).await?;
        ensure_namespace(&plane.client(), SYSTEM_NAMESPACE).await?;
        let pods = PodStandIn::start(plane.client());
        pods.set_image_pulls(BAD_IMAGE, false).await;
        let ledger = Arc::new(Ledger::default());
        let (proxy, controller_config) = start_proxy(&plane, OPERATOR_CONTROLLER, 0, &ledger).await?;
        let (catalogd_proxy, catalogd_config) =
            start_proxy(&plane, CATALOGD, CATALOGD_PROCESS, &ledger).await?;
        let registry_tunnel = Tunnel::start(&registry.host()).await?;
        let catalogd_tunnel = Tunnel::start("").await?;
        let (host, content) = (registry_tunnel.address(), catalogd_tunnel.address());
        let mut catalogd = Program::prepare(&programs.catalogd, catalogd_config.path(), &host, &content)?;
        catalogd_tunnel.set_target(&catalogd.content_address());
        catalogd.start().await?;
        let mut controller =
            Program::prepare(&programs.controller, controller_config.path(), &host, &content)?;
        controller.start().await?;
        Ok(Self {
            controller,
            catalogd,
            proxy,
            catalogd_proxy,
            registry_tunnel,
            catalogd_tunnel,
            ledger,
            pods,
            registry,
            plane,
            _kubeconfigs: [controller_config, catalogd_config],
        })
    }

    /// Returns the number of requests of the controller and the numbers of injected faults by name, both since the last call.
    pub fn take_counts(&self) -> (u64, BTreeMap<String, u64>) {
        let (requests, api_server) = self.proxy.injector().take_counts();
        let mut injected = BTreeMap::new();
        for (place, faults) in [
            ("API server", api_server),
            ("registry", self.registry_tunnel.take_injected()),
            ("catalogd", self.catalogd_tunnel.take_injected()),
        ] {
            let named = faults
                .into_iter()
                .map(|(kind, count)| (format!("{place}: {kind}"), count));
            injected.extend(named);
        }
        (requests, injected)
    }

    /// Returns a client with the rights of the administrator that reaches the API server without a proxy.
    pub fn client(&self) -> Client {
        self.plane.client()
    }
}

/// Starts a proxy before the API server that acts as `user`, and writes a kubeconfig for it.
async fn start_proxy(
    plane: &ControlPlane,
    user: &str,
    process: Sender,
    ledger: &Arc<Ledger>,
) -> Result<(Proxy, Kubeconfig)> {
    let upstream = Upstream::from_kubeconfig(&plane.kubeconfig_for(user, Some("system:masters"))?)?;
    let proxy = Proxy::start(upstream, process, ledger.clone()).await?;
    let config = Kubeconfig::pointing_at(&proxy)?;
    Ok((proxy, config))
}

/// Creates a namespace if it is missing.
///
/// # Errors
/// The API server refuses it.
pub async fn ensure_namespace(client: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    namespaces
        .patch(name, &PatchParams::apply("faults"), &Patch::Apply(&namespace))
        .await
        .with_context(|| format!("cannot create the namespace {name}"))?;
    Ok(())
}
