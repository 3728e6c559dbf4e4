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

#[cfg(test)]
mod tests {
    use olm_fbc::{DeprecationEntry, Deprecations, Reference};

    use super::*;

    fn content(entries: &[(&str, &str, &str)]) -> PackageContent {
        let entry = |&(schema, name, message): &(&str, &str, &str)| DeprecationEntry {
            reference: Reference {
                schema: schema.to_owned(),
                name: name.to_owned(),
            },
            message: message.to_owned(),
        };
        PackageContent {
            deprecations: vec![Deprecations {
                entries: entries.iter().map(entry).collect(),
            }],
            ..PackageContent::default()
        }
    }

    #[test]
    fn messages_go_to_what_they_are_about() {
        let info = DeprecationInfo::of(&content(&[
            (schema::PACKAGE, "", "old"),
            (schema::CHANNEL, "a", "one"),
            (schema::CHANNEL, "a", "two"),
            (schema::BUNDLE, "p.1", "first"),
            (schema::BUNDLE, "p.1", "second"),
            ("unknown", "x", "ignored"),
        ]));
        assert_eq!(info.package, ["old"]);
        assert_eq!(
            info.channels,
            BTreeMap::from([("a".to_owned(), vec!["one".to_owned(), "two".to_owned()])])
        );
        assert_eq!(
            info.bundles,
            BTreeMap::from([("p.1".to_owned(), "first\nsecond".to_owned())])
        );
    }
}
