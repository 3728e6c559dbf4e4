//! Upgrade graph of a package: the picture, and the same edges as tables.

use maud::{Markup, html};
use olm_fbc::{Channel, Entry};
use olm_packages::PackageProfile;
use olm_text::name::CatalogName;
use olm_text::{counted, list};

use super::{Installed, more};
use crate::layout::{Place, table};
use crate::paths::{extension_path, graph_path};
use crate::picture::has_picture;
use crate::slug::Slug;
use crate::text::shown;

/// Maximum number of channels, and of rows of all of them.
const CHANNELS: usize = 100;
const ROWS: usize = 2000;
/// Maximum number of skipped bundles in a cell.
const SKIPS: usize = 5;

/// Returns the section of the upgrades; with `installed`, the picture shows the upgrades from there.
pub(super) fn section(
    catalog: &CatalogName,
    package: &PackageProfile,
    installed: Option<&Installed>,
) -> Markup {
    let content = &package.content;
    let path = graph_path(catalog, &package.listing.name);
    let from = installed.map(|installed| format!("?extension={}", Slug::new(&installed.extension)));
    let path = format!("{}{path}{}", Place::Package.root(), from.unwrap_or_default());
    let channels = content
        .channels
        .iter()
        .take(CHANNELS)
        .scan(ROWS, |left, channel| {
            let rows = channel.entries.len().min(*left);
            *left -= rows;
            Some((channel, rows))
        });
    html! {
        section aria-labelledby="upgrades" {
            h2 id="upgrades" { "Upgrades" }
            @if has_picture(content) {
                figure {
                    div class="scroll paper" role="region" aria-label="Upgrade graph" tabindex="0" {
                        img src=(path) alt="The upgrade graph; the tables below list its edges." loading="lazy";
                    }
                    figcaption {
                        a href=(path) { "Open the graph" } " to zoom, with the names of the bundles as tooltips."
                        @if let Some(installed) = installed {
                            " Upgrades from " (shown(&installed.version)) ": a thick line is chosen, thin ones are possible or come later, dashes are \
                             held back, dots cannot run on this cluster. "
                            a href={ (Place::Package.root()) (extension_path(&installed.extension)) "#choice" } { "Why, bundle by bundle" } "."
                        }
                    }
                }
            }
            @for (channel, rows) in channels { (edges(channel, rows)) }
            (more(content.channels.len(), CHANNELS))
        }
    }
}

/// Returns the edges of a channel, as a table that opens on demand.
fn edges(channel: &Channel, limit: usize) -> Markup {
    let rows = html! {
        @for entry in channel.entries.iter().take(limit) { (edge(entry)) }
    };
    let caption = format!("Upgrades in channel {}", shown(&channel.name));
    html! {
        details {
            summary { "Channel " (shown(&channel.name)) ": " (counted(channel.entries.len(), "bundle")) }
            (table(&caption, &["Bundle", "Replaces", "Skips", "Skip range"], &rows))
            (more(channel.entries.len(), limit))
        }
    }
}

fn edge(entry: &Entry) -> Markup {
    html! {
        tr {
            th scope="row" { (shown(&entry.name)) }
            td { (shown(&entry.replaces)) }
            td { (shown(&list(&entry.skips, SKIPS))) }
            td { (shown(&entry.skip_range)) }
        }
    }
}
