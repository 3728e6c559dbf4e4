//! Image references, registry access, pull, safe unpack and the content cache.
//!
//! Registries and images are untrusted. Every transfer is bounded in time and size, every blob is checked against its
//! digest while it is written, and no archive entry can leave the directory it is unpacked into. This crate does not
//! interpret the content of images.

mod args;
mod auth;
mod cache;
mod cause;
mod config;
mod content;
mod error;
mod files;
mod hosts;
mod images;
mod layers;
mod limits;
mod policy;
mod pull_secrets;
mod puller;
mod reference;
mod registries;
mod registry;
mod sanitize;
mod slots;
mod trust;
mod unpack;

pub use args::ImageArgs;
pub use auth::{AuthError, PullSecretError, PullSecrets, SecretText};
pub use cause::Cause;
pub use config::ImageConfig;
pub use error::Error;
pub use hosts::{AllowedHost, AllowedHostError, HostClass, HostPolicy, HostRejected};
pub use images::Images;
pub use layers::{Layers, Reading};
pub use limits::{Limits, MinRate, PullLimits};
pub use policy::PolicyError;
pub use pull_secrets::watch_pull_secrets;
pub use puller::{Fetched, Filter, Puller, Unpacked};
pub use reference::{Algorithm, CanonicalRef, Digest, Reference, ReferenceError, Repository, TagOrDigest};
pub use registries::RegistriesError;
pub use registry::RegistryError;
pub use sanitize::stable as stable_text;
pub use unpack::{CancelGuard, StreamEntry, StreamError, UnpackError};
