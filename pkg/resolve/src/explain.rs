//! Why a bundle was chosen, and why the others were not: one value for conditions, tools and tests.

use serde::Serialize;

/// The reasoning of one resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Every catalog that was asked, by priority, then name.
    pub catalogs: Vec<CatalogExplanation>,
}

impl Explanation {
    /// Notes that `rule` ruled out `bundle` of `catalog` after all.
    pub(crate) fn rule_out(&mut self, catalog: &str, bundle: &str, rule: Rule) {
        let candidates = self
            .catalogs
            .iter_mut()
            .filter(|c| c.name == catalog)
            .flat_map(|c| &mut c.candidates);
        for candidate in candidates.filter(|candidate| candidate.bundle == bundle) {
            candidate.ruled_out = Some(rule);
        }
    }
}

/// The reasoning about one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogExplanation {
    /// The catalog's name.
    pub name: String,
    /// Its priority; higher goes first.
    pub priority: i32,
    /// What came of it.
    pub outcome: CatalogOutcome,
    /// Every bundle of the package, best first.
    pub candidates: Vec<CandidateVerdict>,
}

/// What came of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum CatalogOutcome {
    /// It does not have the package.
    NoSuchPackage,
    /// It has the package, but every bundle was ruled out.
    NothingSuitable,
    /// It could not be read, and could not have changed the choice.
    LeftOut {
        /// Why it could not be read.
        reason: String,
    },
    /// It could not be read, and what it holds could change the choice.
    Waiting {
        /// Why it could not be read.
        reason: String,
    },
    /// Its best bundle lost to another catalog's.
    Outranked {
        /// Its best bundle.
        bundle: String,
        /// The catalog that won.
        by: String,
    },
    /// Its best bundle is as good as another catalog's; nothing decides.
    Tied {
        /// Its best bundle.
        bundle: String,
    },
    /// Its best bundle was chosen.
    Chosen {
        /// The bundle.
        bundle: String,
    },
}

/// What came of a bundle inside its catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateVerdict {
    /// The bundle's name.
    pub bundle: String,
    /// Its version (with release) where it reads.
    pub version: Option<String>,
    /// The first rule that ruled it out; none for the catalog's best.
    pub ruled_out: Option<Rule>,
}

/// What can rule a bundle out, in the order of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// It is in none of the requested channels.
    NotInChannels,
    /// Its version is outside the requested range, or does not read.
    OutOfRange,
    /// No edge of the visible channels leads to it from the installed bundle.
    NotSuccessor,
    /// It is deprecated, and another suitable bundle is not.
    Deprecated,
    /// Another suitable bundle goes before it.
    Lower,
    /// It was chosen, but needs something that nothing provides.
    Dependency,
}
