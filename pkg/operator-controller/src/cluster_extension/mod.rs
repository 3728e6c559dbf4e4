//! The ClusterExtension controller: from a wish to a revision, and from revisions to a status.
//!
//! [`controller`] wires the triggers, [`reconcile`] runs one pass: gather, decide, act, report.

mod account;
mod act;
mod advance;
mod call;
mod certificates;
mod constraints;
mod controller;
mod crd_findings;
mod crds;
mod decide;
mod failure;
mod gather;
mod helm;
mod identity;
mod model;
mod news;
mod pull;
mod reachable;
mod reconcile;
mod remove;
mod report;
mod rights;
mod served;
mod stored;
mod stores;
mod tags;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::Arc;

use kube::ResourceExt as _;
use olm_api::ClusterExtension;
use olm_catalog_client::CatalogClient;
use olm_image::Puller;
use olm_runtime::FeatureGates;
use olm_runtime::backoff::Backoff;
use olm_runtime::events::Events;
use olm_runtime::metrics::Controller;
use olm_runtime::workers::Workers;
use olm_status::cluster_upgrade::{Installed, Successor};

pub(crate) use call::{CallError, call, chain};
pub(crate) use controller::run;
use stores::{Stores, Writers};
use tags::Tags;
use waiting::Waiting;

use crate::Shared;
use crate::cluster_catalog::Listing;
use crate::inventory::Known;
use model::History;

/// What this controller works with.
pub(crate) struct Context {
    shared: Shared,
    puller: Arc<Puller>,
    catalogs: Arc<CatalogClient>,
    features: FeatureGates,
    backoff: Backoff<String>,
    /// Delays before something is looked for again that does not keep the extension from being ready.
    unseen: Backoff<String>,
    waiting: Waiting,
    unmet: constraints::Waiting,
    events: Events,
    listing: Arc<Listing>,
    stores: Stores,
    tags: Tags,
    metrics: Controller,
    workers: Workers,
}

impl Context {
    /// A context for one process, and where its watches write to.
    pub(crate) fn new(
        shared: Shared,
        puller: Arc<Puller>,
        catalogs: Arc<CatalogClient>,
        listing: Arc<Listing>,
        features: FeatureGates,
    ) -> (Self, Writers) {
        let (stores, writers) = Stores::new();
        let context = Self {
            workers: Workers::new(shared.concurrency),
            events: Events::new(shared.client.clone(), "operator-controller"),
            metrics: shared.reconciles.controller(
                "controller-operator-cluster-extension-controller",
                shared.concurrency,
            ),
            shared,
            puller,
            catalogs,
            features,
            backoff: Backoff::default(),
            unseen: Backoff::default(),
            waiting: Waiting::default(),
            unmet: constraints::Waiting::default(),
            listing,
            stores,
            tags: Tags::default(),
        };
        (context, writers)
    }

    /// Notes what is known of an extension, for metrics and for verdicts on cluster upgrades.
    fn note(&self, extension: &ClusterExtension, history: &History, successors: Vec<Successor>) {
        let installed = history.installed.as_ref();
        let package = extension.spec.source.catalog.as_ref();
        let known = Known {
            uid: extension.metadata.uid.clone().unwrap_or_default(),
            package: package
                .map(|catalog| catalog.package_name.clone())
                .unwrap_or_default(),
            version: installed
                .map(|revision| revision.bundle.version.clone())
                .unwrap_or_default(),
            catalog: installed
                .and_then(|revision| revision.bundle.catalog.clone())
                .unwrap_or_default(),
            conditions: Vec::new(),
            bundle: history.newest().map(|newest| Installed {
                extension: extension.name_any(),
                bundle: newest.bundle.name.clone(),
                properties: newest.properties.clone(),
                successors,
            }),
        };
        self.shared.inventory.note(&extension.name_any(), known);
    }

    /// Drops what is kept for an extension that is gone.
    async fn forget(&self, extension: &str) {
        self.backoff.clear(&extension.to_owned());
        self.unseen.clear(&extension.to_owned());
        self.waiting.clear(extension);
        self.stores.forget(extension);
        self.tags.forget(extension);
        self.shared.inventory.forget(extension);
        self.unmet.clear(extension);
        if let Err(error) = self.puller.forget(extension).await {
            // The cache is bounded anyway; a leftover folder is no reason to keep an extension from going.
            tracing::warn!(
                ClusterExtension = extension,
                error = chain(&error),
                "images were not dropped"
            );
        }
    }
}
