//! Phrases for the resolver's results in tables.

use olm_resolve::{CandidateVerdict, CatalogOutcome};
use olm_text::counted;

use crate::style::Paint;

/// Describes the result for a catalog.
pub(crate) fn outcome(outcome: &CatalogOutcome) -> (Paint, String) {
    match outcome {
        CatalogOutcome::NoSuchPackage => (Paint::Dim, "does not have the package".to_owned()),
        CatalogOutcome::NothingSuitable => (Paint::Bad, "nothing suitable".to_owned()),
        CatalogOutcome::LeftOut { reason } => (Paint::Warn, format!("left out: {reason}")),
        CatalogOutcome::Waiting { reason } => (Paint::Bad, format!("cannot be read: {reason}")),
        CatalogOutcome::Outranked { bundle, by } => {
            (Paint::Dim, format!("its best, {bundle}, lost to catalog {by}"))
        }
        CatalogOutcome::Elsewhere { bundle, home } => (
            Paint::Dim,
            format!("its best, {bundle}, is ignored: installed from catalog {home}"),
        ),
        CatalogOutcome::Held { bundle, by } => {
            (Paint::Warn, format!("its best, {bundle}, waits for catalog {by}"))
        }
        CatalogOutcome::Tied { bundle } => (
            Paint::Bad,
            format!("its best, {bundle}, ties with another catalog's bundle"),
        ),
        CatalogOutcome::Refused { bundle } => {
            (Paint::Bad, format!("{bundle} chosen, but cannot be installed"))
        }
        CatalogOutcome::Chosen { bundle } => (Paint::Good, format!("{bundle} chosen")),
    }
}

/// Describes the path from the installed bundle; empty if there is none, or if nothing is installed.
pub(crate) fn path(verdict: &CandidateVerdict) -> String {
    match (verdict.steps, &verdict.via) {
        (None, _) => String::new(),
        (Some(0), _) => "installed".to_owned(),
        (Some(1), _) => "directly".to_owned(),
        (Some(steps), Some(via)) => format!("{}, last from {via}", counted(steps, "upgrade")),
        (Some(steps), None) => counted(steps, "upgrade"),
    }
}
