//! The pulling half of the OCI distribution protocol, every answer bounded.
//!
//! Own code rather than `oci-client`, which holds manifests, tokens and error bodies of any size
//! in memory and drops the reason why a token was refused; here registries are hostile, because
//! catalogs name them.

mod error;
mod manifest;
mod session;
mod token;

pub use error::RegistryError;
pub(crate) use manifest::{Image, Layer};
pub(crate) use session::{Clients, Scheme, Session};
