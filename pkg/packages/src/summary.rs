//! Summary of a package: channels with their heads, deprecations, support.

use std::collections::BTreeSet;

use olm_fbc::lifecycle::Date;
use olm_fbc::{PackageContent, schema};
use olm_resolve::SupportAnswer;
use olm_text::name::CatalogName;
use olm_version::{MinorVersion, VersionRelease};
use serde::Serialize;

/// Package of a catalog in a few values.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageSummary<'a> {
    /// The catalog.
    pub catalog: &'a CatalogName,
    /// Description for people.
    pub description: &'a str,
    /// The channel that older clients default to.
    pub default_channel: &'a str,
    /// Number of bundles.
    pub bundles: usize,
    /// The highest version of a bundle.
    pub highest_version: Option<String>,
    /// Deprecation message; may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Number of deprecated bundles.
    pub deprecated_bundles: usize,
    /// The channels.
    pub channels: Vec<ChannelSummary<'a>>,
    /// Minor versions with a bundle, highest first; empty if the catalog has no lifecycles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub support: Vec<SupportAnswer>,
    /// Lifecycles that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_lifecycles: Vec<String>,
}

/// Channel of a package in a few values.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSummary<'a> {
    /// The channel.
    pub name: &'a str,
    /// True for the default channel.
    pub default: bool,
    /// Its heads.
    pub heads: Vec<&'a str>,
    /// The versions of the heads; the name of a head without a version.
    pub head_versions: Vec<String>,
    /// Number of entries.
    pub entries: usize,
    /// Deprecation message; may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

impl<'a> PackageSummary<'a> {
    /// Summarizes a package; `today` decides about support.
    pub fn new(catalog: &'a CatalogName, content: &'a PackageContent, today: Date) -> Self {
        let package = content.package.as_ref();
        let default_channel = package.map_or("", |package| package.default_channel.as_str());
        let highest = content
            .bundles
            .iter()
            .filter_map(|bundle| bundle.version_release(false).ok())
            .max_by(VersionRelease::cmp_precedence);
        let is_deprecated = |name: &str| content.deprecation(schema::BUNDLE, name).is_some();
        Self {
            catalog,
            description: package.map_or("", |package| package.description.as_str()),
            default_channel,
            bundles: content.bundles.len(),
            highest_version: highest.map(|version| version.to_string()),
            deprecated: content.deprecation(schema::PACKAGE, ""),
            deprecated_bundles: content
                .bundles
                .iter()
                .filter(|bundle| is_deprecated(&bundle.name))
                .count(),
            channels: content
                .channels
                .iter()
                .map(|channel| {
                    let heads = channel.heads();
                    ChannelSummary {
                        name: &channel.name,
                        default: channel.name == default_channel,
                        head_versions: heads.iter().map(|head| content.version_text(head)).collect(),
                        heads,
                        entries: channel.entries.len(),
                        deprecated: content.deprecation(schema::CHANNEL, &channel.name),
                    }
                })
                .collect(),
            support: support(content, today),
            ignored_lifecycles: content
                .lifecycles
                .ignored()
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }
}

/// Returns the support of the minor versions that have a bundle, highest first; empty if the catalog has no lifecycles.
fn support(content: &PackageContent, today: Date) -> Vec<SupportAnswer> {
    let versions = content
        .bundles
        .iter()
        .filter_map(|bundle| bundle.version_release(false).ok());
    let minors: BTreeSet<MinorVersion> = versions.map(|version| (&version.version).into()).collect();
    let answers = minors
        .into_iter()
        .rev()
        .map(|minor| SupportAnswer::of_minor(&content.lifecycles, minor, today));
    answers.filter(|answer| !answer.is_no_data()).collect()
}
