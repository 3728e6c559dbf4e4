//! Why the resolver chooses a bundle, or none: catalog by catalog.

use olm_resolve::{CandidateVerdict, CatalogExplanation, Explanation};

use crate::phrase;
use crate::style::Paint;

/// Maximum number of bundles of a catalog that are named by rank alone.
const BEST: usize = 8;
/// Maximum number of directly reachable bundles that are named.
const REACHABLE: usize = 8;

/// What a resolution says of one catalog.
#[derive(Debug)]
pub(crate) struct CatalogChoice {
    /// Name of the catalog.
    pub(crate) name: String,
    /// Its priority.
    pub(crate) priority: i32,
    /// What became of it, and how good that is.
    pub(crate) outcome: (Paint, String),
    /// Its named bundles, highest first.
    pub(crate) candidates: Vec<Candidate>,
    /// Number of bundles that are not named.
    pub(crate) more: usize,
}

/// A bundle with the rule that excludes it.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its version; none if it cannot be read.
    pub(crate) version: Option<String>,
    /// Its name.
    pub(crate) bundle: String,
    /// The rule in words; none for the chosen bundle.
    pub(crate) ruled_out: Option<&'static str>,
    /// The path from the installed bundle; empty if there is none.
    pub(crate) path: String,
}

impl CatalogChoice {
    /// Reads the explanation of a resolution; `all` names every bundle that `is_wanted`, else only the best and the nearest.
    pub(crate) fn of(
        explanation: &Explanation,
        all: bool,
        is_wanted: impl Fn(&CandidateVerdict) -> bool,
    ) -> Vec<Self> {
        let catalogs = explanation.catalogs.iter();
        catalogs
            .map(|catalog| Self::new(catalog, all, &is_wanted))
            .collect()
    }

    fn new(catalog: &CatalogExplanation, all: bool, is_wanted: impl Fn(&CandidateVerdict) -> bool) -> Self {
        let wanted: Vec<&CandidateVerdict> = catalog
            .candidates
            .iter()
            .filter(|candidate| is_wanted(candidate))
            .collect();
        let mut reachable = 0;
        let mut is_named = |(rank, candidate): &(usize, &&CandidateVerdict)| {
            let near = candidate.ruled_out.is_none() || candidate.steps.is_some_and(|steps| steps <= 1);
            reachable += usize::from(near);
            all || *rank < BEST || (near && reachable <= REACHABLE)
        };
        let named = wanted.iter().enumerate().filter(|item| is_named(item));
        let candidates: Vec<Candidate> = named.map(|(_, candidate)| Candidate::new(candidate)).collect();
        Self {
            name: catalog.name.to_string(),
            priority: catalog.priority,
            outcome: phrase::outcome(&catalog.outcome),
            more: wanted.len() - candidates.len(),
            candidates,
        }
    }
}

impl Candidate {
    fn new(candidate: &CandidateVerdict) -> Self {
        Self {
            version: candidate.version.as_ref().map(ToString::to_string),
            bundle: candidate.bundle.to_string(),
            ruled_out: candidate.ruled_out.map(phrase::rule),
            path: phrase::path(candidate),
        }
    }
}
