//! `show`: summary of a package.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use olm_fbc::lifecycle::{Date, Phase};
use olm_fbc::{PackageContent, schema};
use olm_resolve::SupportAnswer;
use olm_text::name::CatalogName;
use olm_version::MinorVersion;
use serde::Serialize;

use super::common::{deprecation, package, version, version_text};
use crate::classic::heads;
use crate::cli::PackageArgs;
use crate::failure::Failure;
use crate::installed::found;
use crate::lifecycle;
use crate::phrase::counted;
use crate::report::Report;
use crate::style::{Paint, Style};
use crate::table::{Table, clean, list, summary};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PackageSummary<'a> {
    catalog: &'a CatalogName,
    description: &'a str,
    default_channel: &'a str,
    bundles: usize,
    highest_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    deprecated_bundles: usize,
    channels: Vec<ChannelSummary<'a>>,
    /// Minor versions with a bundle, highest first; empty if the catalog has no lifecycles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    support: Vec<SupportAnswer>,
    /// Lifecycles that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored_lifecycles: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChannelSummary<'a> {
    name: &'a str,
    default: bool,
    heads: Vec<&'a str>,
    head_versions: Vec<String>,
    entries: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
}

impl<'a> PackageSummary<'a> {
    fn new(catalog: &'a CatalogName, content: &'a PackageContent, today: Date) -> Self {
        let package = content.package.as_ref();
        let default_channel = package.map_or("", |package| package.default_channel.as_str());
        let highest = content
            .bundles
            .iter()
            .filter_map(|bundle| version(content, &bundle.name))
            .max_by(olm_version::VersionRelease::cmp_precedence);
        let is_deprecated = |name: &str| deprecation(content, schema::BUNDLE, name).is_some();
        Self {
            catalog,
            description: package.map_or("", |package| package.description.as_str()),
            default_channel,
            bundles: content.bundles.len(),
            highest_version: highest.map(|version| version.to_string()),
            deprecated: deprecation(content, schema::PACKAGE, ""),
            deprecated_bundles: content
                .bundles
                .iter()
                .filter(|bundle| is_deprecated(&bundle.name))
                .count(),
            channels: content
                .channels
                .iter()
                .map(|channel| {
                    let heads = heads(channel);
                    ChannelSummary {
                        name: &channel.name,
                        default: channel.name == default_channel,
                        head_versions: heads.iter().map(|head| version_text(content, head)).collect(),
                        heads,
                        entries: channel.entries.len(),
                        deprecated: deprecation(content, schema::CHANNEL, &channel.name),
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

    fn write(&self, text: &mut String, style: Style) {
        let title = style.paint(Paint::Bold, &format!("Catalog {}", clean(self.catalog)));
        let _ = writeln!(text, "{title}");
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                let _ = writeln!(text, "  {name:<17}{}", clean(value));
            }
        };
        line("Description", &summary(self.description, usize::MAX));
        line("Default channel", self.default_channel);
        line(
            "Highest version",
            self.highest_version.as_deref().unwrap_or("none"),
        );
        let bundles = match self.deprecated_bundles {
            0 => self.bundles.to_string(),
            count => format!("{}, {count} of them deprecated", self.bundles),
        };
        line("Bundles", &bundles);
        if let Some(message) = &self.deprecated {
            let value = if message.is_empty() {
                "yes"
            } else {
                message.as_str()
            };
            line("Deprecated", value);
        }
        for ignored in &self.ignored_lifecycles {
            line("Lifecycles", ignored);
        }
        let mut table = Table::new(&["CHANNEL", "HEAD", "BUNDLES", "NOTES"]);
        for channel in &self.channels {
            let mut notes = Vec::new();
            if channel.default {
                notes.push("default".to_owned());
            }
            if channel.heads.len() != 1 {
                notes.push(counted(channel.heads.len(), "head"));
            }
            if let Some(message) = &channel.deprecated {
                notes.push(format!("deprecated: {message}"));
            }
            let paint = if channel.deprecated.is_some() {
                Paint::Warn
            } else {
                Paint::Plain
            };
            table.row(
                paint,
                [
                    channel.name,
                    &list(&channel.head_versions, style.at_most(3)),
                    &channel.entries.to_string(),
                    &notes.join("; "),
                ],
            );
        }
        text.push('\n');
        text.push_str(&table.text(style, "  "));
        if !self.support.is_empty() {
            text.push('\n');
            text.push_str(&support_table(&self.support).text(style, "  "));
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

fn support_table(answers: &[SupportAnswer]) -> Table {
    let mut table = Table::new(&["VERSION", "SUPPORT", "PHASE ENDS", "NEXT PHASE", "PLATFORMS"]);
    for answer in answers {
        let text = lifecycle::short(answer);
        let day = |phase: &Phase| phase.end_date.map(|day| day.to_string());
        let row = match answer {
            SupportAnswer::NoData => continue,
            SupportAnswer::Unknown(unknown) => [
                unknown.version.to_string(),
                text,
                String::new(),
                String::new(),
                String::new(),
            ],
            SupportAnswer::Known(support) => [
                support.version.to_string(),
                text,
                support.phase.as_ref().and_then(day).unwrap_or_default(),
                support
                    .next
                    .as_ref()
                    .map(|next| next.name.clone())
                    .unwrap_or_default(),
                lifecycle::platforms(&support.platforms),
            ],
        };
        table.row(lifecycle::paint(answer), row);
    }
    table
}

/// Shows the package in each catalog.
pub(crate) async fn run(args: PackageArgs, style: Style) -> Result<Report, Failure> {
    let inputs = package(&args.source, &args.package).await?;
    let today = lifecycle::today();
    let shown: Vec<PackageSummary<'_>> = found(&inputs)
        .map(|(catalog, content)| PackageSummary::new(catalog, content, today))
        .collect();
    let mut text = format!("Package {}\n", style.paint(Paint::Bold, &clean(&args.package)));
    for catalog in &shown {
        text.push('\n');
        catalog.write(&mut text, style);
    }
    let value = serde_json::json!({"package": args.package, "catalogs": shown});
    Ok(Report::new(value, text))
}
