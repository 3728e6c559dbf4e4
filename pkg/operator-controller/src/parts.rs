//! The controllers without their process: no leases, servers and signals.

use std::sync::Arc;

use olm_api::CustomResourcePolicy;
use olm_catalog_client::Catalogs;
use olm_image::Images;
use olm_runtime::FeatureGates;
use olm_runtime::metrics::{ReconcileMetrics, Registry};
use tokio_util::sync::CancellationToken;

use crate::inventory::Inventory;
use crate::metrics::Metrics;
use crate::shared::Shared;
use crate::{ServiceAccountPolicy, cluster_catalog, cluster_extension, cluster_object_set, cluster_upgrade};

/// Parts of the outside world that the controllers use, and the receivers of their metrics.
pub struct Parts {
    pub(crate) client: kube::Client,
    pub(crate) catalogs: Arc<dyn Catalogs>,
    pub(crate) images: Arc<dyn Images>,
    pub(crate) reconciles: ReconcileMetrics,
    pub(crate) inventory: Inventory,
    pub(crate) metrics: Metrics,
}

/// Settings of the controllers; the flags of the same names document them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the Secrets of revisions and of own certificates.
    pub system_namespace: Arc<str>,
    /// Number of ClusterExtensions that are reconciled concurrently; at least 1.
    pub concurrency: u16,
    /// Policy for `spec.serviceAccount`.
    pub accounts: ServiceAccountPolicy,
    /// Default of `spec.deletion.customResources`.
    pub custom_resources: CustomResourcePolicy,
    /// True if the CRDs of a bundle get `ClusterRole`s that aggregate to those of Kubernetes.
    pub crd_roles: bool,
    /// Feature gates.
    pub features: FeatureGates,
}

impl Parts {
    /// Joins the parts of a process. Its metrics are not served.
    pub fn new(client: kube::Client, catalogs: Arc<dyn Catalogs>, images: Arc<dyn Images>) -> Self {
        let registry = Registry::new();
        Self {
            client,
            catalogs,
            images,
            reconciles: ReconcileMetrics::register(&registry),
            inventory: Inventory::default(),
            metrics: Metrics::new(&registry),
        }
    }

    /// Runs the controllers until `shutdown`. The caller makes sure that no other process does.
    ///
    /// # Errors
    /// A controller cannot run.
    pub async fn run(self, settings: Settings, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self {
            client,
            catalogs,
            images,
            reconciles,
            inventory,
            metrics,
        } = self;
        let options = cluster_object_set::Options {
            system_namespace: settings.system_namespace.as_ref().to_owned(),
            // A pass over a revision has a request for each object, one over its extension has a few.
            concurrency: settings.concurrency.saturating_mul(2),
            accounts: settings.accounts,
            custom_resources: settings.custom_resources,
            reconciles: reconciles.clone(),
            timing: olm_applier::watch::WatchTiming::default(),
        };
        let shared = Shared {
            client: client.clone(),
            system_namespace: settings.system_namespace,
            concurrency: settings.concurrency,
            accounts: settings.accounts,
            custom_resources: settings.custom_resources,
            crd_roles: settings.crd_roles,
            reconciles,
            inventory: inventory.clone(),
            metrics: metrics.clone(),
        };
        let listing = Arc::new(cluster_catalog::Listing::default());
        let changes = cluster_catalog::changes(client.clone(), catalogs.clone(), listing.clone());
        let (context, writers) =
            cluster_extension::Context::new(shared, images, catalogs, listing, settings.features);
        let context = Arc::new(context);
        let (follow, of_revisions) = cluster_extension::follow_revisions(Arc::clone(&context));
        let watch = cluster_object_set::SharedWatch {
            writer: writers.revisions,
            follow: Box::new(follow),
        };
        let upgrades = cluster_upgrade::run(
            client.clone(),
            inventory.clone(),
            context.stores(),
            shutdown.clone(),
        );
        let recorder = cluster_object_set::Recorder { inventory, metrics };
        let revisions =
            cluster_object_set::run_recorded(client, options, Some(recorder), watch, shutdown.clone());
        let extensions = cluster_extension::run(context, writers.extensions, of_revisions, changes, shutdown);
        let extensions = async {
            tokio::join!(extensions, upgrades);
            Ok(())
        };
        tokio::try_join!(extensions, revisions)?;
        Ok(())
    }
}
