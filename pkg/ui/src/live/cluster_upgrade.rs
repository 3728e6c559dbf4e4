//! Page of an upgrade of the cluster.

use maud::{Markup, html};
use olm_status::overview::Mood;

use super::tables::{class, long, read, table};
use super::views::TableView;
use crate::layout::{Medium, Place, page};
use crate::text::shown;

/// What extensions mean for an upgrade of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterUpgradeView {
    /// Present version.
    pub current: String,
    /// Version after the upgrade.
    pub target: String,
    /// True if nothing blocks it.
    pub free: bool,
    /// Who blocks it, and who waits for it; empty tables are not shown.
    pub tables: Vec<TableView>,
    /// Errors and what is not checked, a sentence each.
    pub remarks: Vec<String>,
}

/// Returns the page; `asked` is the version that the reader asks for, empty for the next one.
pub fn cluster_upgrade_page(asked: &str, view: &Result<ClusterUpgradeView, String>) -> Markup {
    let content = html! {
        h1 { "Cluster upgrade" }
        form action="cluster-upgrade.html" method="get" {
            p {
                label for="to" { "To version " }
                input id="to" name="to" value=(shown(asked)) placeholder="1.37 or 4.19" maxlength="32" autocomplete="off";
                " " button type="submit" { "Check" }
            }
        }
        (read(view, verdict))
    };
    page(Medium::Live, Place::ClusterUpgrade, "Cluster upgrade", &content)
}

fn verdict(view: &ClusterUpgradeView) -> Markup {
    let mood = if view.free { Mood::Good } else { Mood::Bad };
    html! {
        p class=[class(mood)] {
            "From " (shown(&view.current)) " to " (shown(&view.target)) ": "
            @if view.free { "no extension blocks the upgrade." } @else { "extensions block the upgrade." }
        }
        @for found in view.tables.iter().filter(|found| !found.rows.is_empty()) {
            h2 { (shown(&found.title)) }
            (table(found, ""))
        }
        @for remark in &view.remarks { p class="notice" { (long(remark)) } }
    }
}
