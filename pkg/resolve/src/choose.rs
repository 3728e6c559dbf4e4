//! The choice between catalogs.

use crate::constraint;
use crate::field::{Field, Offer, Unread};
use crate::question::Question;
use crate::{Request, Selection, Trouble};
use olm_fbc::Property;
use olm_version::go_quote;

/// The winner among the catalogs.
pub(crate) struct Choice {
    /// Position in [`Field::facts`].
    pub(crate) winner: usize,
    /// Position in its bundles.
    pub(crate) bundle: usize,
    /// The catalog whose deprecations are shown.
    pub(crate) deprecation: usize,
}

impl Choice {
    fn of(offer: &Offer<'_, '_>) -> Self {
        Self {
            winner: offer.at,
            bundle: offer.bundle,
            deprecation: offer.at,
        }
    }
}

/// Chooses among everything that `question` selects.
pub(crate) fn choose(field: &Field<'_>, question: &Question<'_>) -> Result<Choice, Trouble> {
    let selected = |name: &str| question.selects(name);
    let unread: Vec<&Unread<'_>> = field
        .unread
        .iter()
        .filter(|unread| selected(&unread.catalog.name))
        .collect();
    let read = field.facts.iter().filter(|facts| selected(facts.name()));
    let read = read.map(|facts| facts.position).next();
    match question.request.selection {
        Selection::Ours => {
            if read.is_some() {
                question.from()?;
            }
            choose_ours(field, question, &unread)
        }
        Selection::Upstream => {
            // Upstream stops at the first thing that is wrong on its walk.
            let first = unread.first().copied();
            if read.is_some_and(|read| first.is_none_or(|first| read < first.position)) {
                question.from()?;
            }
            first.map_or(Ok(()), |first| Err(first.trouble(&question.request.package)))?;
            choose_upstream(field, question)
        }
    }
}

/// The catalog that the extension is installed from decides, as long as it is there. Else priority decides,
/// then deprecation; what could not be read must not be able to change the choice.
fn choose_ours(
    field: &Field<'_>,
    question: &Question<'_>,
    unread: &[&Unread<'_>],
) -> Result<Choice, Trouble> {
    let request = question.request;
    let offers = field.offers(question);
    let waiting = |unread: &Unread<'_>| unread.trouble(&request.package);
    if let Some(home) = field.home(question) {
        if let Some(unread) = unread.iter().find(|unread| unread.catalog.name == home) {
            return Err(waiting(unread));
        }
        let own = offers.iter().find(|offer| offer.facts.name() == home);
        return own.map(Choice::of).ok_or_else(|| not_one(request, &[]));
    }
    let priority = |offer: &Offer<'_, '_>| offer.facts.catalog.priority;
    let Some(top) = offers.iter().map(priority).max() else {
        let first = unread.first();
        return Err(first.map_or_else(|| not_one(request, &[]), |first| waiting(first)));
    };
    if let Some(rival) = unread.iter().find(|unread| unread.catalog.priority >= top) {
        return Err(waiting(rival));
    }
    let mut first: Vec<_> = offers.iter().filter(|offer| priority(offer) == top).collect();
    if first.iter().any(|offer| !offer.fact.deprecated) {
        first.retain(|offer| !offer.fact.deprecated);
    }
    match first.as_slice() {
        [winner] => Ok(Choice::of(winner)),
        several => {
            let deprecated = several.iter().any(|offer| offer.fact.deprecated);
            let equals = offers.iter().filter(|offer| offer.fact.deprecated == deprecated);
            Err(not_one(
                request,
                &equals.map(|offer| offer.facts.name()).collect::<Vec<_>>(),
            ))
        }
    }
}

/// Deprecation decides while walking, then priority; the last catalog that had an offer lends its
/// deprecations.
fn choose_upstream(field: &Field<'_>, question: &Question<'_>) -> Result<Choice, Trouble> {
    let mut kept: Vec<Offer<'_, '_>> = Vec::new();
    let mut deprecation = 0;
    for offer in field.offers(question) {
        if let Some(before) = kept.last() {
            if offer.fact.deprecated && !before.fact.deprecated {
                continue;
            }
            if !offer.fact.deprecated {
                kept.retain(|kept| !kept.fact.deprecated);
            }
        }
        deprecation = offer.at;
        kept.push(offer);
    }
    let top = kept.iter().map(|offer| offer.facts.catalog.priority).max();
    let first: Vec<_> = kept
        .iter()
        .filter(|offer| Some(offer.facts.catalog.priority) == top)
        .collect();
    match first.as_slice() {
        [winner] => Ok(Choice {
            deprecation,
            ..Choice::of(winner)
        }),
        _ => Err(not_one(
            question.request,
            &kept.iter().map(|offer| offer.facts.name()).collect::<Vec<_>>(),
        )),
    }
}

/// The property by which a bundle asks for something of others, where it is refused for that. Ours are looked
/// at by whoever knows the cluster; upstream refuses them unseen.
pub(crate) fn dependency(selection: Selection, properties: &[Property]) -> Option<&Property> {
    properties
        .iter()
        .filter(|_| selection == Selection::Upstream)
        .find(|property| constraint::TYPES.contains(&property.type_.as_str()))
}

/// Upstream's sentence for no bundle, or for several.
pub(crate) fn not_one(request: &Request, tied: &[&str]) -> Trouble {
    let upgrading = request.installed.as_ref().map(|installed| {
        format!(
            "error upgrading from currently installed version {}: ",
            go_quote(&installed.version)
        )
    });
    let found = if tied.is_empty() {
        "no bundles found"
    } else {
        "found bundles"
    };
    let range = request.version.as_deref().filter(|range| !range.is_empty());
    let matching = range.map(|range| format!(" matching version {}", go_quote(range)));
    let channels = &request.channels;
    let within = (!channels.is_empty()).then(|| format!(" in channels [{}]", channels.join(" ")));
    let mut names: Vec<String> = tied.iter().map(|&name| name.to_owned()).collect();
    names.sort();
    let several = (!names.is_empty()).then(|| {
        format!(
            " in multiple catalogs with the same priority [{}]",
            names.join(" ")
        )
    });
    let sentence = format!(
        "{}{found} for package {}{}{}{}",
        upgrading.unwrap_or_default(),
        go_quote(&request.package),
        matching.unwrap_or_default(),
        within.unwrap_or_default(),
        several.unwrap_or_default(),
    );
    Trouble::NotOne {
        sentence,
        tied: names,
    }
}
