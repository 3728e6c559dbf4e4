//! Upgrade path through the available bundles.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, bail};
use olm_fbc::{Bundle, Entry, PackageContent};
use olm_version::{SkipRange, VersionRelease};

/// A bundle on the upgrade path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathEntry {
    pub(super) name: String,
    pub(super) version: String,
}

/// Returns the shortest path from the oldest `present` bundle with a path to the newest one.
///
/// # Errors
/// No bundle is present.
pub(super) fn path(content: &PackageContent, present: impl Fn(&Bundle) -> bool) -> Result<Vec<PathEntry>> {
    let mut bundles: Vec<(&str, VersionRelease)> = Vec::new();
    for bundle in content.bundles.iter().filter(|bundle| present(bundle)) {
        let version = bundle.version_release(false);
        bundles.push((
            &bundle.name,
            version.with_context(|| format!("bundle {} has no version", bundle.name))?,
        ));
    }
    // A bundle outside of all channels cannot be installed.
    let in_channel = |name: &str| entries(content).any(|entry| entry.name == name);
    bundles.retain(|(name, _)| in_channel(name));
    bundles.sort_by(|(_, a), (_, b)| a.cmp_precedence(b));
    let Some((newest, _)) = bundles.last() else {
        bail!(
            "none of the bundles at hand is in a channel of the catalog's package {}",
            content.name
        )
    };
    let found = bundles
        .iter()
        .find_map(|(oldest, _)| shortest_path(content, &bundles, oldest, newest))
        .unwrap_or_default();
    let version_of = |name: &str| {
        bundles
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, version)| version)
    };
    let entry = |name: &str| {
        let version = version_of(name)
            .map(VersionRelease::legacy_string)
            .unwrap_or_default();
        PathEntry {
            name: name.to_owned(),
            version,
        }
    };
    Ok(found.into_iter().map(entry).collect())
}

fn entries(content: &PackageContent) -> impl Iterator<Item = &Entry> {
    content.channels.iter().flat_map(|channel| &channel.entries)
}

/// Returns the shortest path between two bundles, both included.
fn shortest_path<'a>(
    content: &PackageContent,
    bundles: &[(&'a str, VersionRelease)],
    from: &'a str,
    to: &'a str,
) -> Option<Vec<&'a str>> {
    let mut predecessors: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at == to {
            let mut path = vec![to];
            let mut step = to;
            while step != from {
                step = predecessors.get(step).copied()?;
                path.push(step);
            }
            path.reverse();
            return Some(path);
        }
        let version = &bundles.iter().find(|(name, _)| *name == at)?.1;
        for (next, _) in bundles {
            let is_edge = entries(content).any(|entry| entry.name == *next && replaces(entry, at, version));
            if is_edge && *next != from && !predecessors.contains_key(next) {
                predecessors.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}

fn replaces(entry: &Entry, name: &str, version: &VersionRelease) -> bool {
    let in_range = || {
        entry
            .skip_range
            .parse::<SkipRange>()
            .is_ok_and(|range| range.matches(&version.version))
    };
    entry.name != name
        && (entry.replaces == name || entry.skips.iter().any(|skipped| skipped == name) || in_range())
}

#[cfg(test)]
mod tests {
    use super::*;
    use olm_fbc::{Limits, decode};

    fn content() -> PackageContent {
        let text = std::fs::read_to_string(
            crate::workspace::testdata()
                .join("sample-catalog")
                .join("second")
                .join("catalog.yaml"),
        )
        .unwrap();
        let metas: Vec<_> = decode(text.as_bytes(), &Limits::default())
            .map(Result::unwrap)
            .collect();
        PackageContent::from_metas("sample-operator", metas).unwrap()
    }

    fn versions(present: &[&str]) -> Vec<String> {
        let path = path(&content(), |bundle| {
            present.iter().any(|version| bundle.name.ends_with(version))
        });
        path.unwrap().into_iter().map(|entry| entry.version).collect()
    }

    #[test]
    fn the_path_leads_from_the_oldest_to_the_newest() {
        assert_eq!(versions(&["1.0.0", "1.1.0"]), ["1.0.0", "1.1.0"]);
        assert_eq!(versions(&["1.0.0", "1.1.0", "2.0.0"]), ["1.0.0", "2.0.0"]);
        assert_eq!(versions(&["1.1.0"]), ["1.1.0"]);
    }

    #[test]
    fn no_present_bundle_is_an_error() {
        assert!(path(&content(), |_| false).is_err());
    }
}
