//! `show`: summary of a package.

use std::fmt::Write as _;

use olm_fbc::lifecycle::Phase;
use olm_packages::{PackageSummary, support};
use olm_resolve::SupportAnswer;
use olm_text::{counted, list, summary};

use super::common::package;
use crate::cli::PackageArgs;
use crate::failure::Failure;
use crate::installed::found;
use crate::lifecycle;
use crate::report::Report;
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Writes the summary of a package in a catalog.
fn write(shown: &PackageSummary<'_>, text: &mut String, style: Style) {
    let title = style.paint(Paint::Bold, &format!("Catalog {}", clean(shown.catalog)));
    let _ = writeln!(text, "{title}");
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<17}{}", clean(value));
        }
    };
    line("Description", &summary(shown.description, usize::MAX));
    line("Default channel", shown.default_channel);
    line(
        "Highest version",
        shown.highest_version.as_deref().unwrap_or("none"),
    );
    let bundles = match shown.deprecated_bundles {
        0 => shown.bundles.to_string(),
        count => format!("{}, {count} of them deprecated", shown.bundles),
    };
    line("Bundles", &bundles);
    if let Some(message) = &shown.deprecated {
        let value = if message.is_empty() {
            "yes"
        } else {
            message.as_str()
        };
        line("Deprecated", value);
    }
    for ignored in &shown.ignored_lifecycles {
        line("Lifecycles", ignored);
    }
    let mut table = Table::new(&["CHANNEL", "HEAD", "BUNDLES", "NOTES"]);
    for channel in &shown.channels {
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
    if !shown.support.is_empty() {
        text.push('\n');
        text.push_str(&support_table(&shown.support).text(style, "  "));
    }
}

fn support_table(answers: &[SupportAnswer]) -> Table {
    let mut table = Table::new(&["VERSION", "SUPPORT", "PHASE ENDS", "NEXT PHASE", "PLATFORMS"]);
    for answer in answers {
        let text = support::short(answer);
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
                support::platforms(&support.platforms),
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
        write(catalog, &mut text, style);
    }
    let value = serde_json::json!({"package": args.package, "catalogs": shown});
    Ok(Report::new(value, text))
}
