//! What a bundle needs of others: `olm.gvk.required`, `olm.package.required` and `olm.constraint`.
//!
//! [`parse`] reads a bundle's properties, [`unmet`] holds the result against what is installed and served. Nothing
//! is ever installed because of it: what is unmet is said, with what would satisfy it ([`Want`]), so that somebody can
//! look for it. Everything comes from catalogs, so that size, count, depth and the cost of expressions are bounded.

mod cel;
mod environment;
mod evaluate;
mod parse;

use std::collections::BTreeSet;
use std::fmt;

use olm_version::{SkipRange, Version};
use serde_json::Value;

pub use environment::{apis, brought, group_versions};
pub use evaluate::unmet;
pub(crate) use parse::TYPES;
pub use parse::{ConstraintError, parse};

/// A kind of API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The core group has no name.
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{} {}", self.version, self.kind)
    }
}

/// Something that a bundle needs.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// What its author says when it is unmet; may be empty.
    pub message: String,
    /// What it asks for.
    pub test: Test,
}

/// What a [`Requirement`] asks for.
#[derive(Clone, Debug)]
pub enum Test {
    /// The API is served.
    Gvk(Gvk),
    /// A version of the package is installed.
    Package(PackageRange),
    /// An installed bundle has properties that satisfy the expression.
    Cel(Rule),
    /// All of them.
    All(Vec<Requirement>),
    /// At least one of them.
    Any(Vec<Requirement>),
    /// None of them.
    Not(Vec<Requirement>),
}

/// Versions of a package.
#[derive(Clone, Debug)]
pub struct PackageRange {
    /// The package.
    pub name: String,
    /// The range as written; it follows the grammar of skipRange.
    pub range: String,
    parsed: SkipRange,
}

impl PackageRange {
    /// Whether the range has this version.
    pub fn admits(&self, version: &Version) -> bool {
        self.parsed.matches(version)
    }
}

/// A CEL expression over `properties`.
#[derive(Clone, Debug)]
pub struct Rule(cel::Rule);

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The bundles that are installed, without the one in question.
    pub installed: Vec<InstalledBundle>,
    /// The APIs that the cluster serves, and those that the bundle in question brings itself.
    pub served: BTreeSet<Gvk>,
}

/// An installed bundle.
#[derive(Clone, Debug)]
pub struct InstalledBundle {
    /// Its package.
    pub package: String,
    /// Its version.
    pub version: Version,
    /// Its properties, each `{"type": …, "value": …}`.
    pub properties: Vec<Value>,
}

/// A requirement that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What is needed and what there is instead, as one phrase.
    pub text: String,
    /// What would help if it were installed.
    pub wants: Vec<Want>,
}

/// Something that could be looked for in catalogs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// A bundle that brings the API.
    Gvk(Gvk),
    /// The package, in versions of the range.
    Package {
        /// The package.
        name: String,
        /// The range, as written.
        range: String,
    },
}

/// In one line: what is asked for.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, head: &str, all: &[Self]| {
            write!(f, "{head} (")?;
            for (at, one) in all.iter().enumerate() {
                write!(f, "{}{one}", if at == 0 { "" } else { "; " })?;
            }
            write!(f, ")")
        };
        match &self.test {
            Test::Gvk(gvk) => write!(f, "the API {gvk}"),
            Test::Package(package) => write!(
                f,
                "package {} in a version {}",
                olm_version::go_quote(&package.name),
                olm_version::go_quote(&package.range)
            ),
            Test::Cel(rule) => write!(f, "a bundle with {}", rule.0.source()),
            Test::All(all) => list(f, "all of", all),
            Test::Any(all) => list(f, "one of", all),
            Test::Not(all) => list(f, "none of", all),
        }
    }
}

#[cfg(test)]
mod tests;
