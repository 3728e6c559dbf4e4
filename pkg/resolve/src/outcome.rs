//! From what is known to the explanation of it.

use crate::candidates::Candidate;
use crate::field::Field;
use crate::{CatalogExplanation, CatalogInput, CatalogOutcome, Explanation, Trouble};
use std::cmp::Reverse;

/// What is to be said of the catalogs that have the package.
pub(crate) enum Outcomes<'a> {
    Chosen { catalog: &'a str },
    Tied { catalogs: &'a [String] },
    Undecided,
}

impl<'a> Outcomes<'a> {
    /// What `trouble` says of them.
    pub(crate) fn of_trouble(trouble: &'a Trouble) -> Self {
        match trouble {
            Trouble::NotOne { tied, .. } if !tied.is_empty() => Self::Tied { catalogs: tied },
            _ => Self::Undecided,
        }
    }

    fn of(&self, name: &str, best: Option<&Candidate<'_>>) -> CatalogOutcome {
        let Some(best) = best else {
            return CatalogOutcome::NothingSuitable;
        };
        let bundle = best.bundle.name.clone();
        match self {
            Self::Chosen { catalog } if *catalog == name => CatalogOutcome::Chosen { bundle },
            Self::Chosen { catalog } => CatalogOutcome::Outranked {
                bundle,
                by: (*catalog).to_owned(),
            },
            Self::Tied { catalogs } => match catalogs.first() {
                Some(by) if !catalogs.iter().any(|tied| tied == name) => CatalogOutcome::Outranked {
                    bundle,
                    by: by.clone(),
                },
                _ => CatalogOutcome::Tied { bundle },
            },
            Self::Undecided => CatalogOutcome::Tied { bundle },
        }
    }
}

/// The reasoning about every catalog of `field`.
pub(crate) fn explanation(field: &Field<'_>, outcomes: &Outcomes<'_>) -> Explanation {
    let entry = |catalog: &CatalogInput, outcome, candidates| CatalogExplanation {
        name: catalog.name.clone(),
        priority: catalog.priority,
        outcome,
        candidates,
    };
    let mut catalogs = Vec::new();
    for judged in &field.judged {
        let outcome = outcomes.of(&judged.catalog.name, judged.best());
        catalogs.push(entry(judged.catalog, outcome, judged.verdicts()));
    }
    for catalog in &field.without {
        catalogs.push(entry(catalog, CatalogOutcome::NoSuchPackage, Vec::new()));
    }
    for unread in &field.unread {
        let reason = unread.reason.clone();
        let outcome = match outcomes {
            Outcomes::Chosen { .. } => CatalogOutcome::LeftOut { reason },
            _ => CatalogOutcome::Waiting { reason },
        };
        catalogs.push(entry(unread.catalog, outcome, Vec::new()));
    }
    catalogs.sort_by(|a, b| (Reverse(a.priority), &a.name).cmp(&(Reverse(b.priority), &b.name)));
    Explanation { catalogs }
}
