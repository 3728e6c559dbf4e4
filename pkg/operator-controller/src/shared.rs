//! What the controllers of this process share.

use std::sync::Arc;

use crate::ServiceAccountPolicy;
use crate::inventory::Inventory;
use crate::metrics::Metrics;
use olm_runtime::metrics::ReconcileMetrics;

/// Handed to every controller's `run`; cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    /// The API server, with this process's own identity.
    pub client: kube::Client,
    /// Namespace of this process: revisions' object Secrets, leases and own certificates live there.
    pub system_namespace: Arc<str>,
    /// How many objects of one kind are reconciled at the same time; at least 1.
    pub concurrency: u16,
    /// Policy for `spec.serviceAccount`.
    pub accounts: ServiceAccountPolicy,
    /// Counts what they do.
    pub reconciles: ReconcileMetrics,
    /// What is known of every extension.
    pub inventory: Inventory,
    /// How long steps take, and what is tried again.
    pub metrics: Metrics,
}
