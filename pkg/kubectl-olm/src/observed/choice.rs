//! Why the resolver chooses a bundle, or none: catalog by catalog.

use olm_resolve::{CandidateVerdict, CatalogExplanation, Explanation};

use super::Listing;
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
    /// Its named bundles, highest first, each with the rule that excludes it and the path from the installed bundle.
    pub(crate) candidates: Listing,
    /// Number of bundles that are not named.
    pub(crate) more: usize,
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
        let candidates = Listing::new(
            "Bundles, highest version first",
            &["Version", "Bundle", "Ruled out", "Reachable"],
            named.map(|(_, candidate)| row(candidate)),
        );
        Self {
            name: catalog.name.to_string(),
            priority: catalog.priority,
            outcome: phrase::outcome(&catalog.outcome),
            more: wanted.len() - candidates.rows.len(),
            candidates,
        }
    }
}

fn row(candidate: &CandidateVerdict) -> (Paint, [String; 4]) {
    let (paint, verdict) = match candidate.ruled_out {
        None => (Paint::Good, "chosen"),
        Some(rule) => (Paint::Plain, rule.text()),
    };
    let version = candidate.version.as_ref().map(ToString::to_string);
    let cells = [
        version.unwrap_or_else(|| "unreadable".to_owned()),
        candidate.bundle.to_string(),
        verdict.to_owned(),
        phrase::path(candidate),
    ];
    (paint, cells)
}
