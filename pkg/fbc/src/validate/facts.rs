//! Facts about packages that outlive their metas.

use super::report::Place;
use crate::lifecycle::Lifecycles;
use olm_version::VersionRelease;
use std::collections::{BTreeMap, HashMap};

/// Name, as its number in [`Names`].
pub(super) type Name = usize;

/// Interned names of the bundles of a package.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<String, Name>,
    texts: Vec<String>,
}

impl Names {
    pub(super) fn number(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(super) fn text(&self, number: Name) -> &str {
        self.texts.get(number).map_or("", String::as_str)
    }

    /// Returns up to twenty names in order, and the number of further ones.
    pub(super) fn list(&self, numbers: impl IntoIterator<Item = Name>) -> String {
        let mut texts: Vec<&str> = numbers.into_iter().map(|number| self.text(number)).collect();
        texts.sort_unstable();
        let more = texts.len().saturating_sub(20);
        texts.truncate(20);
        let listed = texts.join(", ");
        if more > 0 {
            format!("{listed} and {more} more")
        } else {
            listed
        }
    }
}

/// Facts about one package that later rules need.
#[derive(Debug, Default)]
pub(super) struct PackageFacts {
    pub(super) names: Names,
    /// `olm.package` objects with their default channels.
    pub(super) definitions: Vec<(Place, String)>,
    pub(super) channels: Vec<ChannelFacts>,
    pub(super) bundles: Vec<BundleFacts>,
    pub(super) deprecations: Vec<DeprecationsFacts>,
    pub(super) lifecycles: Lifecycles,
    /// First place that names the package.
    pub(super) first: Option<Place>,
    /// First bundle whose image has no digest, and the number of such bundles.
    pub(super) by_tag: Option<(Place, usize)>,
    /// Unknown schemas with their first place and number.
    pub(super) unknown: BTreeMap<String, (Place, usize)>,
}

/// Facts about a channel that later rules need.
#[derive(Debug)]
pub(super) struct ChannelFacts {
    pub(super) place: Place,
    pub(super) name: String,
    /// Bundles of the channel, each once, in the order written.
    pub(super) entries: Vec<Name>,
    /// The replaced name of each entry.
    pub(super) replaces: Vec<Option<Name>>,
    /// The skipped names of each entry.
    pub(super) skips: Vec<Vec<Name>>,
}

/// Facts about a bundle that later rules need.
#[derive(Debug)]
pub(super) struct BundleFacts {
    pub(super) place: Place,
    pub(super) name: Name,
    pub(super) version: Option<VersionRelease>,
}

/// Facts about an `olm.deprecations`: schema and name of each reference that can be looked up.
#[derive(Debug)]
pub(super) struct DeprecationsFacts {
    pub(super) place: Place,
    pub(super) references: Vec<(String, String)>,
}
