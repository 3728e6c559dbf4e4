//! Choice of OLM Classic, for comparison.
//!
//! Classic subscribes to one channel and follows its replaces chain from the head. Of the entries on the chain that
//! replace or skip the installed bundle, or whose `skipRange` contains its version, Classic takes the one nearest the
//! head. Classic ignores version ranges, deprecations and other catalogs.

use std::collections::{BTreeMap, BTreeSet};

use olm_fbc::{Channel, Entry, PackageContent};
use olm_text::counted;
use olm_text::name::BundleName;
use olm_version::{BundleVersion, SkipRange, Version};
use serde::Serialize;

/// Classic's choice in one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Choice {
    /// The channel.
    pub(crate) channel: String,
    /// Its replaces chain, head first; empty unless the channel has exactly one head.
    pub(crate) chain: Vec<BundleName>,
    /// The chosen bundle; none if there is no upgrade.
    pub(crate) bundle: Option<BundleName>,
    /// Reason for the choice, or for the absence of one, as one phrase.
    pub(crate) reason: String,
}

/// Returns Classic's choice from `channel` if the bundle (name, version) is installed.
pub(crate) fn choose(channel: &Channel, installed: Option<(&str, &BundleVersion)>) -> Choice {
    let answer = |chain: &[&Entry], bundle: Option<&str>, reason: String| Choice {
        channel: channel.name.clone(),
        chain: chain.iter().map(|entry| entry.name.as_str().into()).collect(),
        bundle: bundle.map(BundleName::from),
        reason,
    };
    let heads = channel.heads();
    let [head] = heads.as_slice() else {
        let reason = format!(
            "the channel has {}, Classic requires one",
            counted(heads.len(), "head")
        );
        return answer(&[], None, reason);
    };
    let chain = chain(channel, head);
    let Some((name, version)) = installed else {
        return answer(&chain, Some(head), "the channel's head".to_owned());
    };
    if name == *head {
        return answer(&chain, None, "it is already the channel's head".to_owned());
    }
    let version = version.parsed().ok();
    let successor = chain.iter().find_map(|entry| {
        Some((
            entry.name.as_str(),
            edge(entry, name, version.map(|version| &version.version))?,
        ))
    });
    match successor {
        Some((bundle, why)) if bundle == *head => {
            answer(&chain, Some(bundle), format!("the channel's head {why} it"))
        }
        Some((bundle, why)) => answer(
            &chain,
            Some(bundle),
            format!("the nearest to the head that {why} it"),
        ),
        None => answer(
            &chain,
            None,
            "nothing on the replaces chain replaces or skips it".to_owned(),
        ),
    }
}

/// Returns the channel that Classic would follow: the wanted one, or the default.
///
/// # Errors
/// A sentence about the missing channel.
pub(crate) fn channel<'a>(content: &'a PackageContent, wanted: Option<&str>) -> Result<&'a Channel, String> {
    let default = content
        .package
        .as_ref()
        .map(|package| package.default_channel.as_str());
    let Some(name) = wanted.or(default).filter(|name| !name.is_empty()) else {
        return Err("the package has no default channel: name one with --channel".to_owned());
    };
    let found = content.channels.iter().find(|channel| channel.name == name);
    found.ok_or_else(|| format!("the package has no channel {name:?}"))
}

/// Returns the sequence of Classic's upgrades from a bundle.
pub(crate) fn path(
    channel: &Channel,
    from: (&str, &BundleVersion),
    versions: &BTreeMap<&str, BundleVersion>,
) -> Vec<BundleName> {
    let mut path: Vec<BundleName> = Vec::new();
    let mut at = (BundleName::from(from.0), from.1.clone());
    while let Some(next) = choose(channel, Some((&at.0, &at.1))).bundle {
        // A cycle would never end.
        if next == from.0 || path.contains(&next) {
            break;
        }
        let version = versions.get(next.as_str()).cloned().unwrap_or_default();
        path.push(next.clone());
        at = (next, version);
    }
    path
}

fn chain<'a>(channel: &'a Channel, head: &str) -> Vec<&'a Entry> {
    let by_name: BTreeMap<&str, &Entry> = channel
        .entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry))
        .collect();
    let mut seen = BTreeSet::new();
    let mut chain = Vec::new();
    let mut at = by_name.get(head);
    while let Some(entry) = at.filter(|entry| seen.insert(entry.name.as_str())) {
        chain.push(*entry);
        at = by_name.get(entry.replaces.as_str());
    }
    chain
}

fn edge(entry: &Entry, name: &str, version: Option<&Version>) -> Option<&'static str> {
    let in_range = || {
        let range: SkipRange = entry.skip_range.parse().ok()?;
        Some(range.matches(version?))
    };
    if entry.replaces == name {
        Some("replaces")
    } else if entry.skips.iter().any(|skipped| skipped == name) {
        Some("skips")
    } else if !entry.skip_range.is_empty() && in_range() == Some(true) {
        Some("has a skipRange around")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, replaces: &str, skips: &[&str], skip_range: &str) -> Entry {
        Entry {
            name: name.to_owned(),
            replaces: replaces.to_owned(),
            skips: skips.iter().map(|&skip| skip.to_owned()).collect(),
            skip_range: skip_range.to_owned(),
        }
    }

    fn channel(entries: Vec<Entry>) -> Channel {
        Channel {
            name: "stable".to_owned(),
            entries,
        }
    }

    #[test]
    fn a_skipped_entry_is_ignored() {
        let channel = channel(vec![
            entry("x.v3", "", &["x.v2"], ""),
            entry("x.v2", "", &[], ">=1.0.0 <2.0.0"),
        ]);
        assert_eq!(channel.heads(), ["x.v3"]);
        assert_eq!(choose(&channel, Some(("x.v1", &"1.0.0".into()))).bundle, None);
        assert_eq!(
            choose(&channel, Some(("x.v2", &"2.0.0".into())))
                .bundle
                .as_deref(),
            Some("x.v3")
        );
    }

    #[test]
    fn one_step_along_the_chain_or_straight_to_the_head() {
        let mut entries = vec![
            entry("x.v1", "", &[], ""),
            entry("x.v2", "x.v1", &[], ""),
            entry("x.v3", "x.v2", &[], ""),
        ];
        let slow = channel(entries.clone());
        assert_eq!(
            choose(&slow, Some(("x.v1", &"1.0.0".into()))).bundle.as_deref(),
            Some("x.v2")
        );
        assert_eq!(choose(&slow, Some(("x.v3", &"3.0.0".into()))).bundle, None);
        assert_eq!(
            path(&slow, ("x.v1", &"1.0.0".into()), &BTreeMap::new()),
            ["x.v2", "x.v3"]
        );
        if let Some(head) = entries.last_mut() {
            head.skip_range = ">=1.0.0 <3.0.0".to_owned();
        }
        let fast = channel(entries);
        assert_eq!(
            choose(&fast, Some(("x.v1", &"1.0.0".into()))).bundle.as_deref(),
            Some("x.v3")
        );
        assert_eq!(choose(&fast, None).bundle.as_deref(), Some("x.v3"));
    }

    #[test]
    fn a_cyclic_chain_ends() {
        let mut entries = vec![
            entry("h", "a", &[], ""),
            entry("a", "b", &[], ""),
            entry("b", "a", &[], ""),
        ];
        assert_eq!(choose(&channel(entries.clone()), None).chain, ["h", "a", "b"]);
        entries.remove(0);
        assert!(choose(&channel(entries), None).chain.is_empty());
    }
}
