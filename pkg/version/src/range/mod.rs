//! Range grammar of `spec.source.catalog.version`.
//!
//! A range consists of groups joined by `||`; a group consists of comparators separated by spaces or commas. A version
//! may omit its minor and patch numbers or give them as `x`, `X` or `*`. `A - B` means `>= A, <= B`. A group matches a
//! pre-release only if one of its comparators has a pre-release. Build metadata and releases are ignored.

mod comparator;
mod grammar;

use crate::VersionRelease;
use comparator::Comparator;
use std::fmt;
use std::str::FromStr;

/// A range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange {
    text: String,
    groups: Vec<Group>,
}

/// Comparators that must all match.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    comparators: Vec<Comparator>,
    admits_prerelease: bool,
}

/// Reason why a range cannot be parsed. Terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A part between `||` does not follow the grammar.
    #[error("improper constraint: {}", crate::go_quote(text))]
    Improper {
        /// The part, with hyphen ranges rewritten.
        text: String,
    },
    /// A version in the range is invalid.
    #[error("constraint parser error")]
    Version,
}

impl VersionRange {
    /// Returns true if the range contains `version`.
    pub fn matches(&self, version: &VersionRelease) -> bool {
        let version = &version.version;
        self.groups.iter().any(|group| {
            (version.pre.is_empty() || group.admits_prerelease)
                && group
                    .comparators
                    .iter()
                    .all(|comparator| comparator.matches(version))
        })
    }

    /// Returns the range as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for VersionRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let rewritten = grammar::rewrite_hyphens(text);
        let groups = rewritten
            .split("||")
            .map(|group| {
                let terms = grammar::terms(group).ok_or_else(|| RangeError::Improper {
                    text: group.to_owned(),
                })?;
                let comparators = terms
                    .iter()
                    .map(|term| Comparator::new(term).ok_or(RangeError::Version))
                    .collect::<Result<Vec<_>, _>>()?;
                let admits_prerelease = comparators.iter().any(Comparator::has_prerelease);
                Ok(Group {
                    comparators,
                    admits_prerelease,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            groups,
        })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
