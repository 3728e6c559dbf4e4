//! Status conditions of all kinds, computed from outcomes.
//!
//! Pure functions: an outcome and the time go in, a whole status comes out. The controllers write the status if it
//! differs.

pub mod catalogs;
pub mod cluster_catalog;
pub mod cluster_extension;
pub mod cluster_object_set;
pub mod cluster_upgrade;
pub mod condition;
pub mod overview;
pub mod recorded;
pub mod rolled_back;
pub mod summary;
pub mod support;
pub mod unwatched;
pub mod upgrade;
