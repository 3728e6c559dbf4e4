//! Explanation of a resolution.

use crate::choose::Choice;
use crate::facts::CatalogFacts;
use crate::known_catalogs::KnownCatalogs;
use crate::parsed_request::ParsedRequest;
use crate::reach;
use crate::{
    CandidateVerdict, CatalogExplanation, CatalogInput, CatalogOutcome, Explanation, FailureCause, Note, Rule,
};
use olm_text::name::{BundleName, CatalogName};
use std::cmp::Reverse;

/// Result of the choice between the catalogs.
pub(crate) enum Verdict<'t> {
    /// The choice can be installed.
    Chosen(Choice),
    /// The choice would be installed, but the rule forbids it.
    Refused(Choice, Rule),
    /// The choice failed.
    None(&'t FailureCause),
}

impl Verdict<'_> {
    /// Returns the result of a catalog with the best bundle `bundle`, and the rule by which that bundle lost.
    fn of(
        &self,
        known: &KnownCatalogs<'_>,
        at: usize,
        bundle: BundleName,
        home: Option<&CatalogName>,
    ) -> (CatalogOutcome, Option<Rule>) {
        let name = |at: usize| {
            known
                .facts
                .get(at)
                .map(CatalogFacts::name)
                .cloned()
                .unwrap_or_default()
        };
        let elsewhere = home.filter(|home| **home != name(at)).cloned();
        let lost = |by: CatalogName| match elsewhere.clone() {
            Some(home) => (
                CatalogOutcome::Elsewhere {
                    bundle: bundle.clone(),
                    home,
                },
                Some(Rule::OtherCatalog),
            ),
            None => (
                CatalogOutcome::Outranked {
                    bundle: bundle.clone(),
                    by,
                },
                Some(Rule::Outranked),
            ),
        };
        match self {
            Self::Chosen(choice) if choice.winner == at => (CatalogOutcome::Chosen { bundle }, None),
            Self::Refused(choice, rule) if choice.winner == at => {
                (CatalogOutcome::Refused { bundle }, Some(*rule))
            }
            Self::Chosen(choice) | Self::Refused(choice, _) => lost(name(choice.winner)),
            Self::None(_) if elsewhere.is_some() => lost(CatalogName::default()),
            Self::None(FailureCause::NoSingleBundle { tied, .. }) if !tied.contains(&name(at)) => {
                lost(tied.first().cloned().unwrap_or_default())
            }
            Self::None(FailureCause::UnreadCatalog { catalog, .. }) => (
                CatalogOutcome::Held {
                    bundle,
                    by: catalog.clone(),
                },
                Some(Rule::Waiting),
            ),
            Self::None(_) => (CatalogOutcome::Tied { bundle }, Some(Rule::Tied)),
        }
    }
}

/// Returns the reasoning about every catalog of `known`.
pub(crate) fn explanation(
    known: &KnownCatalogs<'_>,
    parsed: &ParsedRequest<'_>,
    verdict: &Verdict<'_>,
) -> Explanation {
    let entry = |catalog: &CatalogInput, outcome, candidates| CatalogExplanation {
        name: catalog.name.clone(),
        priority: catalog.priority,
        outcome,
        candidates,
    };
    let home = known.home(parsed);
    let mut catalogs = Vec::new();
    for (at, facts) in known.facts.iter().enumerate() {
        let best = parsed.query(facts).best(facts);
        let bundle = best
            .and_then(|best| facts.bundles.get(best))
            .map(|candidate| candidate.bundle.name.clone().into());
        let (outcome, lost) = match bundle {
            None => (CatalogOutcome::NothingSuitable, None),
            Some(bundle) => verdict.of(known, at, bundle, home),
        };
        catalogs.push(entry(
            facts.catalog,
            outcome,
            candidates(facts, parsed, best, lost),
        ));
    }
    for catalog in &known.without {
        catalogs.push(entry(catalog, CatalogOutcome::NoSuchPackage, Vec::new()));
    }
    let awaited = matches!(verdict, Verdict::None(_));
    for unread in &known.unread {
        let reason = unread.reason.clone();
        let outcome = if awaited && home.is_none_or(|home| *home == unread.catalog.name) {
            CatalogOutcome::Waiting { reason }
        } else {
            CatalogOutcome::LeftOut { reason }
        };
        catalogs.push(entry(unread.catalog, outcome, Vec::new()));
    }
    catalogs.sort_by(|a, b| (Reverse(a.priority), &a.name).cmp(&(Reverse(b.priority), &b.name)));
    Explanation {
        catalogs,
        notes: notes(known, parsed, verdict),
    }
}

/// Returns the verdict on every bundle of a catalog whose best bundle, at `best`, lost by the rule `lost`.
fn candidates(
    facts: &CatalogFacts<'_>,
    parsed: &ParsedRequest<'_>,
    best: Option<usize>,
    lost: Option<Rule>,
) -> Vec<CandidateVerdict> {
    let query = parsed.query(facts);
    let installed = parsed.request.installed.as_ref();
    let steps = reach::steps(facts, &query, installed.map(|installed| installed.name.as_str()));
    let best_deprecated = best
        .and_then(|best| facts.bundles.get(best))
        .is_some_and(|best| best.deprecated);
    let verdict = |(at, candidate): (usize, &crate::facts::Candidate<'_>)| {
        let step = steps.get(at).copied().flatten();
        let inside = || match best {
            Some(best) if best == at => lost,
            _ if candidate.deprecated && !best_deprecated => Some(Rule::Deprecated),
            _ => Some(Rule::Lower),
        };
        CandidateVerdict {
            bundle: candidate.bundle.name.clone().into(),
            version: candidate.version.as_ref().ok().cloned(),
            ruled_out: query.rule(candidate).or_else(inside),
            steps: step.map(|step| step.count),
            via: step
                .and_then(|step| facts.bundles.get(step.via?))
                .map(|via| via.bundle.name.clone().into()),
        }
    };
    facts.bundles.iter().enumerate().map(verdict).collect()
}

fn notes(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>, verdict: &Verdict<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(from) = known.former_catalog(parsed) {
        let to = match verdict {
            Verdict::Chosen(choice) | Verdict::Refused(choice, _) => known.facts.get(choice.winner),
            Verdict::None(_) => None,
        };
        notes.push(Note::Moved {
            from: from.clone(),
            to: to.map(|facts| facts.name().clone()),
        });
    }
    let mut catalogs: Vec<&CatalogFacts<'_>> = known.facts.iter().collect();
    catalogs.sort_by_key(|facts| (Reverse(facts.catalog.priority), facts.name()));
    notes.extend(catalogs.into_iter().flat_map(|facts| facts.notes.iter().cloned()));
    notes
}
