//! `diff`: changes of a catalog update, and the installed versions that they affect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use olm_fbc::{PackageContent, schema};
use olm_resolve::{CatalogInput, CatalogLookup, Installed, Request, near_names, resolve};
use olm_text::list;
use olm_text::name::PackageName;
use olm_version::BundleVersion;
use serde::Serialize;

use super::common::unknown;
use crate::cli::DiffArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Catalog;
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Maximum number of versions in a line on a terminal.
const NAMED: usize = 6;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PackageChange {
    package: PackageName,
    change: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    added_bundles: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed_bundles: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deprecated_bundles: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<ChannelChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    updates: Vec<Update>,
}

#[derive(Serialize)]
struct ChannelChange {
    channel: String,
    change: &'static str,
    before: Vec<String>,
    after: Vec<String>,
}

/// Effect of the update on users who have one of `installed`.
#[derive(Serialize)]
struct Update {
    installed: Vec<String>,
    before: String,
    after: String,
}

/// Compares two catalogs. The result is always positive.
pub(crate) async fn run(args: DiffArgs, style: Style) -> Result<Report, Failure> {
    let old = Catalog::from_word(&args.old, &args.access)
        .await?
        .everything()
        .await?;
    let new = Catalog::from_word(&args.new, &args.access)
        .await?
        .everything()
        .await?;
    let names: BTreeSet<&PackageName> = old.keys().chain(new.keys()).collect();
    if let Some(missing) = args.packages.iter().find(|name| !names.contains(name)) {
        let similar = near_names(missing, names.iter().map(|name| name.as_str()));
        let absent = format!("package {missing:?} is in neither catalog");
        return Err(unknown(absent, &similar));
    }
    let wanted = |name: &&&PackageName| args.packages.is_empty() || args.packages.contains(**name);
    let changes: Vec<PackageChange> = names
        .iter()
        .filter(wanted)
        .filter_map(|name| compare(name, old.get(*name), new.get(*name), &args.channels))
        .collect();
    let mut text = String::new();
    for change in &changes {
        change.write(&mut text, style);
    }
    if changes.is_empty() {
        text.push_str("No package differs.\n");
    }
    Ok(Report::new(serde_json::json!({"packages": changes}), text))
}

fn compare(
    name: &PackageName,
    old: Option<&PackageContent>,
    new: Option<&PackageContent>,
    channels: &[String],
) -> Option<PackageChange> {
    let nothing = PackageContent::default();
    let change = match (old, new) {
        (Some(old), Some(new)) if old == new => return None,
        (Some(_), Some(_)) => "changed",
        (None, _) => "added",
        (_, None) => "removed",
    };
    let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    let names = |content: &PackageContent| -> BTreeSet<String> {
        content.bundles.iter().map(|bundle| bundle.name.clone()).collect()
    };
    let (before, after) = (names(old), names(new));
    let shown = |content: &PackageContent, bundles: Vec<&String>| -> Vec<String> {
        let mut bundles = bundles;
        bundles.sort_by(|a, b| by_version(content, a, b));
        bundles
            .iter()
            .map(|bundle| content.version_text(bundle))
            .collect()
    };
    let is_deprecated =
        |content: &PackageContent, bundle: &str| content.deprecation(schema::BUNDLE, bundle).is_some();
    let newly_deprecated: Vec<&String> = after
        .iter()
        .filter(|bundle| is_deprecated(new, bundle) && !is_deprecated(old, bundle))
        .collect();
    Some(PackageChange {
        package: name.clone(),
        change,
        added_bundles: shown(new, after.difference(&before).collect()),
        removed_bundles: shown(old, before.difference(&after).collect()),
        deprecated_bundles: shown(new, newly_deprecated),
        channels: channel_changes(old, new),
        updates: if change == "changed" {
            updates(name, old, new, channels)
        } else {
            Vec::new()
        },
    })
}

