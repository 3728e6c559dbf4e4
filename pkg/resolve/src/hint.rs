//! The one sentence after upstream's: what exists, why it is not reachable, what would be.

use crate::candidates::{Candidate, Judged};
use crate::field::Field;
use crate::{Request, Trouble};
use olm_version::go_quote;

/// Most versions or channels that a sentence names.
const NAMED: usize = 5;

/// What to add to `trouble`; empty when there is nothing to add.
pub(crate) fn sentence(request: &Request, field: &Field<'_>, trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotOne { tied, .. } if tied.is_empty() => nothing(request, field),
        Trouble::NotOne { .. } => {
            "Give the catalogs different priorities, or select one of them with spec.source.catalog.selector"
                .to_owned()
        }
        Trouble::Waiting { catalog, .. } => waiting(field, catalog),
        Trouble::Dependency { .. } | Trouble::BundleVersion { .. } => others(field),
        Trouble::Selector { .. } | Trouble::Range { .. } | Trouble::InstalledVersion { .. } => String::new(),
    }
}

fn waiting(field: &Field<'_>, catalog: &str) -> String {
    let best = field
        .judged
        .iter()
        .find_map(|judged| Some((judged, judged.best()?)));
    let name = go_quote(catalog);
    match best {
        Some((judged, best)) => format!(
            "Waiting for catalog {name}, which could go before {} of catalog {}",
            version(best),
            go_quote(&judged.catalog.name)
        ),
        None => format!("Waiting for catalog {name}: no other catalog has a suitable bundle"),
    }
}

fn others(field: &Field<'_>) -> String {
    let Some(judged) = field.judged.iter().find(|judged| judged.best().is_some()) else {
        return String::new();
    };
    let suitable = judged
        .candidates
        .iter()
        .filter(|candidate| candidate.rule().is_none())
        .skip(1);
    match list(suitable.map(version)) {
        None => "No other version is suitable".to_owned(),
        Some(versions) => {
            format!("Other suitable versions, to be named in spec.source.catalog.version: {versions}")
        }
    }
}

fn nothing(request: &Request, field: &Field<'_>) -> String {
    if field.judged.is_empty() {
        return match list(field.without.iter().map(|catalog| go_quote(&catalog.name))) {
            None => "There is no catalog to choose from".to_owned(),
            Some(names) => format!("Catalogs without the package: {names}"),
        };
    }
    // The first test that says something is about the bundle that came closest.
    let tests: [fn(&Request, &Judged<'_>) -> Option<String>; 4] =
        [no_successor, missing_channel, other_channel, out_of_range];
    tests
        .iter()
        .find_map(|test| field.judged.iter().find_map(|judged| test(request, judged)))
        .unwrap_or_else(|| "The package has no bundles".to_owned())
}

fn no_successor(request: &Request, judged: &Judged<'_>) -> Option<String> {
    let from = request.installed.as_ref()?;
    let wanted = judged
        .candidates
        .iter()
        .find(|candidate| candidate.in_channels && candidate.in_range)?;
    let reachable = judged
        .candidates
        .iter()
        .filter(|candidate| candidate.in_channels && candidate.may_follow);
    let reachable = list(reachable.map(version)).unwrap_or_else(|| "nothing".to_owned());
    Some(format!(
        "{} exists in catalog {} but is no successor of {}; reachable: {reachable}",
        version(wanted),
        go_quote(&judged.catalog.name),
        from.version,
    ))
}

fn other_channel(_: &Request, judged: &Judged<'_>) -> Option<String> {
    let wanted = judged
        .candidates
        .iter()
        .find(|candidate| candidate.in_range && candidate.may_follow)?;
    let name = &wanted.bundle.name;
    let channels = judged
        .content
        .channels
        .iter()
        .filter(|channel| channel.entries.iter().any(|e| e.name == *name));
    let catalog = go_quote(&judged.catalog.name);
    Some(match list(channels.map(|channel| channel.name.clone())) {
        Some(channels) => format!(
            "{} exists in catalog {catalog}, in channels: {channels}",
            version(wanted)
        ),
        None => format!(
            "{} exists in catalog {catalog}, but in no channel",
            version(wanted)
        ),
    })
}

fn missing_channel(request: &Request, judged: &Judged<'_>) -> Option<String> {
    let channels = &judged.content.channels;
    let missing = request
        .channels
        .iter()
        .find(|name| channels.iter().all(|channel| channel.name != **name))?;
    let present =
        list(channels.iter().map(|channel| channel.name.clone())).unwrap_or_else(|| "none".to_owned());
    Some(format!(
        "Catalog {} has no channel {} of the package; its channels: {present}",
        go_quote(&judged.catalog.name),
        go_quote(missing),
    ))
}

fn out_of_range(request: &Request, judged: &Judged<'_>) -> Option<String> {
    let visible = || judged.candidates.iter().filter(|candidate| candidate.in_channels);
    let catalog = go_quote(&judged.catalog.name);
    let from_installed = request.installed.is_some() && !request.self_certified;
    let reachable = list(visible().filter(|candidate| candidate.may_follow).map(version));
    if let (true, Some(reachable)) = (from_installed, &reachable) {
        return Some(format!(
            "No version in catalog {catalog} is in that range; reachable: {reachable}"
        ));
    }
    let versions = list(visible().map(version))?;
    let pre = visible().all(|candidate| {
        candidate
            .version
            .as_ref()
            .is_ok_and(|v| !v.version.pre.is_empty())
    });
    let rule = if pre {
        "; a pre-release is only in a range that names one, such as >=1.0.0-0"
    } else {
        ""
    };
    Some(format!(
        "No version in catalog {catalog} is in that range; it has: {versions}{rule}"
    ))
}

fn version(candidate: &Candidate<'_>) -> String {
    candidate
        .version
        .as_ref()
        .map_or_else(|_| candidate.bundle.name.clone(), ToString::to_string)
}

/// The first few of `items`, and how many more there are; none when there are none.
fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    let named = items
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match items.len() {
        0 => None,
        count if count > NAMED => Some(format!("{named} and {} more", count - NAMED)),
        _ => Some(named),
    }
}
