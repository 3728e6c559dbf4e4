//! Choice between catalogs.

use crate::constraint;
use crate::facts::{Candidate, CatalogFacts};
use crate::known_catalogs::{BestBundle, KnownCatalogs, UnreadCatalog};
use crate::parsed_request::ParsedRequest;
use crate::{FailureCause, Request, Rule, Selection};
use olm_fbc::Property;
use olm_text::name::CatalogName;
use olm_version::{VersionRelease, go_quote};

/// Winner among the catalogs.
pub(crate) struct Choice {
    /// Position in [`KnownCatalogs::facts`].
    pub(crate) winner: usize,
    /// Position among the bundles of the winner.
    pub(crate) bundle: usize,
    /// Catalog whose deprecations are shown.
    pub(crate) deprecation: usize,
}

impl Choice {
    fn of(best: &BestBundle<'_, '_>) -> Self {
        Self {
            winner: best.at,
            bundle: best.bundle,
            deprecation: best.at,
        }
    }
}

/// The chosen bundle and the facts about it.
pub(crate) struct Chosen<'f, 'a> {
    pub(crate) facts: &'f CatalogFacts<'a>,
    pub(crate) candidate: &'f Candidate<'a>,
    pub(crate) version: &'f VersionRelease,
}

/// Returns the bundle of `choice`, unless a rule forbids its installation.
pub(crate) fn installable<'f, 'a>(
    known: &'f KnownCatalogs<'a>,
    choice: &Choice,
    request: &Request,
) -> Result<Chosen<'f, 'a>, (FailureCause, Rule)> {
    let chosen = known
        .facts
        .get(choice.winner)
        .and_then(|facts| Some((facts, facts.bundles.get(choice.bundle)?)));
    let Some((facts, candidate)) = chosen else {
        return Err((no_single_bundle(request, &[]), Rule::Lower));
    };
    let bundle = candidate.bundle.name.clone().into();
    match (
        &candidate.version,
        dependency(request.selection, &candidate.bundle.properties),
    ) {
        (Ok(version), None) => Ok(Chosen {
            facts,
            candidate,
            version,
        }),
        (Err(source), _) => Err((
            FailureCause::BundleVersion {
                bundle,
                source: source.clone(),
            },
            Rule::UnreadableVersion,
        )),
        (Ok(_), Some(property)) => Err((
            FailureCause::Dependency {
                bundle,
                property: property.type_.clone(),
            },
            Rule::Dependency,
        )),
    }
}

/// Chooses among the bundles that `parsed` selects.
pub(crate) fn choose(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>) -> Result<Choice, FailureCause> {
    let unread: Vec<&UnreadCatalog<'_>> = known
        .unread
        .iter()
        .filter(|unread| parsed.selects(&unread.catalog.name))
        .collect();
    let read = known.facts.iter().filter(|facts| parsed.selects(facts.name()));
    let read = read.map(|facts| facts.position).next();
    match parsed.request.selection {
        Selection::Ours => {
            if read.is_some() {
                parsed.installed_version()?;
            }
            choose_ours(known, parsed, &unread)
        }
        Selection::Upstream => {
            // Upstream stops at the first error of its walk.
            let first = unread.first().copied();
            if read.is_some_and(|read| first.is_none_or(|first| read < first.position)) {
                parsed.installed_version()?;
            }
            first.map_or(Ok(()), |first| Err(first.cause(&parsed.request.package)))?;
            choose_upstream(known, parsed)
        }
    }
}