fn by_version(content: &PackageContent, a: &str, b: &str) -> std::cmp::Ordering {
    match (content.version(a), content.version(b)) {
        (Some(a), Some(b)) => b.cmp_precedence(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Returns channels that were added or removed, or whose heads changed. Heads depend on entries only, not on bundles.
fn channel_changes(old: &PackageContent, new: &PackageContent) -> Vec<ChannelChange> {
    let heads = |content: &PackageContent| -> BTreeMap<String, BTreeSet<String>> {
        let channels = content.channels.iter();
        let named = channels.map(|channel| {
            let heads = channel.heads().into_iter().map(ToOwned::to_owned);
            (channel.name.clone(), heads.collect())
        });
        named.collect()
    };
    let shown = |content: &PackageContent, heads: Option<&BTreeSet<String>>| -> Vec<String> {
        let heads = heads.into_iter().flatten();
        heads.map(|head| content.version_text(head)).collect()
    };
    let (before, after) = (heads(old), heads(new));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let heads = (before.get(name), after.get(name));
            let change = match heads {
                (Some(old), Some(new)) if old == new => return None,
                (Some(_), Some(_)) => "head moved",
                (None, _) => "added",
                (_, None) => "removed",
            };
            Some(ChannelChange {
                channel: name.clone(),
                change,
                before: shown(old, heads.0),
                after: shown(new, heads.1),
            })
        })
        .collect()
}

/// Returns, for every bundle of the old catalog, the choice with that bundle installed, before and after the update.
fn updates(
    name: &PackageName,
    old: &PackageContent,
    new: &PackageContent,
    channels: &[String],
) -> Vec<Update> {
    let input = |content: &PackageContent| {
        [CatalogInput {
            name: "catalog".into(),
            priority: 0,
            lookup: CatalogLookup::Found(Arc::new(content.clone())),
        }]
    };
    let (old_input, new_input) = (input(old), input(new));
    let mut bundles: Vec<&str> = old.bundles.iter().map(|bundle| bundle.name.as_str()).collect();
    bundles.sort_by(|a, b| by_version(old, a, b));
    let mut updates: Vec<Update> = Vec::new();
    for bundle in bundles {
        let Some(installed) = old.version(bundle) else {
            continue;
        };
        let installed = BundleVersion::spelled(installed, false);
        let request = Request {
            package: name.clone(),
            channels: channels.to_vec(),
            installed: Some(Installed {
                name: bundle.into(),
                version: installed.clone(),
                ..Installed::default()
            }),
            ..Request::default()
        };
        let choice = |input: &[CatalogInput]| match resolve(&request, input) {
            Ok(found) if found.bundle == bundle => "stays".to_owned(),
            Ok(found) => found.version.to_string(),
            Err(_) => "nothing".to_owned(),
        };
        let (before, after) = (choice(&old_input), choice(&new_input));
        if before == after {
            continue;
        }
        match updates
            .iter_mut()
            .find(|update| update.before == before && update.after == after)
        {
            Some(update) => update.installed.push(installed.to_string()),
            None => updates.push(Update {
                installed: vec![installed.to_string()],
                before,
                after,
            }),
        }
    }
    updates
}

impl PackageChange {
    fn write(&self, text: &mut String, style: Style) {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = style.paint(Paint::Bold, &clean(&self.package));
        let paint = match self.change {
            "added" => Paint::Good,
            "removed" => Paint::Bad,
            _ => Paint::Plain,
        };
        let _ = writeln!(text, "{title}: {}", style.paint(paint, self.change));
        for (what, paint, versions) in [
            ("new", Paint::Good, &self.added_bundles),
            ("gone", Paint::Bad, &self.removed_bundles),
            ("newly deprecated", Paint::Warn, &self.deprecated_bundles),
        ] {
            if !versions.is_empty() {
                let line = clean(&list(versions, style.at_most(NAMED)));
                let _ = writeln!(text, "  {what}: {}", style.paint(paint, &line));
            }
        }
        let mut table = Table::new(&["CHANNEL", "CHANGE", "HEAD BEFORE", "HEAD AFTER"]);
        for channel in &self.channels {
            table.row(
                Paint::Plain,
                [
                    channel.channel.as_str(),
                    channel.change,
                    &list(&channel.before, style.at_most(3)),
                    &list(&channel.after, style.at_most(3)),
                ],
            );
        }
        if !table.is_empty() {
            text.push_str(&table.text(style, "  "));
        }
        let mut table = Table::new(&["INSTALLED", "UPDATE BEFORE", "UPDATE AFTER"]);
        for update in &self.updates {
            let paint = if update.after == "nothing" {
                Paint::Bad
            } else {
                Paint::Plain
            };
            table.row(
                paint,
                [
                    &list(&update.installed, style.at_most(NAMED)),
                    &update.before,
                    &update.after,
                ],
            );
        }
        if !table.is_empty() {
            text.push_str(&table.text(style, "  "));
        }
    }
}
