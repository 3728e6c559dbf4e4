//! File-based catalogs: metas, packages, channels, bundles, deprecations, canonical blobs.
//!
//! [`decode`] turns any catalog file into [`Meta`]s whose blob is canonical: what is stored, served, hashed
//! and parsed later is always that one form. [`IndexIgnore`] says which files of a catalog are not read.
//! [`PackageContent`] is the typed graph of one package. [`validate()`] finds what authors of catalogs got wrong.
//! Pure: readers come in as parameters, paths are only text.

mod canonical;
mod content;
mod decode;
mod error;
pub mod footprint;
mod ignore_rules;
mod json;
mod meta;
mod model;
mod validate;

pub use content::{ContentError, PackageBuilder, PackageContent};
pub use decode::{Decoder, Limits, decode, decode_located};
pub use error::DecodeError;
pub use ignore_rules::{IgnoreError, IndexIgnore};
pub use meta::Meta;
pub use model::{
    Bundle, Channel, DeprecationEntry, Deprecations, Entry, Package, Property, Reference, VersionError,
    schema,
};
pub use validate::{Finding, Located, Rule, Severity, Validator, validate};
