//! Client of catalogd with a cache of packages by catalog digest.
//!
//! A package is read once per content digest and cached, parsed, within a limit in bytes; the least recently used is
//! evicted first. Absence of a package is cached, too, but only after a complete response: a 404 may come from a
//! replica without the content. Content of another image digest than the one in the catalog's status is never cached;
//! the client requests it again over a new connection.

mod cache;
mod catalog_ref;
mod catalogs;
mod client;
mod connection;
mod error;
mod names;
mod providers;
mod read;
mod result_cache;
mod token;
mod trust;

pub use catalog_ref::CatalogRef;
pub use catalogs::Catalogs;
pub use client::{CatalogClient, Limits, PackageAnswer, StaleReason};
pub use error::ClientError;
pub use trust::{CaFuture, Trust};
