//! File-based catalogs: metas, packages, channels, bundles, deprecations, canonical blobs.
//!
//! [`decode`] turns any catalog file into [`Meta`]s with a canonical blob: the only form that is stored, served, hashed
//! and parsed later. [`IndexIgnore`] holds the rules of ignored files. [`PackageContent`] is the typed graph of one
//! package. [`validate()`] finds the defects of a catalog. The crate is pure: readers are parameters, paths are only
//! text. [`lifecycle`] reads until when a version is supported.

mod canonical;
mod content;
mod decode;
mod error;
pub mod footprint;
mod ignore_rules;
mod json;
pub mod lifecycle;
mod lookups;
mod media_type;
mod meta;
mod model;
mod validate;

pub use content::{ContentError, PackageBuilder, PackageContent};
pub use decode::{Decoder, Limits, decode, decode_located};
pub use error::DecodeError;
pub use ignore_rules::{IgnoreError, IndexIgnore};
pub use media_type::image_type;
pub use meta::Meta;
pub use model::{
    Bundle, Channel, DeprecationEntry, Deprecations, Entry, Package, Property, Reference, VersionError,
    schema,
};
pub use validate::{Finding, LocatedMeta, Rule, Severity, Validator, validate};
