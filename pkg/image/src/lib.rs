//! Image references, registry access, pull, safe unpack and the content cache.
//!
//! Registries and images are foreign and held to be hostile: every transfer is bounded in time
//! and size, every blob is checked against its digest while it is written, and nothing that an
//! archive says can lead out of the directory it is unpacked into. Nothing here knows what an
//! image holds.

mod args;
mod auth;
mod cache;
mod cause;
mod config;
mod error;
mod hosts;
mod locks;
mod policy;
mod pull_secrets;
mod puller;
mod reference;
mod registries;
mod registry;
mod sanitize;
mod trust;
mod turns;
mod unpack;

pub use args::ImageArgs;
pub use auth::{AuthError, PullSecretError, PullSecrets, SecretText};
pub use cause::Cause;
pub use config::{ImageConfig, Limits};
pub use error::Error;
pub use hosts::{AllowedHost, AllowedHostError, HostClass, HostPolicy, HostRefused};
pub use policy::PolicyError;
pub use pull_secrets::follow as follow_pull_secrets;
pub use puller::{Filter, Puller, Unpacked};
pub use reference::{Algorithm, CanonicalRef, Digest, Reference, ReferenceError, Repository, TagOrDigest};
pub use registries::RegistriesError;
pub use registry::{LeastRate, RegistryError};
pub use sanitize::stable as stable_text;
pub use turns::PullLimits;
pub use unpack::UnpackError;