/// The catalog that the extension is installed from decides, as long as it exists. Otherwise priority decides, then
/// deprecation. A catalog that cannot be read must not be able to change the choice.
fn choose_ours(
    known: &KnownCatalogs<'_>,
    parsed: &ParsedRequest<'_>,
    unread: &[&UnreadCatalog<'_>],
) -> Result<Choice, FailureCause> {
    let request = parsed.request;
    let best_bundles = known.best_bundles(parsed);
    let waiting = |unread: &UnreadCatalog<'_>| unread.cause(&request.package);
    if let Some(home) = known.home(parsed) {
        if let Some(unread) = unread.iter().find(|unread| unread.catalog.name == *home) {
            return Err(waiting(unread));
        }
        let own = best_bundles.iter().find(|best| best.facts.name() == home);
        return own.map(Choice::of).ok_or_else(|| no_single_bundle(request, &[]));
    }
    let priority = |best: &BestBundle<'_, '_>| best.facts.catalog.priority;
    let Some(top) = best_bundles.iter().map(priority).max() else {
        let first = unread.first();
        return Err(first.map_or_else(|| no_single_bundle(request, &[]), |first| waiting(first)));
    };
    if let Some(rival) = unread.iter().find(|unread| unread.catalog.priority >= top) {
        return Err(waiting(rival));
    }
    let mut first: Vec<_> = best_bundles.iter().filter(|best| priority(best) == top).collect();
    if first.iter().any(|best| !best.candidate.deprecated) {
        first.retain(|best| !best.candidate.deprecated);
    }
    match first.as_slice() {
        [winner] => Ok(Choice::of(winner)),
        several => {
            let deprecated = several.iter().any(|best| best.candidate.deprecated);
            let equals = best_bundles
                .iter()
                .filter(|best| best.candidate.deprecated == deprecated);
            Err(no_single_bundle(
                request,
                &equals.map(|best| best.facts.name()).collect::<Vec<_>>(),
            ))
        }
    }
}

/// Deprecation decides during the walk, then priority. The last catalog that had a best bundle supplies the
/// deprecations.
fn choose_upstream(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>) -> Result<Choice, FailureCause> {
    let mut kept: Vec<BestBundle<'_, '_>> = Vec::new();
    let mut deprecation = 0;
    for best in known.best_bundles(parsed) {
        if let Some(before) = kept.last() {
            if best.candidate.deprecated && !before.candidate.deprecated {
                continue;
            }
            if !best.candidate.deprecated {
                kept.retain(|kept| !kept.candidate.deprecated);
            }
        }
        deprecation = best.at;
        kept.push(best);
    }
    let top = kept.iter().map(|best| best.facts.catalog.priority).max();
    let first: Vec<_> = kept
        .iter()
        .filter(|best| Some(best.facts.catalog.priority) == top)
        .collect();
    match first.as_slice() {
        [winner] => Ok(Choice {
            deprecation,
            ..Choice::of(winner)
        }),
        _ => Err(no_single_bundle(
            parsed.request,
            &kept.iter().map(|best| best.facts.name()).collect::<Vec<_>>(),
        )),
    }
}

/// Returns the dependency property for which a bundle is refused. With our rules the caller checks dependencies against
/// the cluster; upstream refuses them unseen.
pub(crate) fn dependency(selection: Selection, properties: &[Property]) -> Option<&Property> {
    properties
        .iter()
        .filter(|_| selection == Selection::Upstream)
        .find(|property| constraint::TYPES.contains(&property.type_.as_str()))
}

/// Returns upstream's sentence for no bundle, or for several.
pub(crate) fn no_single_bundle(request: &Request, tied: &[&CatalogName]) -> FailureCause {
    let upgrading = request.installed.as_ref().map(|installed| {
        format!(
            "error upgrading from currently installed version {}: ",
            go_quote(installed.version.as_str())
        )
    });
    let found = if tied.is_empty() {
        "no bundles found"
    } else {
        "found bundles"
    };
    let range = request.range.as_ref();
    let matching = range.map(|range| format!(" matching version {}", go_quote(range.as_str())));
    let channels = &request.channels;
    let within = (!channels.is_empty()).then(|| format!(" in channels [{}]", channels.join(" ")));
    let mut names: Vec<CatalogName> = tied.iter().map(|&name| name.clone()).collect();
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
    FailureCause::NoSingleBundle {
        sentence,
        tied: names,
    }
}
