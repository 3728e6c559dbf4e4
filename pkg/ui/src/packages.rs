//! Page of the packages.

use maud::{Markup, html};
use olm_packages::PackageProfile;
use olm_text::{counted, summary};

use crate::catalogs::notices;
use crate::icon::icon_name;
use crate::layout::{Medium, Place, page};
use crate::markdown::first_paragraph;
use crate::paths::package_path;
use crate::search::Hit;
use crate::text::shown;

/// Longest description in a list, in characters.
const DESCRIPTION: usize = 160;

/// Maximum number of packages on a live page; a search finds the others.
const PACKAGES: usize = 500;

/// Returns the page of a site that lists packages.
pub(crate) fn site_page(hits: &[Hit<'_>]) -> Markup {
    let content = html! {
        h1 { "Packages" }
        p { (counted(hits.len(), "package")) ". " a href="keywords.html" { "Find packages by keyword" } "." }
        (cards(hits))
    };
    page(Medium::Site, Place::Packages, "Packages", &content)
}

/// Returns the live page of the packages that were found for `query`, best match first; `remarks` are sentences about catalogs that
/// cannot be read.
pub fn packages_page(query: &str, hits: &[Hit<'_>], remarks: &[String]) -> Markup {
    let listed = hits.get(..PACKAGES).unwrap_or(hits);
    let content = html! {
        h1 { "Packages" }
        form action="index.html" method="get" role="search" {
            p {
                label for="q" { "Search " }
                input id="q" name="q" type="search" value=(query) maxlength="256" autocomplete="off" spellcheck="false";
                " " button type="submit" { "Search" }
            }
        }
        p role="status" {
            (counted(hits.len(), "package"))
            @if !query.trim().is_empty() { " for “" (shown(query)) "”" }
            "."
            @if listed.len() < hits.len() { " The first " (listed.len()) " are shown." }
        }
        (notices(remarks))
        (cards(listed))
    };
    page(Medium::Live, Place::Packages, "Packages", &content)
}

fn cards(hits: &[Hit<'_>]) -> Markup {
    html! {
        ul class="packages" {
            @for hit in hits { (card(hit)) }
        }
    }
}

/// Returns the entry of a package in a list.
fn card(hit: &Hit<'_>) -> Markup {
    let package = hit.package;
    let listing = &package.listing;
    html! {
        li {
            (icon(package, Place::Packages))
            div {
                h2 { a href=(package_path(hit.catalog, &listing.name)) { (title(package)) } }
                p { (shown(&described(package))) }
                p class="facts" {
                    span { (shown(&listing.name)) }
                    @if !listing.provider.is_empty() { span { "by " (shown(&listing.provider)) } }
                    span { "catalog " (shown(hit.catalog)) }
                }
            }
        }
    }
}

/// Returns the display name of a package, or its name.
pub(crate) fn title(package: &PackageProfile) -> String {
    let listing = &package.listing;
    let name = listing.display_name.trim();
    shown(if name.is_empty() { &listing.name } else { name })
}

/// Returns the picture of a package; it says nothing that the name beside it does not.
pub(crate) fn icon(package: &PackageProfile, place: Place) -> Markup {
    html! {
        @match &package.icon {
            Some(icon) => {
                @let path = format!("{}icons/{}", place.root(), icon_name(icon));
                img class="icon" src=(path) alt="" width="48" height="48" loading="lazy";
            },
            None => span class="icon none" aria-hidden="true" {},
        }
    }
}

/// Returns a package in a sentence.
fn described(package: &PackageProfile) -> String {
    let texts = [&package.listing.description, &package.metadata.description];
    let text = texts.into_iter().find(|text| !text.trim().is_empty());
    text.map(|text| summary(&first_paragraph(text), DESCRIPTION))
        .unwrap_or_default()
}
