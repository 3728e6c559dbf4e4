//! Our sentences after upstream's: existing bundles, the reasons against them, reachable versions and the smallest
//! change that helps. At most [`LIMIT`] bytes, and equal for equal input.

use crate::facts::{Candidate, CatalogFacts};
use crate::known_catalogs::KnownCatalogs;
use crate::parsed_request::{CatalogQuery, ParsedRequest};
use crate::{Change, FailureCause, Note, Selection, did_you_mean, reach, suggest};
use olm_text::cut;
use olm_text::name::CatalogName;
use olm_version::go_quote;

/// Maximum size of the text, in bytes.
pub(crate) const LIMIT: usize = 1024;
/// Maximum number of versions or channels named in one place.
const MAX_NAMED: usize = 5;
/// Maximum number of characters of a name from a catalog.
const MAX_NAME: usize = 80;

/// Returns the sentences to append to `cause`, without the last full stop; empty if there are none.
pub(crate) fn text(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>, cause: &FailureCause) -> String {
    let sentences = match cause {
        FailureCause::NoSingleBundle { tied, .. } if tied.is_empty() => no_bundle(known, parsed),
        FailureCause::NoSingleBundle { .. } => vec![
            "Give the catalogs different priorities, or select one of them with spec.source.catalog.selector"
                .to_owned(),
        ],
        FailureCause::UnreadCatalog { catalog, .. } => waiting(known, parsed, catalog),
        FailureCause::Dependency { .. } | FailureCause::BundleVersion { .. } => other_versions(known, parsed),
        FailureCause::InstalledVersion { .. } => change(known, parsed, None).into_iter().collect(),
        FailureCause::Selector { .. } | FailureCause::Range { .. } => Vec::new(),
    };
    fit(&sentences)
}

/// Joins the sentences. If the text is too long, sentences before the last are cut: the last one names the remedy.
fn fit(sentences: &[String]) -> String {
    const SEPARATOR: &str = ". ";
    let whole = sentences.join(SEPARATOR);
    match sentences.split_last() {
        Some((last, before)) if whole.len() > LIMIT && last.len() <= LIMIT / 2 => {
            let left = LIMIT - last.len() - SEPARATOR.len();
            format!("{}{SEPARATOR}{last}", cut(&before.join(SEPARATOR), left))
        }
        _ => cut(&whole, LIMIT).into_owned(),
    }
}

fn waiting(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>, catalog: &CatalogName) -> Vec<String> {
    let name = quote(catalog);
    if known.home(parsed) == Some(catalog) {
        return vec![format!(
            "The extension is installed from catalog {name} and waits for it; to move it to another catalog, exclude \
             {name} in spec.source.catalog.selector"
        )];
    }
    if parsed.request.selection == Selection::Upstream {
        let all = format!("Waiting for catalog {name}: every selected catalog must be readable");
        return [Some(all), change(known, parsed, None)]
            .into_iter()
            .flatten()
            .collect();
    }
    let best_bundles = known.best_bundles(parsed);
    let Some(best) = best_bundles.first() else {
        return vec![format!(
            "Waiting for catalog {name}: no other catalog has a suitable bundle"
        )];
    };
    let waiting = format!(
        "Waiting for catalog {name}, which could take precedence over {} of catalog {}",
        best.candidate.label(),
        quote(best.facts.name())
    );
    [Some(waiting), change(known, parsed, None)]
        .into_iter()
        .flatten()
        .collect()
}

fn other_versions(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>) -> Vec<String> {
    let best_bundles = known.best_bundles(parsed);
    let Some(best) = best_bundles.first() else {
        return Vec::new();
    };
    let query = parsed.query(best.facts);
    let suitable = best
        .facts
        .bundles
        .iter()
        .filter(|candidate| query.rule(candidate).is_none())
        .skip(1);
    let other = match list(suitable.map(Candidate::label)) {
        None => "No other version is suitable".to_owned(),
        Some(versions) => {
            format!("Other suitable versions for spec.source.catalog.version: {versions}")
        }
    };
    [Some(other), change(known, parsed, None)]
        .into_iter()
        .flatten()
        .collect()
}

