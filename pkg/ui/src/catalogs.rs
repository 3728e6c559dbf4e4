//! Page of the catalogs.

use maud::{Markup, html};
use olm_packages::{PackageProfile, Texts};
use olm_text::counted;
use olm_text::name::CatalogName;

use crate::layout::{Medium, Place, page, table};
use crate::text::shown;

/// Catalog with its packages, by name, prepared for searches.
#[derive(Debug)]
pub struct CatalogView {
    name: CatalogName,
    packages: Vec<PackageProfile>,
    /// Texts of the packages, in their order.
    texts: Vec<Texts>,
}

impl CatalogView {
    /// Prepares the packages of a catalog.
    pub fn new(name: CatalogName, packages: Vec<PackageProfile>) -> Self {
        Self {
            name,
            texts: packages
                .iter()
                .map(|package| Texts::of(&package.listing))
                .collect(),
            packages,
        }
    }

    /// Returns the catalog's name.
    pub fn name(&self) -> &CatalogName {
        &self.name
    }

    /// Returns its packages.
    pub fn packages(&self) -> &[PackageProfile] {
        &self.packages
    }

    /// Returns the packages with the texts in which a search looks.
    pub(crate) fn searched(&self) -> impl Iterator<Item = (&PackageProfile, &Texts)> {
        self.packages.iter().zip(&self.texts)
    }
}

/// Returns the page of the catalogs; `remarks` are sentences about catalogs that cannot be read.
pub fn catalogs_page(medium: Medium, catalogs: &[&CatalogView], remarks: &[String]) -> Markup {
    let rows = html! {
        @for catalog in catalogs {
            @let bundles: usize = catalog.packages.iter().map(|package| package.content.bundles.len()).sum();
            @let channels: usize = catalog.packages.iter().map(|package| package.content.channels.len()).sum();
            tr {
                th scope="row" { (shown(&catalog.name)) }
                td class="number" { (catalog.packages.len()) }
                td class="number" { (channels) }
                td class="number" { (bundles) }
            }
        }
    };
    let content = html! {
        h1 { "Catalogs" }
        p { (counted(catalogs.len(), "catalog")) "." }
        (notices(remarks))
        (table("Content of the catalogs", &["Catalog", "Packages", "Channels", "Bundles"], &rows))
    };
    page(medium, Place::Catalogs, "Catalogs", &content)
}

/// Returns sentences about what is missing.
pub(crate) fn notices(remarks: &[String]) -> Markup {
    html! {
        @for remark in remarks { p class="notice" { (shown(remark)) } }
    }
}
