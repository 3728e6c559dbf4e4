//! Pull side of the OCI distribution protocol, with bounded responses.
//!
//! This is own code instead of `oci-client`, which holds manifests, tokens and error bodies of any size in memory and
//! drops the reason why a token was denied. Registries are untrusted here, because catalogs name them.

mod download;
mod error;
mod http;
mod manifest;
mod rate;
mod retry;
mod session;
mod signatures;
mod token;

pub use error::RegistryError;
pub(crate) use http::Scheme;
pub(crate) use manifest::{Image, Layer};
pub(crate) use session::{Session, SessionOptions, api_host};
pub(crate) use signatures::Signature;
