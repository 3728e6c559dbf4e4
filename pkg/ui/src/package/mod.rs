//! Page of one package.

mod install;
mod upgrades;
mod versions;

use maud::{Markup, html};
use olm_fbc::lifecycle::Date;
use olm_packages::{PackageProfile, PackageSummary};
use olm_text::list;
use olm_text::name::CatalogName;

use crate::layout::{Medium, Place, page, table};
use crate::markdown::markdown;
use crate::packages::{icon, title};
use crate::paths::extension_path;
use crate::text::{address, shown};

/// Maximum number of channels in a table, and of links and maintainers in a list.
const CHANNELS: usize = 300;
const LINKS: usize = 20;
/// Maximum number of keywords, and of heads of a channel.
const WORDS: usize = 30;

/// Extension that has a bundle of the package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Name of the extension.
    pub extension: String,
    /// Installed version.
    pub version: String,
}

/// Returns the page of a package; `installed` are the extensions that have it, and `today` decides about support.
pub fn package_page(
    medium: Medium,
    catalog: &CatalogName,
    package: &PackageProfile,
    installed: &[Installed],
    today: Date,
) -> Markup {
    let summary = PackageSummary::new(catalog, &package.content, today);
    let description = match package.metadata.description.trim() {
        "" => summary.description,
        description => description,
    };
    let content = html! {
        article {
            div class="head" {
                (icon(package, Place::Package))
                h1 { (title(package)) }
            }
            @if let Some(message) = &summary.deprecated {
                p class="notice" { strong { "Deprecated. " } (shown(message)) }
            }
            (here(installed))
            (facts(&summary, package))
            (install::section(package))
            @if !description.is_empty() {
                section aria-labelledby="description" {
                    h2 id="description" { "Description" }
                    div class="prose" { (markdown(description)) }
                }
            }
            (channels(&summary))
            (versions::section(catalog, package, today))
            (upgrades::section(catalog, package, installed.first()))
        }
    };
    page(medium, Place::Package, &title(package), &content)
}

/// Returns where the package is installed.
fn here(installed: &[Installed]) -> Markup {
    let root = Place::Package.root();
    html! {
        @if !installed.is_empty() {
            ul class="here" {
                @for one in installed.iter().take(LINKS) {
                    li {
                        "Installed: " (shown(&one.version)) " as "
                        a href={ (root) (extension_path(&one.extension)) } { (shown(&one.extension)) }
                    }
                }
            }
            (more(installed.len(), LINKS))
        }
    }
}

/// Returns the facts about a package as a list of terms.
fn facts(summary: &PackageSummary<'_>, package: &PackageProfile) -> Markup {
    let metadata = &package.metadata;
    let keywords: Vec<String> = package.listing.keywords.iter().map(|word| shown(word)).collect();
    let links = metadata
        .links
        .iter()
        .filter_map(|link| Some((&link.name, address(&link.url)?)));
    let links: Vec<_> = links.take(LINKS).collect();
    let people: Vec<&str> = metadata
        .maintainers
        .iter()
        .map(|person| person.name.trim())
        .collect();
    let people: Vec<&str> = people.into_iter().filter(|name| !name.is_empty()).collect();
    let terms = [
        ("Package", shown(&package.listing.name)),
        ("Catalog", shown(summary.catalog)),
        ("Provider", shown(&package.listing.provider)),
        (
            "Highest version",
            shown(summary.highest_version.as_deref().unwrap_or("none")),
        ),
        ("Default channel", shown(summary.default_channel)),
        ("Maturity", shown(&metadata.maturity)),
        ("Keywords", list(&keywords, WORDS)),
        ("Maintainers", shown(&list(&people, LINKS))),
    ];
    html! {
        dl class="terms" {
            @for (term, text) in terms.iter().filter(|(_, text)| !text.is_empty()) {
                div { dt { (term) } dd { (text) } }
            }
            @if !links.is_empty() {
                div {
                    dt { "Links" }
                    dd {
                        ul {
                            @for (name, url) in &links {
                                @let text = if name.trim().is_empty() { url } else { name };
                                li { a href=(url) rel="noopener noreferrer nofollow" { (shown(text)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn channels(summary: &PackageSummary<'_>) -> Markup {
    let rows = html! {
        @for channel in summary.channels.iter().take(CHANNELS) {
            tr {
                th scope="row" { (shown(channel.name)) }
                td { @if channel.default { "default" } }
                td { (shown(&list(&channel.head_versions, WORDS))) }
                td class="number" { (channel.entries) }
                td { @if let Some(message) = &channel.deprecated { (deprecated(message)) } }
            }
        }
    };
    html! {
        section aria-labelledby="channels" {
            h2 id="channels" { "Channels" }
            @if summary.channels.is_empty() {
                p { "The package has no channel." }
            } @else {
                (table("Channels and their heads", &["Channel", "Default", "Head", "Bundles", "Deprecated"], &rows))
            }
            (more(summary.channels.len(), CHANNELS))
        }
    }
}

/// Returns a deprecation message, or a word if it is empty.
fn deprecated(message: &str) -> String {
    shown(if message.is_empty() { "yes" } else { message })
}

/// Returns a line about rows that are not shown.
fn more(count: usize, limit: usize) -> Markup {
    html! {
        @if count > limit { p { "and " (count - limit) " more" } }
    }
}
