//! catalogd's HTTP client and its cache of packages by catalog digest.
//!
//! A package is read once per content digest and then kept, parsed, within a bound in bytes; the
//! least recently used goes first. That a package is absent is kept as well, but only when
//! catalogd said so by a complete answer: a 404 comes from a replica without the content. Content of an image
//! digest other than the one that the catalog's status names is never kept, and asked for again over a new connection.

mod cache;
mod client;
mod connection;
mod error;
mod names;
mod providers;
mod read;
mod token;
mod trust;

pub use client::{Answer, CatalogClient, CatalogRef, Former, Limits};
pub use error::{ClientError, Disposition};
pub use trust::{CaFuture, Trust};
