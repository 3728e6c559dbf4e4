//! Dependencies of a bundle: `olm.gvk.required`, `olm.package.required` and `olm.constraint`.
//!
//! [`parse`] reads a bundle's properties, [`unmet`] compares the result with installed packages and served APIs.
//! Dependencies are reported, never installed: each unmet requirement names the bundles that would satisfy it
//! ([`MissingDependency`]). All input comes from catalogs, so size, count, depth and the cost of expressions are
//! bounded.

mod cel;
mod environment;
mod evaluate;
mod parse;

use std::collections::BTreeSet;
use std::fmt;

use olm_text::name::PackageName;
use olm_version::{SkipRange, Version};
use serde_json::Value;

pub use environment::{apis, group_versions, provided_apis, required_apis};
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

/// Dependency of a bundle.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// Author's message for an unmet requirement; may be empty.
    pub message: String,
    /// Condition that must hold.
    pub test: Test,
}

/// Condition of a [`Requirement`].
#[derive(Clone, Debug)]
pub enum Test {
    /// The API is served.
    Gvk(Gvk),
    /// A version of the package is installed.
    Package(PackageRange),
    /// An installed bundle has properties that satisfy the expression.
    Cel(CelRule),
    /// Every requirement must be met.
    All(Vec<Requirement>),
    /// Some requirement must be met.
    Any(Vec<Requirement>),
    /// The requirements must not be met.
    Not(Vec<Requirement>),
}

/// Versions of a package.
#[derive(Clone, Debug)]
pub struct PackageRange {
    /// The package.
    pub name: PackageName,
    /// The range as written; it follows the grammar of skipRange.
    pub range: String,
    parsed: SkipRange,
}

impl PackageRange {
    /// Returns true if the range contains `version`.
    pub fn admits(&self, version: &Version) -> bool {
        self.parsed.matches(version)
    }
}

/// A CEL expression over `properties`.
#[derive(Clone, Debug)]
pub struct CelRule(cel::Rule);

/// Installed packages and served APIs that requirements are compared with.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Installed bundles, without the one being resolved.
    pub installed: Vec<InstalledBundle>,
    /// APIs that the cluster serves, and those that the bundle being resolved provides.
    pub served: BTreeSet<Gvk>,
}

/// An installed bundle.
#[derive(Clone, Debug)]
pub struct InstalledBundle {
    /// Its package.
    pub package: PackageName,
    /// Its version.
    pub version: Version,
    /// Its properties, each `{"type": …, "value": …}`.
    pub properties: Vec<Value>,
}

/// A requirement that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Phrase that names the requirement and what exists instead.
    pub text: String,
    /// Packages and APIs that would satisfy the requirement.
    pub missing: Vec<MissingDependency>,
}

/// Package or API to look for in catalogs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingDependency {
    /// A bundle that provides the API.
    Gvk(Gvk),
    /// The package, in versions of the range.
    Package {
        /// The package.
        name: PackageName,
        /// The range, as written.
        range: String,
    },
}

/// Shows the requirement on one line.
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
