//! Shared parts of the end-to-end tests: the environment, generated catalogs and bundles, access to the objects of a cluster, and
//! the checks of a whole run on its audit log and its statuses.

pub mod changes;
pub mod cluster;
pub mod conditions;
pub mod content;
pub mod environment;
pub mod history;
pub mod metrics;
pub mod plans;
pub mod rbac;
pub mod refinement;
pub mod tokens;
