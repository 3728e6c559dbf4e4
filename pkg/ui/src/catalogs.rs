//! Page of the catalogs.

use maud::{Markup, html};
use olm_packages::PackageProfile;
use olm_text::counted;
use olm_text::name::CatalogName;

use crate::layout::{Medium, Place, page, table};
use crate::text::shown;

/// Catalog with its packages, by name.
#[derive(Debug)]
pub struct CatalogView {
    /// The catalog.
    pub name: CatalogName,
    /// Its packages.
    pub packages: Vec<PackageProfile>,
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
