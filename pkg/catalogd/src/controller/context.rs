//! What all reconciles of a process share.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use kube::Client;
use olm_image::Puller;
use olm_runtime::{
    backoff::Backoff,
    events::Events,
    metrics::{Controller, Reconciles},
    workers::Workers,
};
use olm_status::cluster_catalog::Served;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Memory, Vanished, images::Images};
use crate::metrics::Metrics;
use crate::storage::{CatalogName, Generation, Store};

/// Catalogs that are parsed and written to disk at the same time.
const STORING: usize = 2;

/// Default number of catalogs that are worked on at the same time.
pub(crate) const CONCURRENCY: u16 = 4;
/// Upstream's name of the controller.
const CONTROLLER: &str = "catalogd-clustercatalog-controller";

/// Clients, storage and memory of the controller.
pub struct Context {
    pub(super) client: Client,
    pub(super) store: Arc<Store>,
    pub(super) images: Images,
    pub(super) events: Events,
    pub(super) metrics: Metrics,
    pub(super) backoff: Backoff<CatalogName>,
    pub(super) memory: Mutex<HashMap<CatalogName, Memory>>,
    pub(super) storing: Semaphore,
    pub(super) reconciles: Controller,
    pub(super) workers: Workers,
    pub(super) shutdown: CancellationToken,
    base_url: String,
}

impl Context {
    /// `base_url` is what `/catalogs/<name>` is appended to, such as `https://host`.
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
            memory: Mutex::default(),
            storing: Semaphore::new(STORING),
            reconciles: Controller::default(),
            workers: Workers::new(CONCURRENCY),
            shutdown,
            base_url,
        }
    }

    /// Sets the number of workers, and adds the reconciles to the metrics.
    #[must_use]
    pub fn measured(mut self, reconciles: &Reconciles, concurrency: u16) -> Self {
        self.reconciles = reconciles.controller(CONTROLLER, concurrency);
        self.workers = Workers::new(concurrency);
        self
    }

    /// What the status says of content.
    pub(super) fn served(&self, name: &CatalogName, generation: &Generation) -> Served {
        let origin = &generation.manifest().origin;
        Served {
            reference: origin.resolved.clone(),
            base_url: format!("{}/catalogs/{name}", self.base_url),
            warning: self.images.warning(),
            unpacked: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(seconds(origin.unpacked_at)),
        }
    }

    /// What the status says of what is served for a catalog now.
    pub(super) fn served_now(&self, name: &CatalogName) -> Option<Served> {
        Some(self.served(name, &*self.store.get(name)?))
    }

    pub(super) fn remember(&self, name: &CatalogName, change: impl FnOnce(&mut Memory)) {
        change(self.memory.lock().entry(name.clone()).or_default());
    }

    pub(super) fn forget(&self, name: &CatalogName) {
        self.memory.lock().remove(name);
        self.backoff.clear(name);
    }
}

/// Drops what is remembered of catalogs that vanish, until `stop`: one that comes again begins anew.
pub async fn forget_vanished(context: Arc<Context>, mut vanished: Vanished, stop: CancellationToken) {
    while let Some(gone) = stop.run_until_cancelled(vanished.next()).await {
        for name in &gone {
            context.forget(name);
        }
    }
}

/// The time of seconds since the Unix epoch; the epoch itself when there is no such time.
pub(super) fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or_default()
}
