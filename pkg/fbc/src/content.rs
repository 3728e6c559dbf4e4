//! Typed graph of one package, the input of resolution.

use crate::error::MAX_SHOWN;
use crate::footprint::of_entry;
use crate::lifecycle::Lifecycles;
use crate::model::{Bundle, Channel, Deprecations, Package, schema};
use crate::{Meta, footprint, lifecycle};
use olm_text::cut;
use serde::Deserialize;
use serde::de::Error as _;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Graph of one package of one catalog.
///
/// Lists have the order of upstream's cache: bytewise by name with `.json` appended. The later of two objects with the
/// same schema and name wins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PackageContent {
    /// The package's name.
    pub name: String,
    /// The `olm.package` object; a package may consist of bundles alone.
    pub package: Option<Package>,
    /// Channels of the package.
    pub channels: Vec<Channel>,
    /// Bundles of the package.
    pub bundles: Vec<Bundle>,
    /// Deprecations of the package; only the first blob counts.
    pub deprecations: Vec<Deprecations>,
    /// Lifecycles of the package's versions. They never decide what is installed.
    pub lifecycles: Lifecycles,
}

/// Reason why the content of a package cannot be used. Terminal: only other content can succeed.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// An object does not match its schema.
    #[error(
        "error loading package {}: {schema} {} is malformed",
        olm_version::go_quote(package),
        olm_version::go_quote(name)
    )]
    Shape {
        /// The package.
        package: String,
        /// The schema of the object.
        schema: String,
        /// The name of the object, cut if it is long.
        name: String,
        /// Reason why the blob does not decode, cut if it is long.
        source: serde_json::Error,
    },
}

impl PackageContent {
    /// Collects the package `name` from `metas`; objects of other packages are ignored.
    ///
    /// # Errors
    /// [`ContentError`] for the first object that does not match its schema.
    pub fn from_metas(name: &str, metas: impl IntoIterator<Item = Meta>) -> Result<Self, ContentError> {
        let mut builder = PackageBuilder::new(name);
        for meta in metas {
            builder.add(&meta)?;
        }
        Ok(builder.finish())
    }

    /// Returns true if the catalog has no blob of the package that resolution uses.
    pub fn is_empty(&self) -> bool {
        self.package.is_none()
            && self.channels.is_empty()
            && self.bundles.is_empty()
            && self.deprecations.is_empty()
    }
}

/// Builder of a package, object by object, so that at most one raw object is in memory.
#[derive(Debug, Default)]
pub struct PackageBuilder {
    name: String,
    package: Option<Package>,
    channels: BTreeMap<String, Channel>,
    bundles: BTreeMap<String, Bundle>,
    deprecations: BTreeMap<String, Deprecations>,
    lifecycles: Lifecycles,
    footprint: u64,
}

impl PackageBuilder {
    /// Creates an empty builder of the package `name`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns true if `meta` belongs to the package and has a schema of [`PackageContent`].
    pub fn wants(&self, meta: &Meta) -> bool {
        match meta.schema.as_str() {
            schema::PACKAGE => meta.name == self.name,
            schema::CHANNEL | schema::BUNDLE | schema::DEPRECATIONS | lifecycle::SCHEMA => {
                meta.package == self.name
            }
            _ => false,
        }
    }

    /// Returns the memory of everything added so far, in bytes, without the lifecycles. Their memory is limited on its own,
    /// to about 5 MiB, and must not make a package too large.
    pub fn footprint(&self) -> u64 {
        self.footprint
    }

    /// Estimates the memory that `meta` would add to the footprint, in bytes.
    pub fn estimate(&self, meta: &Meta) -> u64 {
        if meta.schema == lifecycle::SCHEMA {
            return 0;
        }
        footprint::of_text(&meta.blob)
    }

    /// Adds `meta` if the builder [wants](Self::wants) it; returns true if so.
    ///
    /// # Errors
    /// [`ContentError`] if `meta` does not match its schema. Lifecycles have no errors: see [`Lifecycles::ignored`].
    pub fn add(&mut self, meta: &Meta) -> Result<bool, ContentError> {
        if !self.wants(meta) {
            return Ok(false);
        }
        if meta.schema == lifecycle::SCHEMA {
            self.lifecycles.add(&meta.blob);
            return Ok(true);
        }
        let key = format!(
            "{}.json",
            if meta.name.is_empty() {
                &meta.schema
            } else {
                &meta.name
            }
        );
        // The meta's own name counts: its key may be written in another case.
        match meta.schema.as_str() {
            schema::PACKAGE => {
                let package: Package = typed(meta, &self.name)?;
                self.footprint += of_entry(&key, &package);
                self.package = Some(package);
            }
            schema::CHANNEL => {
                let channel: Channel = typed(meta, &self.name)?;
                self.footprint += of_entry(&key, &channel);
                self.channels.insert(
                    key,
                    Channel {
                        name: meta.name.clone(),
                        ..channel
                    },
                );
            }
            schema::BUNDLE => {
                let bundle: Bundle = typed(meta, &self.name)?;
                self.footprint += of_entry(&key, &bundle);
                self.bundles.insert(
                    key,
                    Bundle {
                        name: meta.name.clone(),
                        ..bundle
                    },
                );
            }
            _ => {
                let deprecations: Deprecations = typed(meta, &self.name)?;
                self.footprint += of_entry(&key, &deprecations);
                self.deprecations.insert(key, deprecations);
            }
        }
        Ok(true)
    }

    /// Returns the package collected so far.
    pub fn finish(self) -> PackageContent {
        PackageContent {
            name: self.name,
            package: self.package,
            channels: self.channels.into_values().collect(),
            bundles: self.bundles.into_values().collect(),
            deprecations: self.deprecations.into_values().collect(),
            lifecycles: self.lifecycles,
        }
    }
}

fn typed<'a, T: Deserialize<'a>>(meta: &'a Meta, package: &str) -> Result<T, ContentError> {
    serde_json::from_slice(&meta.blob).map_err(|source| ContentError::Shape {
        package: package.to_owned(),
        schema: meta.schema.clone(),
        name: cut(&meta.name, MAX_SHOWN).into_owned(),
        source: bounded(source),
    })
}

/// Returns the error with a bounded text: it may quote a value of any size.
fn bounded(error: serde_json::Error) -> serde_json::Error {
    match cut(&error.to_string(), MAX_SHOWN) {
        Cow::Borrowed(_) => error,
        Cow::Owned(text) => serde_json::Error::custom(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_grow_with_the_catalog() {
        let meta = |name: &str, image: &str| Meta {
            schema: schema::BUNDLE.to_owned(),
            package: "p".to_owned(),
            name: name.to_owned(),
            blob: format!(r#"{{"name":{name:?},"properties":{image:?}}}"#).into_bytes(),
        };
        let failed = |name: &str, image: &str| {
            let error = PackageContent::from_metas("p", [meta(name, image)]).unwrap_err();
            olm_text::chain(&error)
        };
        let short = failed("a", "b");
        assert!(short.contains("\"b\"") && short.contains("line 1"), "{short}");
        let long = "ä".repeat(10_000);
        assert!(failed("a", &long).len() < 500);
        assert!(failed(&long, "b").len() < 1000);
    }
}
