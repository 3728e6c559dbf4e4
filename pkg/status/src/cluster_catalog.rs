//! The status of a ClusterCatalog, from what one reconcile found.
