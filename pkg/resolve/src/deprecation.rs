//! Deprecations of a package, of its channels and of its bundles.

use olm_fbc::{PackageContent, schema};
use std::collections::{BTreeMap, BTreeSet};

/// Deprecations of a package, its channels and its bundles.
///
/// Messages are verbatim, with their own line ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeprecationInfo {
    /// Messages about the package.
    pub package: Vec<String>,
    /// Messages about each deprecated channel.
    pub channels: BTreeMap<String, Vec<String>>,
    /// Messages about each deprecated bundle, joined by line feeds; may be empty.
    pub bundles: BTreeMap<String, String>,
}

impl DeprecationInfo {
    /// Collects the deprecations of `content`. Only the first `olm.deprecations` blob counts.
    pub(crate) fn of(content: &PackageContent) -> Self {
        let mut info = Self::default();
        for entry in content.deprecations.iter().take(1).flat_map(|list| &list.entries) {
            let (name, message) = (&entry.reference.name, entry.message.clone());
            match entry.reference.schema.as_str() {
                schema::PACKAGE => info.package.push(message),
                schema::CHANNEL => info.channels.entry(name.clone()).or_default().push(message),
                schema::BUNDLE => match info.bundles.get_mut(name) {
                    Some(joined) => {
                        joined.push('\n');
                        joined.push_str(&message);
                    }
                    None => drop(info.bundles.insert(name.clone(), message)),
                },
                _ => {}
            }
        }
        info
    }

    /// Returns true if nothing is deprecated.
    pub fn is_empty(&self) -> bool {
        self.package.is_empty() && self.channels.is_empty() && self.bundles.is_empty()
    }
}

/// Returns the names of the bundles that `content` deprecates.
pub(crate) fn deprecated_bundles(content: &PackageContent) -> BTreeSet<&str> {
    content
        .deprecations
        .iter()
        .take(1)
        .flat_map(|list| &list.entries)
        .filter(|entry| entry.reference.schema == schema::BUNDLE)
        .map(|entry| entry.reference.name.as_str())
        .collect()
}
