//! A whole resolution.

use crate::choose::{Choice, choose, dependency, not_one};
use crate::facts::{Fact, Facts};
use crate::field::Field;
use crate::outcome::{Verdict, explanation};
use crate::question::Question;
use crate::{
    CatalogInput, CatalogOutcome, DeprecationInfo, Request, Resolution, ResolveError, Rule, Trouble, hint,
};
use olm_version::VersionRelease;

/// Chooses the bundle for `request` from `catalogs`.
///
/// With [`Selection::Ours`](crate::Selection::Ours) the answer does not depend on the order of `catalogs`.
///
/// # Errors
/// [`ResolveError`] when there is no bundle, more than one, or not enough known to choose.
pub fn resolve(request: &Request, catalogs: &[CatalogInput]) -> Result<Resolution, ResolveError> {
    let question = Question::new(request, None)?;
    let field = Field::new(request, catalogs);
    let choice = match choose(&field, &question) {
        Ok(choice) => choice,
        Err(trouble) => {
            let explanation = explanation(&field, &question, &Verdict::None(&trouble));
            let hint = hint::text(&field, &question, &trouble);
            return Err(ResolveError::new(trouble, hint, explanation));
        }
    };
    match installable(&field, &choice, request) {
        Ok(found) => Ok(resolution(&field, &question, choice, &found)),
        Err((trouble, rule)) => {
            let explanation = explanation(&field, &question, &Verdict::Refused(choice, rule));
            let hint = hint::text(&field, &question, &trouble);
            Err(ResolveError::new(trouble, hint, explanation))
        }
    }
}

/// The chosen bundle and the facts about it.
pub(crate) struct Found<'f, 'a> {
    pub(crate) facts: &'f Facts<'a>,
    pub(crate) fact: &'f Fact<'a>,
    pub(crate) version: &'f VersionRelease,
}

/// Returns the bundle of `choice`, unless a rule forbids its installation.
pub(crate) fn installable<'f, 'a>(
    field: &'f Field<'a>,
    choice: &Choice,
    request: &Request,
) -> Result<Found<'f, 'a>, (Trouble, Rule)> {
    let found = field
        .facts
        .get(choice.winner)
        .and_then(|facts| Some((facts, facts.bundles.get(choice.bundle)?)));
    let Some((facts, fact)) = found else {
        return Err((not_one(request, &[]), Rule::Lower));
    };
    let bundle = fact.bundle.name.clone();
    match (
        &fact.version,
        dependency(request.selection, &fact.bundle.properties),
    ) {
        (Ok(version), None) => Ok(Found { facts, fact, version }),
        (Err(source), _) => Err((
            Trouble::BundleVersion {
                bundle,
                source: source.clone(),
            },
            Rule::UnreadableVersion,
        )),
        (Ok(_), Some(property)) => Err((
            Trouble::Dependency {
                bundle,
                property: property.type_.clone(),
            },
            Rule::Dependency,
        )),
    }
}

fn resolution(
    field: &Field<'_>,
    question: &Question<'_>,
    choice: Choice,
    found: &Found<'_, '_>,
) -> Resolution {
    let Found { facts, fact, version } = *found;
    let lender = field.facts.get(choice.deprecation).unwrap_or(facts);
    let explanation = explanation(field, question, &Verdict::Chosen(choice));
    let left_out = explanation.catalogs.iter().filter_map(|catalog| {
        let CatalogOutcome::LeftOut { reason } = &catalog.outcome else {
            return None;
        };
        Some((catalog.name.clone(), reason.clone()))
    });
    Resolution {
        catalog: facts.name().to_owned(),
        bundle: fact.bundle.name.clone(),
        image: fact.bundle.image.clone(),
        version: version.clone(),
        properties: fact.bundle.properties.clone(),
        deprecation: DeprecationInfo::of(lender.content),
        left_out: left_out.collect(),
        moved_from: field.left_home(question).map(ToOwned::to_owned),
        explanation,
    }
}