/// Catalog and parsed, as the tests below read them.
struct View<'v, 'a> {
    facts: &'v CatalogFacts<'a>,
    query: CatalogQuery<'v>,
    parsed: &'v ParsedRequest<'v>,
}

/// Result of a test: sentences, and the version that the user seems to want.
type Finding = (Vec<String>, Option<String>);

fn no_bundle(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>) -> Vec<String> {
    if known.facts.is_empty() {
        let mut names: Vec<String> = known.without.iter().map(|catalog| quote(&catalog.name)).collect();
        names.sort();
        let without = match list(names.into_iter()) {
            None => "There is no catalog to choose from".to_owned(),
            Some(names) => format!("Catalogs without the package: {names}"),
        };
        let similar: Vec<String> = parsed.request.similar.iter().map(|name| clip(name)).collect();
        return std::iter::once(without).chain(did_you_mean(&similar)).collect();
    }
    let home = known.home(parsed);
    let mut sentences = Vec::new();
    let mut elsewhere = None;
    if let Some((sentence, bundle)) = home.and_then(|home| offers_elsewhere(known, parsed, home)) {
        sentences.push(sentence);
        elsewhere = Some(bundle);
    } else if let Some(from) = known.former_catalog(parsed) {
        let from = from.clone();
        sentences.push(Note::Moved { from, to: None }.to_string());
    }
    let views: Vec<_> = known
        .facts
        .iter()
        .filter(|facts| home.is_none_or(|home| home == facts.name()))
        .map(|facts| View {
            facts,
            query: parsed.query(facts),
            parsed,
        })
        .collect();
    // In this order the first test with a result concerns the bundle that came closest.
    let tests: [fn(&View<'_, '_>) -> Option<Finding>; 5] = [
        no_successor,
        missing_channel,
        other_channel,
        unreachable_elsewhere,
        out_of_range,
    ];
    let finding = tests.iter().find_map(|test| views.iter().find_map(test));
    let (found, wanted) = finding.unwrap_or_else(|| {
        let found = (!views.is_empty()).then(|| "The package has no bundles".to_owned());
        (found.into_iter().collect(), None)
    });
    sentences.extend(found);
    let wanted = elsewhere.or(wanted);
    sentences.extend(change(known, parsed, wanted.as_deref()));
    sentences
}

/// Returns the sentence that the extension stays with its catalog `home`, and the best bundle of other catalogs.
fn offers_elsewhere(
    known: &KnownCatalogs<'_>,
    parsed: &ParsedRequest<'_>,
    home: &CatalogName,
) -> Option<(String, String)> {
    let mut best_bundles = known.best_bundles(parsed);
    best_bundles.retain(|best| best.facts.name() != home);
    let best = best_bundles.first()?.candidate.bundle.name.clone();
    let best_bundles = best_bundles
        .iter()
        .map(|best| format!("{} of {}", best.candidate.label(), quote(best.facts.name())));
    let best_bundles = list(best_bundles)?;
    let sentence = format!(
        "The extension is installed from catalog {} and stays with it; other catalogs offer: {best_bundles}",
        quote(home)
    );
    Some((sentence, best))
}

fn no_successor(view: &View<'_, '_>) -> Option<Finding> {
    let from = view.parsed.request.installed.as_ref()?;
    let bundles = &view.facts.bundles;
    let query = &view.query;
    let suits = |candidate: &Candidate<'_>| query.in_channels(candidate) && query.in_range(candidate);
    let (at, wanted) = bundles
        .iter()
        .enumerate()
        .find(|(_, candidate)| suits(candidate))?;
    let reachable = bundles
        .iter()
        .filter(|candidate| query.in_channels(candidate) && query.may_follow(candidate));
    let reachable = list(reachable.map(Candidate::label)).unwrap_or_else(|| "nothing".to_owned());
    let mut sentences = vec![format!(
        "{} exists in catalog {} but is not a successor of {}; reachable: {reachable}",
        wanted.label(),
        quote(view.facts.name()),
        from.version,
    )];
    sentences.extend(upgrade_path(view, at, &from.name));
    let notes = view.facts.notes.iter();
    let unread = notes.filter(
        |note| matches!(note, Note::UnreadableSkipRange { entry, .. } if *entry == wanted.bundle.name.as_str()),
    );
    sentences.extend(unread.take(1).map(ToString::to_string));
    Some((sentences, Some(wanted.bundle.name.clone())))
}

