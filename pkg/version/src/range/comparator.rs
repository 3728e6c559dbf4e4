//! Comparator of a range: an operator, a version, and the given parts of that version.

use super::grammar::{PartialVersion, Term};
use crate::parse::check_prerelease;
use semver::{BuildMetadata, Prerelease, Version};
use std::cmp::Ordering;

/// Operator and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comparator {
    operator: Operator,
    base: Version,
    given: Given,
}

/// Parts of a version that are given as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// `*`.
    None,
    /// `1`, `1.x`.
    Major,
    /// `1.2`, `1.2.x`.
    Minor,
    /// `1.2.3`.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

impl Comparator {
    /// Returns the comparator of `term`; none if its version is invalid.
    pub(super) fn new(term: &Term<'_>) -> Option<Self> {
        let operator = match term.operator {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterOrEqual,
            "<=" | "=<" => Operator::LessOrEqual,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        let (base, given) = base(&term.version)?;
        Some(Self {
            operator,
            base,
            given,
        })
    }

    /// Returns true if the comparator's version has a pre-release.
    pub(super) fn has_prerelease(&self) -> bool {
        !self.base.pre.is_empty()
    }

    /// Returns true if `version` matches the comparator. The group decides on pre-releases.
    pub(super) fn matches(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.base);
        match self.operator {
            Operator::Equal if self.given == Given::All => order == Ordering::Equal,
            Operator::Equal | Operator::Tilde => self.within_tilde(version, order),
            Operator::NotEqual => self.differs(version, order),
            Operator::Greater => self.above(version, order),
            Operator::Less => order == Ordering::Less,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::LessOrEqual => self.at_most(version, order),
            Operator::Caret => self.within_caret(version, order),
        }
    }

    fn same_major(&self, version: &Version) -> bool {
        version.major == self.base.major
    }

    fn same_minor(&self, version: &Version) -> bool {
        self.same_major(version) && version.minor == self.base.minor
    }

    /// Matches versions from the base up with the given parts, except the patch, unchanged. Zero and `*` admit all
    /// above.
    fn within_tilde(&self, version: &Version, order: Ordering) -> bool {
        let base = &self.base;
        let zero = (base.major, base.minor, base.patch) == (0, 0, 0);
        order != Ordering::Less
            && match self.given {
                Given::None => true,
                Given::All if zero => true,
                Given::Major => self.same_major(version),
                Given::Minor | Given::All => self.same_minor(version),
            }
    }

    fn differs(&self, version: &Version, order: Ordering) -> bool {
        match self.given {
            Given::All | Given::None => order != Ordering::Equal,
            Given::Major => !self.same_major(version),
            // A pre-release of the excluded minor is told apart by the pre-release alone.
            Given::Minor => !self.same_minor(version) || version.pre != self.base.pre,
        }
    }

    /// Matches versions above the base: `>1` starts at 2.0.0 and `>1.2` at 1.3.0.
    fn above(&self, version: &Version, order: Ordering) -> bool {
        match self.given {
            Given::All | Given::None => order == Ordering::Greater,
            Given::Major => version.major > self.base.major,
            Given::Minor => (version.major, version.minor) > (self.base.major, self.base.minor),
        }
    }

    /// Matches versions up to the base: `<=1` includes 1.x, `<=1.2` includes 1.2.x, and `<=*` is upstream's `<=0.0`.
    fn at_most(&self, version: &Version, order: Ordering) -> bool {
        match self.given {
            Given::All => order != Ordering::Greater,
            Given::Major => version.major <= self.base.major,
            Given::Minor | Given::None => {
                (version.major, version.minor) <= (self.base.major, self.base.minor)
            }
        }
    }

    /// Matches versions from the base up with the first number that is not zero unchanged.
    fn within_caret(&self, version: &Version, order: Ordering) -> bool {
        let base = &self.base;
        if order == Ordering::Less || !self.same_major(version) {
            return false;
        }
        if base.major > 0 || self.given == Given::Major {
            true
        } else if base.minor > 0 || self.given == Given::Minor {
            version.minor == base.minor
        } else {
            (version.minor, version.patch) == (base.minor, base.patch)
        }
    }
}

/// Returns the number, or none for a wildcard.
fn number(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !matches!(*text, "x" | "X" | "*"))
}

/// Returns the lowest version of a partial version, and its given parts.
fn base(shape: &PartialVersion<'_>) -> Option<(Version, Given)> {
    let (numbers, given) = match (
        number(Some(shape.major)),
        number(shape.minor),
        number(shape.patch),
    ) {
        (None, ..) => (["0"; 3], Given::None),
        (Some(major), None, _) => ([major, "0", "0"], Given::Major),
        (Some(major), Some(minor), None) => ([major, minor, "0"], Given::Minor),
        (Some(major), Some(minor), Some(patch)) => ([major, minor, patch], Given::All),
    };
    let [major, minor, patch] = numbers.map(|text| text.parse::<u64>().ok());
    let pre = shape.pre.unwrap_or_default();
    let sound = pre.is_empty() || pre.split('.').all(|part| check_prerelease(part).is_ok());
    let version = Version {
        major: major?,
        minor: minor?,
        patch: patch?,
        pre: Prerelease::new(pre).ok().filter(|_| sound)?,
        build: BuildMetadata::EMPTY,
    };
    Some((version, given))
}
