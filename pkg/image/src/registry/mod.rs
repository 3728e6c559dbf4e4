//! The pulling half of the OCI distribution protocol, every answer bounded.
//!
//! Own code rather than `oci-client`, which holds manifests, tokens and error bodies of any size
//! in memory and drops the reason why a token was refused; here registries are hostile, because
//! catalogs name them.

mod download;
mod error;
mod http;
mod manifest;
mod pace;
mod retry;
mod session;
mod signatures;
mod token;

pub use error::RegistryError;
pub(crate) use http::Scheme;
pub(crate) use manifest::{Image, Layer};
pub use pace::LeastRate;
pub(crate) use session::{Session, SessionOptions};
pub(crate) use signatures::Attached;
