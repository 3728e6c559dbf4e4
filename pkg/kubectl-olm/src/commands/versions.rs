//! `versions`: the bundles of a package, highest version first.

use olm_packages::{VersionRow, support};
use olm_text::list;

use super::common::package;
use crate::cli::PackageArgs;
use crate::failure::Failure;
use crate::installed::found;
use crate::lifecycle;
use crate::report::Report;
use crate::style::{Paint, Style};
use crate::table::Table;

/// Lists the versions of a package in all catalogs.
pub(crate) async fn run(args: PackageArgs, style: Style) -> Result<Report, Failure> {
    let inputs = package(&args.source, &args.package).await?;
    let today = lifecycle::today();
    let mut rows: Vec<VersionRow<'_>> = found(&inputs)
        .flat_map(|(catalog, content)| VersionRow::of(catalog, content, today))
        .collect();
    rows.sort_by(VersionRow::precedence);
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
                &support::short(&row.support),
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
