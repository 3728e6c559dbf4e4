//! Table of the versions of a package.

use maud::{Markup, html};
use olm_fbc::lifecycle::Date;
use olm_packages::{PackageProfile, VersionRow, support};
use olm_text::list;
use olm_text::name::CatalogName;

use super::{deprecated, more};
use crate::layout::table;
use crate::text::shown;

/// Maximum number of rows.
const ROWS: usize = 1000;
/// Maximum number of channels in a cell.
const CHANNELS: usize = 8;

pub(super) fn section(catalog: &CatalogName, package: &PackageProfile, today: Date) -> Markup {
    let mut versions: Vec<VersionRow<'_>> = VersionRow::of(catalog, &package.content, today).collect();
    versions.sort_by(VersionRow::precedence);
    // A column for the catalogs that have lifecycles.
    let has_support = versions.iter().any(|row| !row.support.is_no_data());
    let mut heads = vec!["Version", "Bundle", "Channels", "Deprecated", "Image"];
    if has_support {
        heads.insert(3, "Support");
    }
    let rows = html! {
        @for row in versions.iter().take(ROWS) {
            tr {
                th scope="row" { (shown(row.version.as_deref().unwrap_or("unreadable"))) }
                td { (shown(row.bundle)) }
                td { (shown(&list(&row.channels, CHANNELS))) }
                @if has_support { td { (shown(&support::short(&row.support))) } }
                td { @if let Some(message) = &row.deprecated { (deprecated(message)) } }
                td { code { (shown(row.image)) } }
            }
        }
    };
    html! {
        section aria-labelledby="versions" {
            h2 id="versions" { "Versions" }
            @if versions.is_empty() {
                p { "The package has no bundle." }
            } @else {
                (table("Versions, highest first", &heads, &rows))
            }
            (more(versions.len(), ROWS))
        }
    }
}
