//! Questions about the content of a package: heads, channels, versions and deprecations.

use std::collections::BTreeSet;

use olm_version::VersionRelease;

use crate::content::PackageContent;
use crate::model::{Channel, schema};

impl Channel {
    /// Returns the entries that no other entry of the channel replaces or skips.
    pub fn heads(&self) -> Vec<&str> {
        let passed: BTreeSet<&str> = self
            .entries
            .iter()
            .flat_map(|entry| {
                let others = std::iter::once(&entry.replaces).chain(&entry.skips);
                others.filter(|other| **other != entry.name)
            })
            .map(String::as_str)
            .collect();
        let mut heads: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        heads.retain(|name| !passed.contains(name));
        heads.dedup();
        heads
    }
}

impl PackageContent {
    /// Returns the deprecation messages of `name` of `schema`; none if it is not deprecated. The package has an empty name.
    pub fn deprecation(&self, schema: &str, name: &str) -> Option<String> {
        let messages: Vec<&str> = self
            .deprecations
            .iter()
            .take(1)
            .flat_map(|list| &list.entries)
            .filter(|entry| entry.reference.schema == schema)
            .filter(|entry| schema == schema::PACKAGE || entry.reference.name == name)
            .map(|entry| entry.message.trim())
            .collect();
        (!messages.is_empty()).then(|| messages.join("\n"))
    }

    /// Returns the channels that list a bundle.
    pub fn channels_of(&self, bundle: &str) -> Vec<String> {
        let listing = self
            .channels
            .iter()
            .filter(|channel| channel.entries.iter().any(|entry| entry.name == bundle));
        listing.map(|channel| channel.name.clone()).collect()
    }

    /// Returns a bundle's version.
    pub fn version(&self, bundle: &str) -> Option<VersionRelease> {
        let found = self.bundles.iter().find(|candidate| candidate.name == bundle)?;
        found.version_release(false).ok()
    }

    /// Returns a bundle's version as text, or its name if it has none.
    pub fn version_text(&self, bundle: &str) -> String {
        self.version(bundle)
            .map_or_else(|| bundle.to_owned(), |version| version.to_string())
    }
}
