//! State shared by all reconciles of the process.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use kube::{Client, core::DeserializeGuard, runtime::reflector};
use olm_api::ClusterCatalog;
use olm_image::Puller;
use olm_runtime::{
    backoff::Backoff,
    events::Events,
    metrics::{ControllerMetrics, ReconcileMetrics},
    superseded::superseded,
    workers::Workers,
};
use olm_status::cluster_catalog::Served;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{DeletedCatalogs, History, Loss, images::Images};
use crate::metrics::Metrics;
use crate::storage::{Generation, Store, ValidCatalogName};

/// Maximum number of catalogs that are parsed and written to disk concurrently.
const MAX_CONCURRENT_STORES: usize = 2;

/// Default number of concurrent reconciles.
pub(crate) const CONCURRENCY: u16 = 4;
/// Controller name in upstream's metrics.
const CONTROLLER: &str = "catalogd-clustercatalog-controller";

/// Store of the ClusterCatalogs, also of those that do not decode.
pub(super) type Catalogs = reflector::Store<DeserializeGuard<ClusterCatalog>>;

/// Clients, storage and per-catalog history of the controller.
pub struct Context {
    pub(super) client: Client,
    pub(super) store: Arc<Store>,
    pub(super) images: Images,
    pub(super) events: Events,
    pub(super) metrics: Metrics,
    pub(super) backoff: Backoff<ValidCatalogName>,
    pub(super) history: Mutex<HashMap<ValidCatalogName, History>>,
    pub(super) store_permits: Semaphore,
    pub(super) reconciles: ControllerMetrics,
    pub(super) workers: Workers,
    /// The controller's store of ClusterCatalogs, once the controller runs.
    pub(super) catalogs: OnceLock<Catalogs>,
    pub(super) shutdown: CancellationToken,
    /// Removals of unpacked images that nobody waits for.
    pub(super) cleanups: TaskTracker,
    base_url: String,
}

impl Context {
    /// Creates the context. Catalog URLs are `base_url` (such as `https://host`) followed by `/catalogs/<name>`.
    pub fn new(
        client: Client,
        store: Arc<Store>,
        puller: Arc<Puller>,
        metrics: Metrics,
        base_url: String,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            events: Events::new(client.clone(), "catalogd"),
            client,
            metrics,
            store,
            images: Images::new(puller, shutdown.clone()),
            backoff: Backoff::default(),
            history: Mutex::default(),
            store_permits: Semaphore::new(MAX_CONCURRENT_STORES),
            reconciles: ControllerMetrics::default(),
            workers: Workers::new(CONCURRENCY),
            catalogs: OnceLock::new(),
            shutdown,
            cleanups: TaskTracker::new(),
            base_url,
        }
    }

    /// Waits until all removals of unpacked images have ended.
    pub(super) async fn cleaned_up(&self) {
        self.cleanups.close();
        self.cleanups.wait().await;
    }

    /// Waits until the catalog is deleted, or its spec differs from that of `generation`.
    pub(super) async fn superseded(&self, name: &ValidCatalogName, generation: Option<i64>) {
        // The controller sets the store before its first reconcile.
        match self.catalogs.get() {
            Some(catalogs) => {
                superseded(catalogs, &reflector::ObjectRef::new(name.as_str()), generation).await;
            }
            None => std::future::pending().await,
        }
    }

    /// Sets the number of workers and registers the reconcile metrics.
    #[must_use]
    pub fn with_workers(mut self, reconciles: &ReconcileMetrics, concurrency: u16) -> Self {
        self.reconciles = reconciles.controller(CONTROLLER, concurrency);
        self.workers = Workers::new(concurrency);
        self
    }

    /// Returns the content description for the status.
    pub(super) fn served(&self, name: &ValidCatalogName, generation: &Generation) -> Served {
        let origin = &generation.manifest().origin;
        Served {
            reference: origin.resolved.clone(),
            base_url: format!("{}/catalogs/{name}", self.base_url),
            warning: self.images.warning(),
            unpacked: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(seconds(origin.unpacked_at)),
        }
    }

    /// Returns the description of the content that is served now.
    pub(super) fn served_now(&self, name: &ValidCatalogName) -> Option<Served> {
        Some(self.served(name, &*self.store.get(name)?))
    }

    /// Returns the history of a catalog; empty if it has none.
    pub(super) fn history_of(&self, name: &ValidCatalogName) -> History {
        self.history.lock().get(name).cloned().unwrap_or_default()
    }

    pub(super) fn update_history(&self, name: &ValidCatalogName, change: impl FnOnce(&mut History)) {
        change(self.history.lock().entry(name.clone()).or_default());
    }

    /// Returns the loss of the stored content if the status does not tell it yet, and nothing is stored since.
    pub(super) fn loss(&self, name: &ValidCatalogName) -> Option<Loss> {
        let loss = self.history.lock().get(name)?.loss.clone();
        loss.filter(|_| self.store.get(name).is_none())
    }

    /// Records that the status tells the loss of the stored content, if there was one.
    pub(super) fn told_loss(&self, name: &ValidCatalogName) {
        if let Some(history) = self.history.lock().get_mut(name) {
            history.loss = None;
        }
    }

    pub(super) fn forget(&self, name: &ValidCatalogName) {
        self.history.lock().remove(name);
        self.backoff.clear(name);
    }
}

/// Drops the history of deleted catalogs until `stop`, so that a recreated catalog starts afresh.
pub async fn forget_deleted(context: Arc<Context>, mut vanished: DeletedCatalogs, stop: CancellationToken) {
    while let Some(gone) = stop.run_until_cancelled(vanished.next()).await {
        for name in &gone {
            context.forget(name);
        }
    }
}

/// Converts seconds since the Unix epoch; out-of-range values give the epoch.
pub(super) fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod testing {
    use std::{convert::Infallible, path::Path};

    use http::{Request, Response};
    use kube::client::Body;
    use olm_image::ImageConfig;

    use super::*;

    /// Returns a context with an empty store below `folder`, whose API server accepts every status and refuses all other requests.
    pub(in super::super) fn context(folder: &Path) -> Arc<Context> {
        context_with_images(folder, ImageConfig::new(folder))
    }

    /// Returns a context like [`context`] that pulls images by `config`.
    pub(in super::super) fn context_with_images(folder: &Path, config: ImageConfig) -> Arc<Context> {
        let refusing = tower::service_fn(async |request: Request<Body>| {
            if request.method() == http::Method::PUT {
                return Ok(Response::new(request.into_body()));
            }
            let mut refused = Response::new(Body::empty());
            *refused.status_mut() = http::StatusCode::FORBIDDEN;
            Ok::<_, Infallible>(refused)
        });
        let store = Arc::new(Store::open(folder.join("catalogs")).unwrap());
        let metrics = Metrics::register(
            &mut prometheus_client::registry::Registry::default(),
            store.clone(),
            folder,
        );
        let puller = Arc::new(Puller::new(config));
        let base_url = "https://catalogd.example".to_owned();
        let client = Client::new(refusing, "default");
        Arc::new(Context::new(
            client,
            store,
            puller,
            metrics,
            base_url,
            CancellationToken::new(),
        ))
    }
}
