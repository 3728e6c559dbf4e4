//! Builds the graph of a package.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use olm_fbc::{Channel, PackageContent, schema};
use olm_resolve::Explanation;
use olm_text::name::{BundleName, CatalogName};
use olm_version::{SkipRange, VersionRelease};

use super::model::{ChannelEntry, Graph, GraphChannel, Node, Start};
use crate::standing::Standing;

/// Builds the graph of a package with the channels `only`, or with all if `only` is empty.
pub fn build(catalog: &CatalogName, content: &PackageContent, only: &[String]) -> Graph {
    let shown = |channel: &&Channel| only.is_empty() || only.contains(&channel.name);
    let channels: Vec<&Channel> = content.channels.iter().filter(shown).collect();
    let listed: BTreeSet<&str> = channels
        .iter()
        .flat_map(|channel| &channel.entries)
        .map(|entry| entry.name.as_str())
        .collect();
    let mut versions: BTreeMap<&str, Option<VersionRelease>> = BTreeMap::new();
    for bundle in &content.bundles {
        if only.is_empty() || listed.contains(bundle.name.as_str()) {
            versions.insert(&bundle.name, bundle.version_release(false).ok());
        }
    }
    let present: BTreeSet<&str> = content
        .bundles
        .iter()
        .map(|bundle| bundle.name.as_str())
        .collect();
    for name in listed {
        versions.entry(name).or_insert_with(|| version_in(name));
    }
    let mut sorted: Vec<(&str, Option<VersionRelease>)> = versions.into_iter().collect();
    sorted.sort_by(|a, b| by_version(a.1.as_ref(), b.1.as_ref()).then_with(|| a.0.cmp(b.0)));
    let positions: BTreeMap<&str, usize> = sorted
        .iter()
        .enumerate()
        .map(|(position, (name, _))| (*name, position))
        .collect();
    let default = content
        .package
        .as_ref()
        .map(|package| package.default_channel.as_str());
    let mut lanes: Vec<GraphChannel> = channels
        .into_iter()
        .map(|channel| GraphChannel {
            name: channel.name.clone(),
            default: default == Some(&channel.name),
            deprecated: content.deprecation(schema::CHANNEL, &channel.name),
            entries: entries(channel, &positions, &sorted),
        })
        .collect();
    lanes.sort_by_key(|lane| {
        let highest = lane.entries.last().map(|stop| stop.bundle);
        (Reverse(lane.default), Reverse(highest), lane.name.clone())
    });
    let nodes = sorted.iter().map(|(name, version)| Node {
        name: (*name).into(),
        label: version
            .as_ref()
            .map_or_else(|| (*name).to_owned(), ToString::to_string),
        present: present.contains(name),
        deprecated: content.deprecation(schema::BUNDLE, name),
        steps: None,
        via: None,
        standing: None,
    });
    Graph {
        package: content.name.as_str().into(),
        catalog: catalog.clone(),
        deprecated: content.deprecation(schema::PACKAGE, ""),
        start: None,
        bundles: nodes.collect(),
        channels: lanes,
        verdicts: BTreeMap::new(),
        not_annotated: 0,
    }
}

impl Graph {
    /// Marks the bundles that the resolver can reach from `start`.
    pub fn explain(&mut self, start: Start, explanation: &Explanation) {
        let catalog = explanation
            .catalogs
            .iter()
            .find(|asked| asked.name == self.catalog);
        let verdicts: BTreeMap<&str, _> = catalog
            .into_iter()
            .flat_map(|asked| &asked.candidates)
            .map(|verdict| (verdict.bundle.as_str(), verdict))
            .collect();
        for node in &mut self.bundles {
            if let Some(verdict) = verdicts.get(node.name.as_str()) {
                node.steps = verdict.steps;
                node.via = verdict.via.clone();
                node.standing = Standing::of(verdict);
            }
        }
        self.start = Some(start);
    }

    /// Marks the bundles of one path from `start`.
    pub fn follow(&mut self, start: Start, path: &[BundleName]) {
        for node in &mut self.bundles {
            let step = path.iter().position(|name| *name == node.name);
            node.steps = match step {
                Some(step) => Some(step + 1),
                None => (node.name == start.bundle).then_some(0),
            };
            let before = step.and_then(|step| step.checked_sub(1));
            node.via = before.and_then(|before| path.get(before)).cloned();
        }
        self.start = Some(start);
    }
}

fn entries(
    channel: &Channel,
    positions: &BTreeMap<&str, usize>,
    sorted: &[(&str, Option<VersionRelease>)],
) -> Vec<ChannelEntry> {
    let heads = channel.heads();
    let here: BTreeSet<usize> = channel
        .entries
        .iter()
        .filter_map(|entry| positions.get(entry.name.as_str()).copied())
        .collect();
    let mut stops: Vec<ChannelEntry> = channel
        .entries
        .iter()
        .filter_map(|entry| {
            let bundle = *positions.get(entry.name.as_str())?;
            let inside = |name: &str| {
                positions
                    .get(name)
                    .copied()
                    .filter(|position| here.contains(position))
            };
            let mut skips: Vec<usize> = entry.skips.iter().filter_map(|name| inside(name)).collect();
            skips.sort_unstable();
            skips.dedup();
            let outside = std::iter::once(&entry.replaces).chain(&entry.skips);
            let outside = outside.filter(|name| !name.is_empty() && inside(name).is_none());
            Some(ChannelEntry {
                bundle,
                head: heads.contains(&entry.name.as_str()),
                replaces: inside(&entry.replaces).filter(|replaced| *replaced != bundle),
                skips,
                skip_range: entry.skip_range.clone(),
                in_skip_range: in_range(&entry.skip_range, bundle, sorted),
                outside: outside.map(|name| name.as_str().into()).collect(),
            })
        })
        .collect();
    stops.sort_by_key(|stop| stop.bundle);
    stops.dedup_by_key(|stop| stop.bundle);
    stops
}

/// Returns the bundles in a `skipRange`, also those of other channels.
fn in_range(text: &str, itself: usize, sorted: &[(&str, Option<VersionRelease>)]) -> Vec<usize> {
    let range = Some(text).filter(|text| !text.is_empty());
    let Some(Ok(range)) = range.map(str::parse::<SkipRange>) else {
        return Vec::new();
    };
    let has = |version: &Option<VersionRelease>| {
        version
            .as_ref()
            .is_some_and(|version| range.matches(&version.version))
    };
    let all = sorted.iter().enumerate();
    all.filter(|(position, (_, version))| *position != itself && has(version))
        .map(|(position, _)| position)
        .collect()
}

/// Compares versions; bundles without a version come last.
fn by_version(a: Option<&VersionRelease>, b: Option<&VersionRelease>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp_precedence(b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Returns the version in a bundle's name, such as `name.v1.2.3`, for bundles that the catalog lacks.
fn version_in(name: &str) -> Option<VersionRelease> {
    let parts = name.match_indices(['.', '-']).map(|(at, _)| at);
    let mut texts = parts.filter_map(|at| name.get(at + 1..));
    texts.find_map(|text| VersionRelease::parse_legacy(text.strip_prefix('v').unwrap_or(text)).ok())
}