/// Describes the path to the bundle at `at` if it takes more than one upgrade.
fn upgrade_path(view: &View<'_, '_>, at: usize, installed: &str) -> Option<String> {
    let steps = reach::steps(view.facts, &view.query, Some(installed));
    let step = |at: usize| steps.get(at).copied().flatten();
    let count = step(at)?.count;
    let mut passed = Vec::new();
    let mut next = step(at)?.via;
    while let Some(at) = next {
        passed.push(view.facts.bundles.get(at)?.label());
        next = step(at)?.via;
    }
    passed.reverse();
    let wanted = view.facts.bundles.get(at)?.label();
    let through = list(passed.into_iter())?;
    Some(format!(
        "{wanted} is reachable in {count} successive upgrades through: {through}"
    ))
}

fn other_channel(view: &View<'_, '_>) -> Option<Finding> {
    let mut bundles = view.facts.bundles.iter();
    let wanted =
        bundles.find(|candidate| view.query.in_range(candidate) && view.query.may_follow(candidate))?;
    let channels = view.facts.channel_names(&wanted.channels);
    let catalog = quote(view.facts.name());
    let sentence = match list(channels.map(clip)) {
        Some(channels) => format!(
            "{} exists in catalog {catalog}, in channels: {channels}",
            wanted.label()
        ),
        None => format!(
            "{} exists in catalog {catalog}, but in no channel",
            wanted.label()
        ),
    };
    Some((vec![sentence], Some(wanted.bundle.name.clone())))
}

/// Finds bundles that are in the range, but neither in the requested channels nor successors.
fn unreachable_elsewhere(view: &View<'_, '_>) -> Option<Finding> {
    let from = view.parsed.request.installed.as_ref()?;
    view.parsed.range?;
    let bundles = &view.facts.bundles;
    let wanted = bundles.iter().find(|candidate| view.query.in_range(candidate))?;
    let visible = bundles
        .iter()
        .filter(|candidate| view.query.in_channels(candidate) && view.query.may_follow(candidate));
    let reachable = list(visible.map(Candidate::label)).unwrap_or_else(|| "nothing".to_owned());
    let channels = list(view.facts.channel_names(&wanted.channels).map(clip));
    let channels = channels.map_or_else(
        || "in no channel".to_owned(),
        |channels| format!("in channels: {channels}"),
    );
    let sentence = format!(
        "{} exists in catalog {}, {channels}, but is not a successor of {}; reachable: {reachable}",
        wanted.label(),
        quote(view.facts.name()),
        from.version,
    );
    Some((vec![sentence], Some(wanted.bundle.name.clone())))
}

fn missing_channel(view: &View<'_, '_>) -> Option<Finding> {
    let channels = &view.facts.content.channels;
    let mut asked = view.parsed.request.channels.iter();
    let missing = asked.find(|name| channels.iter().all(|channel| channel.name != **name))?;
    let present =
        list(channels.iter().map(|channel| clip(&channel.name))).unwrap_or_else(|| "none".to_owned());
    let sentence = format!(
        "Catalog {} has no channel {} of the package; its channels: {present}",
        quote(view.facts.name()),
        quote(missing),
    );
    Some((vec![sentence], None))
}

