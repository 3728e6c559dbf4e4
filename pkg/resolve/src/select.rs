//! Resolution of a request.

use crate::choose::{Choice, Chosen, choose, installable};
use crate::held::held_back;
use crate::known_catalogs::KnownCatalogs;
use crate::outcome::{Verdict, explanation};
use crate::parsed_request::ParsedRequest;
use crate::{CatalogInput, CatalogOutcome, DeprecationInfo, Request, Resolution, ResolveError, hint};

/// Chooses the bundle for `request` from `catalogs`.
///
/// With [`Selection::Ours`](crate::Selection::Ours) the result does not depend on the order of `catalogs`.
///
/// # Errors
/// [`ResolveError`] if there is no bundle, several, or too little known to choose.
pub fn resolve(request: &Request, catalogs: &[CatalogInput]) -> Result<Resolution, ResolveError> {
    let parsed = ParsedRequest::new(request, None)?;
    let known = KnownCatalogs::new(request, catalogs);
    let choice = match choose(&known, &parsed) {
        Ok(choice) => choice,
        Err(cause) => {
            let explanation = explanation(&known, &parsed, &Verdict::None(&cause));
            let hint = hint::text(&known, &parsed, &cause);
            return Err(ResolveError::new(cause, hint, explanation));
        }
    };
    match installable(&known, &choice, request) {
        Ok(chosen) => Ok(resolution(&known, &parsed, choice, &chosen)),
        Err((cause, rule)) => {
            let explanation = explanation(&known, &parsed, &Verdict::Refused(choice, rule));
            let hint = hint::text(&known, &parsed, &cause);
            Err(ResolveError::new(cause, hint, explanation))
        }
    }
}

fn resolution(
    known: &KnownCatalogs<'_>,
    parsed: &ParsedRequest<'_>,
    choice: Choice,
    chosen: &Chosen<'_, '_>,
) -> Resolution {
    let Chosen {
        facts,
        candidate,
        version,
    } = *chosen;
    let deprecating = known.facts.get(choice.deprecation).unwrap_or(facts);
    let explanation = explanation(known, parsed, &Verdict::Chosen(choice));
    let left_out = explanation.catalogs.iter().filter_map(|catalog| {
        let CatalogOutcome::LeftOut { reason } = &catalog.outcome else {
            return None;
        };
        Some((catalog.name.clone(), reason.clone()))
    });
    Resolution {
        catalog: facts.name().clone(),
        bundle: candidate.bundle.name.clone().into(),
        image: candidate.bundle.image.clone().into(),
        version: version.clone(),
        properties: candidate.bundle.properties.clone(),
        min_kube_version: candidate
            .bundle
            .min_kube_version
            .as_deref()
            .map(ToOwned::to_owned),
        deprecation: DeprecationInfo::of(deprecating.content),
        left_out: left_out.collect(),
        moved_from: known.former_catalog(parsed).cloned(),
        held_back: held_back(known, parsed.request, version),
        explanation,
    }
}
