//! Values that the controllers of this process share.

use std::sync::Arc;

use olm_api::CustomResourcePolicy;

use crate::ServiceAccountPolicy;
use crate::inventory::Inventory;
use crate::metrics::Metrics;
use olm_runtime::metrics::ReconcileMetrics;

/// Shared values; cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    /// Client of the API server with this process's own identity.
    pub client: kube::Client,
    /// Namespace of this process, with the Secrets of revisions, leases and own certificates.
    pub system_namespace: Arc<str>,
    /// Number of objects of one kind that are reconciled concurrently; at least 1.
    pub concurrency: u16,
    /// Policy for `spec.serviceAccount`.
    pub accounts: ServiceAccountPolicy,
    /// Default of `spec.deletion.customResources`.
    pub custom_resources: CustomResourcePolicy,
    /// True if the CRDs of a bundle get `ClusterRole`s that aggregate to those of Kubernetes.
    pub crd_roles: bool,
    /// Metrics of reconciles.
    pub reconciles: ReconcileMetrics,
    /// Facts about every extension.
    pub inventory: Inventory,
    /// Metrics of steps and retries.
    pub metrics: Metrics,
}
