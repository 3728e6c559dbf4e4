//! State and clients of the ClusterExtension controller.

use std::sync::Arc;

use kube::ResourceExt as _;
use olm_api::ClusterExtension;
use olm_catalog_client::Catalogs;
use olm_decide::extension::History;
use olm_image::Images;
use olm_runtime::FeatureGates;
use olm_runtime::backoff::Backoff;
use olm_runtime::events::Events;
use olm_runtime::metrics::ControllerMetrics;
use olm_runtime::workers::Workers;
use olm_status::cluster_upgrade::{Installed, Successor, limit};

use super::call::chain;
use super::gather::answers::Answers;
use super::gather::dependencies::DependencyWaiters;
use super::gather::joint::JointMoves;
use super::gather::stores::{Stores, Writers};
use super::gather::tag_cache::TagCache;
use super::hold_watches::HoldWatches;
use super::namespace_selections::NamespaceSelections;
use super::namespace_waiters::NamespaceWaiters;
use super::revisions::ClusterRevisions;
use super::secrets::SystemSecrets;
use crate::Shared;
use crate::cluster_catalog::Listing;
use crate::inventory::ExtensionRecord;

/// State and clients of the controller.
pub(crate) struct Context {
    pub(super) shared: Shared,
    pub(super) images: Arc<dyn Images>,
    pub(super) catalogs: Arc<dyn Catalogs>,
    pub(super) features: FeatureGates,
    pub(super) backoff: Backoff<String>,
    /// Backoff of failed reads that do not keep the extension from being ready.
    pub(super) incomplete: Backoff<String>,
    pub(super) namespace_waiters: NamespaceWaiters,
    pub(super) namespace_selections: NamespaceSelections,
    pub(super) dependency_waiters: DependencyWaiters,
    pub(super) joint_moves: JointMoves,
    pub(super) hold_watches: HoldWatches,
    pub(super) events: Events,
    pub(super) listing: Arc<Listing>,
    pub(super) stores: Arc<Stores>,
    pub(super) revisions: ClusterRevisions,
    pub(super) secrets: Arc<SystemSecrets>,
    pub(super) tags: TagCache,
    pub(super) answers: Answers,
    pub(super) metrics: ControllerMetrics,
    pub(super) workers: Workers,
}

impl Context {
    /// Creates the context of a process, and the writers of its watches.
    pub(crate) fn new(
        shared: Shared,
        images: Arc<dyn Images>,
        catalogs: Arc<dyn Catalogs>,
        listing: Arc<Listing>,
        features: FeatureGates,
    ) -> (Self, Writers) {
        let (stores, writers) = Stores::new();
        let stores = Arc::new(stores);
        let (client, system) = (shared.client.clone(), Arc::clone(&shared.system_namespace));
        let secrets = SystemSecrets::new(client.clone(), &system);
        let context = Self {
            workers: Workers::new(shared.concurrency),
            events: Events::new(shared.client.clone(), "operator-controller"),
            metrics: shared.reconciles.controller(
                "controller-operator-cluster-extension-controller",
                shared.concurrency,
            ),
            shared,
            images,
            catalogs,
            features,
            backoff: Backoff::default(),
            incomplete: Backoff::default(),
            namespace_waiters: NamespaceWaiters::default(),
            namespace_selections: NamespaceSelections::default(),
            dependency_waiters: DependencyWaiters::default(),
            joint_moves: JointMoves::default(),
            hold_watches: HoldWatches::default(),
            listing,
            revisions: ClusterRevisions::new(client, system, Arc::clone(&secrets), Arc::clone(&stores)),
            secrets,
            stores,
            tags: TagCache::default(),
            answers: Answers::default(),
        };
        (context, writers)
    }

    /// Returns the stores of the watches.
    pub(crate) fn stores(&self) -> Arc<Stores> {
        Arc::clone(&self.stores)
    }

    /// Records an extension for metrics and for verdicts on cluster upgrades.
    pub(super) fn note(&self, extension: &ClusterExtension, history: &History, successors: Vec<Successor>) {
        let installed = history.installed.as_ref();
        let record = ExtensionRecord {
            version: installed.map(|revision| revision.bundle.version.clone()),
            catalog: installed.and_then(|revision| revision.bundle.catalog.clone()),
            bundle: history.newest().map(|newest| Installed {
                extension: extension.name_any(),
                bundle: newest.bundle.name.clone(),
                // Properties without a limit block nothing.
                properties: newest
                    .properties
                    .clone()
                    .filter(|properties| limit(properties) != Ok(None)),
                successors,
            }),
            ..identity(extension)
        };
        self.shared.inventory.note(&extension.name_any(), record);
    }

    /// Records an extension whose revisions cannot be read until somebody mends the cause, so that the verdict on cluster upgrades names
    /// the extension and does not wait for it.
    pub(super) fn note_unread(&self, extension: &ClusterExtension, cause: String) {
        let record = ExtensionRecord {
            unread: Some(cause),
            ..identity(extension)
        };
        self.shared.inventory.note_unread(&extension.name_any(), record);
    }

    /// Drops the state of an extension that is gone.
    pub(super) async fn forget(&self, extension: &str) {
        self.backoff.clear(&extension.to_owned());
        self.incomplete.clear(&extension.to_owned());
        self.namespace_waiters.remove(extension);
        self.namespace_selections.remove(extension);
        self.stores.forget(extension);
        self.tags.remove(extension);
        self.shared.inventory.forget(extension);
        self.dependency_waiters.remove(extension);
        self.joint_moves.remove(extension);
        self.hold_watches.release(extension);
        if let Err(error) = self.images.forget(extension).await {
            // The cache is bounded, so a leftover folder does not hold up the removal.
            tracing::warn!(error = chain(&error), "images were not dropped");
        }
    }
}

/// Returns a record with nothing but the identity and the package of the extension.
fn identity(extension: &ClusterExtension) -> ExtensionRecord {
    let package = extension.spec.source.catalog.as_ref();
    ExtensionRecord {
        uid: extension.metadata.uid.clone().unwrap_or_default(),
        package: package
            .map(|catalog| catalog.package_name.as_str().into())
            .unwrap_or_default(),
        ..ExtensionRecord::default()
    }
}
