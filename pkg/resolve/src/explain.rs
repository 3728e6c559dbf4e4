//! Explanation of a resolution: the reason for the chosen bundle and against every other one.

use crate::as_text::as_optional_text;
use olm_text::name::{BundleName, CatalogName};
use olm_version::VersionRelease;
use serde::Serialize;
use std::fmt;

/// Reasoning of one resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Queried catalogs, by priority, then name.
    pub catalogs: Vec<CatalogExplanation>,
    /// Remarks beside the verdicts, in the order of the catalogs.
    pub notes: Vec<Note>,
}

/// Reasoning about one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogExplanation {
    /// The catalog's name.
    pub name: CatalogName,
    /// Priority; higher precedes.
    pub priority: i32,
    /// Result for this catalog.
    pub outcome: CatalogOutcome,
    /// Bundles of the package, best first.
    pub candidates: Vec<CandidateVerdict>,
}

/// Result of a resolution for one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum CatalogOutcome {
    /// The catalog does not have the package.
    NoSuchPackage,
    /// The catalog has the package, but the rules exclude every bundle.
    NothingSuitable,
    /// The catalog could not be read, and could not have changed the choice.
    LeftOut {
        /// Reason why the catalog could not be read.
        reason: String,
    },
    /// The catalog could not be read, and its content could change the choice.
    Waiting {
        /// Reason why the catalog could not be read.
        reason: String,
    },
    /// Its best bundle lost to another catalog's.
    Outranked {
        /// Its best bundle.
        bundle: BundleName,
        /// The catalog that won.
        by: CatalogName,
    },
    /// Its best bundle is ignored: the extension is installed from another catalog and stays with it.
    Elsewhere {
        /// Its best bundle.
        bundle: BundleName,
        /// The catalog that the extension is installed from.
        home: CatalogName,
    },
    /// Its best bundle waits until another catalog can be read.
    Held {
        /// Its best bundle.
        bundle: BundleName,
        /// The catalog that is waited for.
        by: CatalogName,
    },
    /// Its best bundle is as good as another catalog's; no rule decides.
    Tied {
        /// Its best bundle.
        bundle: BundleName,
    },
    /// Its best bundle was chosen, but cannot be installed.
    Refused {
        /// The bundle.
        bundle: BundleName,
    },
    /// Its best bundle was chosen.
    Chosen {
        /// The bundle.
        bundle: BundleName,
    },
}

/// Result of a resolution for one bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateVerdict {
    /// The bundle's name.
    pub bundle: BundleName,
    /// Version with release, if it parses.
    #[serde(serialize_with = "as_optional_text")]
    pub version: Option<VersionRelease>,
    /// First rule that excluded the bundle; none only for the chosen bundle.
    pub ruled_out: Option<Rule>,
    /// Least number of upgrades through the visible channels from the installed bundle: 0 for the installed bundle, 1
    /// for a direct successor. None if no upgrades lead there, or if nothing is installed.
    pub steps: Option<usize>,
    /// Predecessor on a shortest path; none for a direct successor.
    pub via: Option<BundleName>,
}

/// Rules that exclude a bundle, in the order in which they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The bundle is in none of the requested channels.
    NotInChannels,
    /// Its version is outside the requested range, or does not parse.
    OutOfRange,
    /// The bundle is not a successor of the installed one in the visible channels.
    NotSuccessor,
    /// The bundle is deprecated, and another suitable bundle of the catalog is not.
    Deprecated,
    /// Another suitable bundle of the catalog precedes it.
    Lower,
    /// The bundle is the best of its catalog, but the extension is installed from another catalog and stays there.
    OtherCatalog,
    /// The bundle is the best of its catalog, but a catalog that cannot be read could have a better one.
    Waiting,
    /// The bundle is the best of its catalog, but another catalog has precedence.
    Outranked,
    /// The bundle is the best of its catalog, but the best of another catalog is equally good.
    Tied,
    /// The bundle was chosen, but its version is not a semantic version.
    UnreadableVersion,
    /// The bundle was chosen, but nothing provides one of its dependencies.
    Dependency,
}

impl Rule {
    /// Returns why the rule excludes a bundle, in a few words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NotInChannels => "in none of the requested channels",
            Self::OutOfRange => "outside of the requested range",
            Self::NotSuccessor => "not a successor of the installed bundle",
            Self::Deprecated => "deprecated, unlike another suitable bundle",
            Self::Lower => "lower than another suitable bundle",
            Self::OtherCatalog => "the extension stays with another catalog",
            Self::Waiting => "waits for a catalog that cannot be read",
            Self::Outranked => "another catalog has precedence",
            Self::Tied => "ties with another catalog's bundle",
            Self::UnreadableVersion => "its version is invalid",
            Self::Dependency => "has unmet dependencies",
        }
    }
}

/// Remark beside the verdicts. `Display` is one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "note", rename_all = "camelCase")]
pub enum Note {
    /// The catalog that the extension was installed from is gone, disabled or no longer selected, so the extension may
    /// move to another.
    Moved {
        /// Former catalog.
        from: CatalogName,
        /// New catalog; none if no catalog has a suitable bundle.
        to: Option<CatalogName>,
    },
    /// A `skipRange` does not parse, so that it matches nothing.
    UnreadableSkipRange {
        /// The catalog.
        catalog: CatalogName,
        /// The channel.
        channel: String,
        /// The entry.
        entry: BundleName,
        /// The range as written.
        range: String,
        /// Defect of the property.
        reason: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use olm_version::go_quote as quote;
        match self {
            Self::Moved { from, to } => {
                write!(
                    f,
                    "Catalog {} of the installed bundle is deleted, disabled or no longer selected",
                    quote(from)
                )?;
                match to {
                    Some(to) => write!(f, ", so the extension moves to catalog {}", quote(to)),
                    None => Ok(()),
                }
            }
            Self::UnreadableSkipRange {
                catalog,
                channel,
                entry,
                range,
                reason,
            } => write!(
                f,
                "The skipRange {} of {entry} in channel {} of catalog {} does not parse and matches nothing: {reason}",
                quote(range),
                quote(channel),
                quote(catalog)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Rule;

    #[test]
    fn every_rule_has_words_of_its_own() {
        let rules = [
            Rule::NotInChannels,
            Rule::OutOfRange,
            Rule::NotSuccessor,
            Rule::Deprecated,
            Rule::Lower,
            Rule::OtherCatalog,
            Rule::Waiting,
            Rule::Outranked,
            Rule::Tied,
            Rule::UnreadableVersion,
            Rule::Dependency,
        ];
        let texts: BTreeSet<&str> = rules.into_iter().map(Rule::text).collect();
        assert_eq!(texts.len(), rules.len());
        assert_eq!(Rule::Lower.text(), "lower than another suitable bundle");
    }
}
