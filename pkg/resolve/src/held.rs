//! Successor that parts of the spec hold back.
//!
//! The choice is repeated without each part of the spec in turn, the smallest part first. The result is therefore
//! always a bundle that the relaxed spec would install.

use crate::Request;
use crate::choose::{choose, installable};
use crate::known_catalogs::KnownCatalogs;
use crate::parsed_request::ParsedRequest;
use olm_text::name::{BundleName, CatalogName};
use olm_version::{RequestedRange, VersionRelease, go_quote as quote};
use std::fmt;

/// Successor of the installed bundle that parts of the spec hold back. `Display` is one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Its version.
    pub version: VersionRelease,
    /// Its name.
    pub bundle: BundleName,
    /// The catalog that has it.
    pub catalog: CatalogName,
    /// Part of the spec that holds the bundle back.
    pub by: HeldBy,
}

/// Parts of `spec.source.catalog` that can hold a successor back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBy {
    /// The range of versions.
    Version {
        /// The range.
        range: RequestedRange,
    },
    /// The choice of channels.
    Channels {
        /// The channels as written.
        channels: Vec<String>,
    },
    /// Version and channels each hold the successor back; leaving out one of them is not enough.
    VersionAndChannels {
        /// The range.
        range: RequestedRange,
        /// The channels as written.
        channels: Vec<String>,
    },
}

/// Returns the successor that is held back when `request` is answered with `chosen`; none if no bundle is installed.
pub(crate) fn held_back(
    known: &KnownCatalogs<'_>,
    request: &Request,
    chosen: &VersionRelease,
) -> Option<HeldBack> {
    request.installed.as_ref()?;
    let range = request.range.clone();
    let channels = Some(request.channels.clone()).filter(|channels| !channels.is_empty());
    let parts = [
        range.clone().map(|range| HeldBy::Version { range }),
        channels.clone().map(|channels| HeldBy::Channels { channels }),
        range
            .zip(channels)
            .map(|(range, channels)| HeldBy::VersionAndChannels { range, channels }),
    ];
    parts.into_iter().flatten().find_map(|by| {
        let mut relaxed = request.clone();
        if !matches!(by, HeldBy::Channels { .. }) {
            relaxed.range = None;
        }
        if !matches!(by, HeldBy::Version { .. }) {
            relaxed.channels.clear();
        }
        let parsed = ParsedRequest::new(&relaxed, None).ok()?;
        let choice = choose(known, &parsed).ok()?;
        let found = installable(known, &choice, &relaxed).ok()?;
        found.version.cmp_precedence(chosen).is_gt().then(|| HeldBack {
            version: found.version.clone(),
            bundle: found.candidate.bundle.name.clone().into(),
            catalog: found.facts.name().clone(),
            by,
        })
    })
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Version {} (bundle {} of catalog {}) is held back by ",
            self.version,
            quote(&self.bundle),
            quote(&self.catalog)
        )?;
        match &self.by {
            HeldBy::Version { range } => write!(f, "spec.source.catalog.version {}", quote(range.as_str())),
            HeldBy::Channels { channels } => {
                write!(f, "spec.source.catalog.channels [{}]", channels.join(" "))
            }
            HeldBy::VersionAndChannels { range, channels } => write!(
                f,
                "spec.source.catalog.version {} and channels [{}]",
                quote(range.as_str()),
                channels.join(" ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_part_of_the_spec() {
        let range = RequestedRange::new("<2.0.0").unwrap();
        let channels = vec!["a".to_owned(), "b".to_owned()];
        for (by, end) in [
            (
                HeldBy::Version { range: range.clone() },
                "spec.source.catalog.version \"<2.0.0\"",
            ),
            (
                HeldBy::Channels {
                    channels: channels.clone(),
                },
                "spec.source.catalog.channels [a b]",
            ),
            (
                HeldBy::VersionAndChannels { range, channels },
                "spec.source.catalog.version \"<2.0.0\" and channels [a b]",
            ),
        ] {
            let held = HeldBack {
                version: VersionRelease::parse_legacy("2.0.0").unwrap(),
                bundle: "p.v2".into(),
                catalog: "shop".into(),
                by,
            };
            let begin = "Version 2.0.0 (bundle \"p.v2\" of catalog \"shop\") is held back by ";
            assert_eq!(held.to_string(), format!("{begin}{end}"));
        }
    }
}
