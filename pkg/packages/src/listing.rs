//! List of the packages of a catalog, with descriptions.

use std::collections::{BTreeMap, BTreeSet};

use olm_fbc::{ContentError, Meta, PackageBuilder, schema};
use olm_text::name::PackageName;
use serde::Serialize;

use crate::metadata::Metadata;

/// Package in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageListing {
    /// The package.
    pub name: PackageName,
    /// The channel that older clients default to.
    pub default_channel: String,
    /// Description for people.
    pub description: String,
    /// Display name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Keywords of its bundles.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub keywords: BTreeSet<String>,
    /// Provider.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
}

/// Packages during a read of their catalog.
#[derive(Debug, Default)]
pub struct Listings(BTreeMap<PackageName, Entry>);

/// Package during a read of its catalog.
#[derive(Debug, Default)]
struct Entry {
    listed: PackageListing,
    is_package: bool,
    /// The bundle of the display name and provider: the last by name.
    described_by: String,
}

impl Listings {
    /// Adds an `olm.package`, or the description of an `olm.bundle`. Ignores bundles that cannot be parsed, and other metas.
    ///
    /// # Errors
    /// An `olm.package` is malformed.
    pub fn add(&mut self, meta: &Meta) -> Result<(), ContentError> {
        match meta.schema.as_str() {
            schema::PACKAGE => {
                let mut builder = PackageBuilder::new(&meta.name);
                builder.add(meta)?;
                if let Some(package) = builder.finish().package {
                    let entry = self.0.entry(meta.name.as_str().into()).or_default();
                    entry.is_package = true;
                    entry.listed.default_channel = package.default_channel;
                    entry.listed.description = package.description;
                }
            }
            schema::BUNDLE => {
                if let Some(metadata) = Metadata::of(meta) {
                    let entry = self.0.entry(meta.package.as_str().into()).or_default();
                    entry.describe(&meta.name, metadata);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the packages by name, except packages without an `olm.package` meta.
    pub fn finish(self) -> Vec<PackageListing> {
        let packages = self.0.into_iter().filter(|(_, entry)| entry.is_package);
        packages
            .map(|(name, entry)| PackageListing { name, ..entry.listed })
            .collect()
    }
}

impl Entry {
    fn describe(&mut self, bundle: &str, metadata: Metadata) {
        self.listed.keywords.extend(metadata.keywords);
        if *bundle >= *self.described_by {
            bundle.clone_into(&mut self.described_by);
            self.listed.display_name = metadata.display_name;
            self.listed.provider = metadata.provider.name;
        }
    }
}
