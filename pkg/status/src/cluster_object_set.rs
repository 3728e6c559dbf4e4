//! The status of a ClusterObjectSet, from what one reconcile found.
