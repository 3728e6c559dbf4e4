//! Shared parts of the end-to-end tests: published content, the environment, and access to a cluster's objects.

pub mod changes;
pub mod cluster;
pub mod content;
pub mod environment;
pub mod history;
pub mod metrics;
pub mod plans;
pub mod rbac;
pub mod refinement;