fn out_of_range(view: &View<'_, '_>) -> Option<Finding> {
    let bundles = view.facts.bundles.iter();
    let visible = || {
        bundles
            .clone()
            .filter(|candidate| view.query.in_channels(candidate))
    };
    let catalog = quote(view.facts.name());
    let request = view.parsed.request;
    let reachable = list(
        visible()
            .filter(|candidate| view.query.may_follow(candidate))
            .map(Candidate::label),
    );
    if request.installed.is_some()
        && !request.self_certified
        && let Some(reachable) = &reachable
    {
        let sentence = format!("No version in catalog {catalog} is in that range; reachable: {reachable}");
        return Some((vec![sentence], None));
    }
    let versions = list(visible().map(Candidate::label))?;
    let pre = visible().all(|candidate| {
        candidate
            .version
            .as_ref()
            .is_ok_and(|v| !v.version.pre.is_empty())
    });
    let rule = if pre {
        "; a range contains pre-releases only if it names one, such as >=1.0.0-0"
    } else {
        ""
    };
    let sentence = format!("No version in catalog {catalog} is in that range; it has: {versions}{rule}");
    Some((vec![sentence], None))
}

/// Returns the smallest change that makes the resolution choose the bundle `wanted`, or any bundle if that is
/// impossible or none is wanted.
fn change(known: &KnownCatalogs<'_>, parsed: &ParsedRequest<'_>, wanted: Option<&str>) -> Option<String> {
    let changes = |wanted| {
        let changes = suggest::within(known, parsed.request, wanted)?;
        let sure = !changes
            .iter()
            .any(|change| matches!(change, Change::WaitFor { .. }));
        let texts: Vec<String> = changes.iter().map(ToString::to_string).collect();
        (sure && !changes.is_empty()).then(|| texts.join(", and "))
    };
    let label = |wanted| {
        let mut facts = known.facts.iter();
        facts.find_map(|facts| Some(facts.bundles.get(*facts.by_name.get(wanted)?)?.label()))
    };
    if let Some(wanted) = wanted
        && let Some(changes) = changes(Some(wanted))
    {
        let label = label(wanted).unwrap_or_else(|| wanted.to_owned());
        return Some(format!("Smallest change for {}: {changes}", clip(&label)));
    }
    Some(format!("Smallest change: {}", changes(None)?))
}

/// Shortens and quotes an untrusted name.
fn quote(name: &str) -> String {
    go_quote(&clip(name))
}

fn clip(name: &str) -> String {
    if name.chars().count() <= MAX_NAME {
        return name.to_owned();
    }
    let head: String = name.chars().take(MAX_NAME).collect();
    format!("{head}...")
}

/// Returns the first few of `items` and the number of further ones; none if there are none.
fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.map(|item| clip(&item)).collect();
    let named = items
        .iter()
        .take(MAX_NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match items.len() {
        0 => None,
        count if count > MAX_NAMED => Some(format!("{named} and {} more", count - MAX_NAMED)),
        _ => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, fit};

    #[test]
    fn long_texts_are_cut_before_the_last_sentence() {
        let long = "\u{e4}".repeat(LIMIT);
        let text = fit(&[long.clone(), "Smallest change: none".to_owned()]);
        assert!(
            text.len() <= LIMIT && text.ends_with("\u{e4}…. Smallest change: none"),
            "{text}"
        );
        assert!(fit(&[long.clone(), long]).len() <= LIMIT);
        assert_eq!(fit(&["a".to_owned(), "b".to_owned()]), "a. b");
        assert_eq!(fit(&[]), "");
    }

    #[test]
    fn a_text_of_exactly_the_limit_is_whole() {
        let whole = "a".repeat(LIMIT);
        assert_eq!(fit(std::slice::from_ref(&whole)), whole);
        let (before, last) = ("b".repeat(LIMIT - 12), "c".repeat(10));
        let sentences = [before.clone(), last.clone()];
        assert_eq!(fit(&sentences), format!("{before}. {last}"));
        let longer = fit(&[format!("{before}b"), last.clone()]);
        assert_eq!(longer.len(), LIMIT);
        assert!(longer.ends_with(&format!("bbb…. {last}")), "{longer}");
    }

    #[test]
    fn a_list_names_five() {
        let list = |count: usize| super::list((1..=count).map(|item| item.to_string()));
        assert_eq!(list(0), None);
        assert_eq!(list(5).as_deref(), Some("1, 2, 3, 4, 5"));
        assert_eq!(list(7).as_deref(), Some("1, 2, 3, 4, 5 and 2 more"));
    }
}
