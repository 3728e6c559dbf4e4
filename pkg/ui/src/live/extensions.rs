//! Page of the extensions.

use maud::{Markup, html};
use olm_status::overview::{Mood, Overview};
use olm_text::counted;

use super::tables::{class, long};
use crate::layout::{Medium, Place, page, table};
use crate::paths::extension_path;
use crate::text::shown;

/// Returns the page of the extensions of a cluster.
pub fn extensions_page(extensions: &[Overview]) -> Markup {
    let urgent = extensions.iter().filter(|one| !one.remarks.is_empty()).count();
    let unready = extensions
        .iter()
        .filter(|one| one.state.mood != Mood::Good)
        .count();
    let held = extensions.iter().filter(|one| !one.held_back.is_empty()).count();
    let rows = html! {
        @for extension in extensions {
            tr {
                th scope="row" { a href=(extension_path(&extension.name)) { (shown(&extension.name)) } }
                td { (shown(&extension.package)) }
                td { (shown(extension.version.as_str())) }
                td { (shown(&extension.catalog)) }
                td class=[class(extension.state.mood)] { (shown(&extension.state.word)) }
                td { (long(&extension.held_back)) }
                td {
                    @for remark in &extension.remarks {
                        p { strong { (shown(&remark.about)) ". " } (long(&remark.message)) }
                    }
                }
            }
        }
    };
    let heads = [
        "Extension",
        "Package",
        "Version",
        "Catalog",
        "State",
        "Held back",
        "Needs somebody",
    ];
    let content = html! {
        h1 { "Extensions" }
        p {
            (counted(extensions.len(), "extension")) ": "
            (unready) " not ready, " (urgent) " in need of somebody, " (held) " with an upgrade held back."
        }
        @if extensions.is_empty() {
            p { "Nothing is installed. " a href="index.html" { "Look at the packages" } "." }
        } @else {
            (table("Extensions of the cluster", &heads, &rows))
        }
    };
    page(Medium::Live, Place::Extensions, "Extensions", &content)
}
