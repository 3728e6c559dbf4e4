//! From an outcome to conditions, for all kinds.
//!
//! Pure: what was found goes in with the time, a whole status comes out. The controllers write it when
//! it differs from the one there is.

pub mod catalogs;
pub mod cluster_catalog;
pub mod cluster_extension;
pub mod cluster_object_set;
pub mod cluster_upgrade;
pub mod condition;
pub mod summary;
pub mod unwatched;
pub mod upgrade;
