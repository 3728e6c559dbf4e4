//! The extension manager: ClusterExtension and ClusterObjectSet controllers.
//!
//! One folder per kind. A reconcile gathers (IO), decides (pure), acts (IO) and reports (pure), so decisions are tested
//! without a cluster, and the status is written once, at the end.

mod args;
mod cluster_catalog;
mod cluster_extension;
pub mod cluster_object_set;
mod cluster_upgrade;
mod decode;
mod groups;
mod inventory;
mod json_text;
mod listed;
mod metrics;
mod parts;
mod present;
mod shared;
mod watched;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use olm_api::keys;
use olm_catalog_client::{CatalogClient, Trust};
use olm_image::{PullSecrets, Puller};
use olm_runtime::Binary;
use olm_runtime::address::BindAddress;
use olm_runtime::args::CheckedArgs;
use olm_runtime::build_info;
use olm_runtime::health::{self, Health};
use olm_runtime::lease::{self, LeaseConfig};
use olm_runtime::metrics as telemetry;
use olm_runtime::pprof;
use olm_runtime::shutdown;
use olm_runtime::tls::{OPERATOR_CONTROLLER_OWN_CERT, OwnCertificate};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use args::{Args, ServiceAccountPolicy};
use inventory::Inventory;
use metrics::Metrics;
pub use parts::{Parts, Settings};
use shared::Shared;

/// The Lease of the leader, as upstream names it, so that two versions do not lead at once during a switch.
const LEASE: &str = "9c4404e7.operatorframework.io";
/// Port of the metrics server if a certificate is given but no address.
const METRICS_PORT: u16 = 8443;

/// Returns the descriptions of operator-controller's own metrics.
pub fn metric_descriptions() -> impl Iterator<Item = telemetry::Description> {
    inventory::DESCRIPTIONS.into_iter().chain(metrics::DESCRIPTIONS)
}

/// Runs the controllers until a signal ends them.
///
/// Errors: invalid flags, an API server that is unavailable at the start, a port in use, a lost lease.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let shutdown = shutdown::token();
    Box::pin(run_until(args, shutdown)).await
}

/// Runs the controllers until `shutdown` is cancelled.
pub async fn run_until(args: Args, shutdown: CancellationToken) -> anyhow::Result<()> {
    let common = args.common.clone();
    build_info::log("operator-controller");
    let checked = common.check(Binary::OperatorController)?;
    let registry = telemetry::Registry::new();
    let client = olm_runtime::measured_client(&common, &registry)
        .await
        .context("the API server cannot be used")?;

    let inventory = Inventory::default();
    registry.register(|inner| inner.register_collector(Box::new(inventory.clone())));
    let observed = (inventory, Metrics::new(&registry));

    let mut servers = JoinSet::new();
    servers.spawn(health::serve(
        common.health_probe_bind_address,
        Health::new(),
        shutdown.clone(),
    ));
    servers.spawn(pprof::serve(common.pprof_bind_address, shutdown.clone()));
    let address = common
        .metrics_bind_address
        .resolve(METRICS_PORT, checked.tls_files.is_some());
    if address != BindAddress::Off {
        let own = own_certificate(common.system_namespace());
        let certificate = checked
            .serving_certificate(client.clone(), own, shutdown.clone())
            .await?;
        let (registry, client, shutdown) = (registry.clone(), client.clone(), shutdown.clone());
        servers
            .spawn(async move { telemetry::serve(address, registry, client, &certificate, shutdown).await });
    }

    let lead = common
        .leader_elect
        .then(|| LeaseConfig::new(common.system_namespace(), LEASE).measured(&registry));
    let reconciles = telemetry::ReconcileMetrics::register(&registry);
    let leading = shutdown.clone();
    let work = lease::run_when_leader(client.clone(), lead, leading, |token| {
        controllers(client, args, checked, reconciles, observed, token)
    });
    let outcome = tokio::select! {
        outcome = work => outcome.map_err(anyhow::Error::from).and_then(|ended| ended.unwrap_or(Ok(()))),
        broken = first_failure(&mut servers) => Err(broken),
    };
    // The first end, of the controllers or of a server, ends the process.
    shutdown.cancel();
    while let Some(ended) = servers.join_next().await {
        ended.context("a server died")??;
    }
    tracing::info!("stopped");
    outcome
}

/// Waits for a server that fails; servers that end without an error are ignored.
async fn first_failure(servers: &mut JoinSet<Result<(), olm_runtime::serve::ServeError>>) -> anyhow::Error {
    loop {
        match servers.join_next().await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => return error.into(),
            Some(Err(error)) => return error.into(),
            None => std::future::pending().await,
        }
    }
}

/// Runs the controllers while this process leads.
async fn controllers(
    client: kube::Client,
    args: Args,
    checked: CheckedArgs,
    reconciles: telemetry::ReconcileMetrics,
    (inventory, metrics): (Inventory, Metrics),
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let common = &args.common;
    let pull_secrets = PullSecrets::unloaded();
    let images = args
        .images
        .config(args.cache_path.join("unpack"), common, pull_secrets.clone());
    let puller = Puller::new(images);
    if let Some(warning) = puller.warning() {
        tracing::warn!("{warning}");
    }
    let following = olm_image::watch_pull_secrets(
        client.clone(),
        common.global_pull_secret.clone(),
        pull_secrets,
        shutdown.clone(),
    );
    let system_namespace: Arc<str> = common.system_namespace().into();
    let trust = trust(&client, &system_namespace, args.catalogd_cas_dir.as_deref());
    let catalogs = CatalogClient::new(trust)
        .with_profile(checked.tls_profile)
        .with_token_file(args.catalogd_token_file.clone());
    let settings = Settings {
        system_namespace,
        concurrency: args.concurrency,
        accounts: args.service_account_policy,
        custom_resources: args.custom_resources_on_delete,
        crd_roles: args.aggregate_crd_roles,
        features: checked.features,
    };
    let parts = Parts {
        client,
        catalogs: Arc::new(catalogs),
        images: Arc::new(puller),
        reconciles,
        inventory,
        metrics,
    };
    let following = async {
        following.await;
        Ok(())
    };
    tokio::try_join!(parts.run(settings, shutdown), following)?;
    Ok(())
}

/// Returns the certificate of the metrics server if no certificate is given.
fn own_certificate(namespace: String) -> OwnCertificate {
    let service = format!("operator-controller-service.{namespace}.svc");
    OwnCertificate {
        names: vec![
            service.clone(),
            format!("{service}.cluster.local"),
            "localhost".to_owned(),
        ],
        namespace,
        secret: OPERATOR_CONTROLLER_OWN_CERT.to_owned(),
        labels: [(
            keys::APPLICATION_NAME_LABEL.to_owned(),
            "operator-controller".to_owned(),
        )]
        .into(),
    }
}

/// Returns the CAs that verify catalogd: those of the folder, else the CA in catalogd's Secret, read again after each
/// TLS failure.
fn trust(client: &kube::Client, namespace: &Arc<str>, folder: Option<&Path>) -> Trust {
    if let Some(folder) = folder {
        return Trust::Directory(folder.to_owned());
    }
    let (client, namespace) = (client.clone(), namespace.clone());
    Trust::provider(move || {
        let (client, namespace) = (client.clone(), namespace.clone());
        async move {
            let ca = olm_runtime::tls::own_ca(&client, &namespace).await;
            ca.map_err(|error| olm_text::chain(&error))
        }
    })
}
