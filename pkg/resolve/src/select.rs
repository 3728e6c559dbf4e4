//! Resolution of a request.

use crate::choose::{Choice, Chosen, choose, installable};
use crate::known_catalogs::KnownCatalogs;
use crate::outcome::{Verdict, explanation};
use crate::question::Question;
use crate::{CatalogInput, CatalogOutcome, DeprecationInfo, Request, Resolution, ResolveError, hint};

/// Chooses the bundle for `request` from `catalogs`.
///
/// With [`Selection::Ours`](crate::Selection::Ours) the result does not depend on the order of `catalogs`.
///
/// # Errors
/// [`ResolveError`] if there is no bundle, several, or too little known to choose.
pub fn resolve(request: &Request, catalogs: &[CatalogInput]) -> Result<Resolution, ResolveError> {
    let question = Question::new(request, None)?;
    let known = KnownCatalogs::new(request, catalogs);
    let choice = match choose(&known, &question) {
        Ok(choice) => choice,
        Err(trouble) => {
            let explanation = explanation(&known, &question, &Verdict::None(&trouble));
            let hint = hint::text(&known, &question, &trouble);
            return Err(ResolveError::new(trouble, hint, explanation));
        }
    };
    match installable(&known, &choice, request) {
        Ok(chosen) => Ok(resolution(&known, &question, choice, &chosen)),
        Err((trouble, rule)) => {
            let explanation = explanation(&known, &question, &Verdict::Refused(choice, rule));
            let hint = hint::text(&known, &question, &trouble);
            Err(ResolveError::new(trouble, hint, explanation))
        }
    }
}

fn resolution(
    known: &KnownCatalogs<'_>,
    question: &Question<'_>,
    choice: Choice,
    chosen: &Chosen<'_, '_>,
) -> Resolution {
    let Chosen {
        facts,
        candidate,
        version,
    } = *chosen;
    let lender = known.facts.get(choice.deprecation).unwrap_or(facts);
    let explanation = explanation(known, question, &Verdict::Chosen(choice));
    let left_out = explanation.catalogs.iter().filter_map(|catalog| {
        let CatalogOutcome::LeftOut { reason } = &catalog.outcome else {
            return None;
        };
        Some((catalog.name.clone(), reason.clone()))
    });
    Resolution {
        catalog: facts.name().to_owned(),
        bundle: candidate.bundle.name.clone(),
        image: candidate.bundle.image.clone(),
        version: version.clone(),
        properties: candidate.bundle.properties.clone(),
        deprecation: DeprecationInfo::of(lender.content),
        left_out: left_out.collect(),
        moved_from: known.left_home(question).map(ToOwned::to_owned),
        explanation,
    }
}
