//! One resolution from end to end.

use crate::candidates::Question;
use crate::field::{Choice, Field, not_one};
use crate::outcome::{Outcomes, explanation};
use crate::{
    CatalogInput, DeprecationInfo, Request, Resolution, ResolveError, Rule, Selection, Trouble, hint,
};
use std::cmp::Reverse;

/// Properties by which a bundle says that it needs something that nothing here provides.
const DEPENDENCIES: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];

/// Chooses the bundle for `request` from `catalogs`.
///
/// With [`Selection::Ours`] the answer does not depend on the order of `catalogs`.
///
/// # Errors
/// [`ResolveError`] when there is no bundle, more than one, or not enough known to choose.
pub fn resolve(request: &Request, catalogs: &[CatalogInput]) -> Result<Resolution, ResolveError> {
    let mut ordered: Vec<&CatalogInput> = catalogs.iter().collect();
    if request.selection == Selection::Ours {
        ordered.sort_by_key(|catalog| (Reverse(catalog.priority), &catalog.name));
    }
    let question = Question::new(request)?;
    let field = Field::new(&question, &ordered)?;
    match field.choose(request) {
        Ok(choice) => resolution(request, &field, &choice),
        Err(trouble) => {
            let explanation = explanation(&field, &Outcomes::of_trouble(&trouble));
            let hint = hint::sentence(request, &field, &trouble);
            Err(ResolveError::new(trouble, hint, explanation))
        }
    }
}

/// What there is to say of the chosen bundle, unless it cannot be installed after all.
fn resolution(request: &Request, field: &Field<'_>, choice: &Choice) -> Result<Resolution, ResolveError> {
    let found = field
        .judged
        .get(choice.winner)
        .and_then(|judged| Some((judged, judged.best()?)));
    let Some((judged, best)) = found else {
        return Err(not_one(request, &[]).into());
    };
    let bundle = best.bundle;
    let catalog = judged.name().to_owned();
    let mut explanation = explanation(field, &Outcomes::Chosen { catalog: &catalog });
    let needs = bundle
        .properties
        .iter()
        .find(|property| DEPENDENCIES.contains(&property.type_.as_str()));
    let trouble = match (&best.version, needs) {
        (Ok(version), None) => {
            let lender = field.judged.get(choice.deprecation).unwrap_or(judged);
            return Ok(Resolution {
                bundle: bundle.name.clone(),
                image: bundle.image.clone(),
                version: version.clone(),
                properties: bundle.properties.clone(),
                deprecation: DeprecationInfo::of(lender.content),
                left_out: field
                    .unread
                    .iter()
                    .map(|unread| (unread.catalog.name.clone(), unread.reason.clone()))
                    .collect(),
                explanation,
                catalog,
            });
        }
        (Err(source), _) => Trouble::BundleVersion {
            bundle: bundle.name.clone(),
            source: source.clone(),
        },
        (Ok(_), Some(property)) => {
            explanation.rule_out(&catalog, &bundle.name, Rule::Dependency);
            Trouble::Dependency {
                bundle: bundle.name.clone(),
                property: property.type_.clone(),
            }
        }
    };
    let hint = hint::sentence(request, field, &trouble);
    Err(ResolveError::new(trouble, hint, explanation))
}
