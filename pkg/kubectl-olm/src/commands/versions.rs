//! `versions`: the bundles of a package, highest version first.

use std::cmp::Ordering;

use olm_fbc::schema;
use olm_resolve::SupportAnswer;
use olm_text::name::CatalogName;
use olm_version::VersionRelease;
use serde::Serialize;

use super::common::{channels_of, deprecation, package};
use crate::cli::PackageArgs;
use crate::failure::Failure;
use crate::installed::found;
use crate::lifecycle;
use crate::report::Report;
use crate::style::{Paint, Style};
use crate::table::{Table, list};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    catalog: &'a CatalogName,
    bundle: &'a str,
    version: Option<String>,
    image: &'a str,
    channels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    #[serde(skip_serializing_if = "SupportAnswer::is_no_data")]
    support: SupportAnswer,
    #[serde(skip)]
    order: Option<VersionRelease>,
}

impl Row<'_> {
    fn before(&self, other: &Self) -> Ordering {
        let by_version = match (&self.order, &other.order) {
            (Some(mine), Some(theirs)) => theirs.cmp_precedence(mine),
            (mine, theirs) => theirs.is_some().cmp(&mine.is_some()),
        };
        by_version
            .then_with(|| self.bundle.cmp(other.bundle))
            .then_with(|| self.catalog.cmp(other.catalog))
    }
}

/// Lists the versions of a package in all catalogs.
pub(crate) async fn run(args: PackageArgs, style: Style) -> Result<Report, Failure> {
    let inputs = package(&args.source, &args.package).await?;
    let today = lifecycle::today();
    let mut rows: Vec<Row<'_>> = found(&inputs)
        .flat_map(|(catalog, content)| {
            content.bundles.iter().map(move |bundle| {
                let order = bundle.version_release(false).ok();
                Row {
                    catalog,
                    bundle: &bundle.name,
                    version: order.as_ref().map(ToString::to_string),
                    image: &bundle.image,
                    channels: channels_of(content, &bundle.name),
                    deprecated: deprecation(content, schema::BUNDLE, &bundle.name),
                    support: lifecycle::of_bundle(content, order.as_ref(), today),
                    order,
                }
            })
        })
        .collect();
    rows.sort_by(Row::before);
    // A column for the catalogs that have lifecycles.
    let has_support = rows.iter().any(|row| !row.support.is_no_data());
    let heading = [
        "VERSION",
        "BUNDLE",
        "CATALOG",
        "CHANNELS",
        "DEPRECATED",
        "SUPPORT",
    ];
    let columns = heading.len() - usize::from(!has_support);
    let mut table = Table::new(heading.get(..columns).unwrap_or_default());
    for row in &rows {
        let paint = if row.deprecated.is_some() {
            Paint::Warn
        } else {
            lifecycle::paint(&row.support)
        };
        let deprecated = row.deprecated.as_deref().map(|message| match message {
            "" => "yes",
            message => message,
        });
        table.row(
            paint,
            [
                row.version.as_deref().unwrap_or("unreadable"),
                row.bundle,
                row.catalog,
                &list(&row.channels, style.at_most(4)),
                deprecated.unwrap_or_default(),
                &lifecycle::short(&row.support),
            ]
            .into_iter()
            .take(columns),
        );
    }
    let positive = !rows.is_empty();
    let text = if positive {
        table.text(style, "")
    } else {
        "No versions.\n".to_owned()
    };
    let value = serde_json::json!({"package": args.package, "versions": rows});
    Ok(Report::new(value, text).positive(positive))
}
