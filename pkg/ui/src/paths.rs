//! Places of pages and pictures below the root.

use crate::slug::Slug;

/// Returns the path of a package's page from the root of the site.
pub(crate) fn package_path(catalog: &str, package: &str) -> String {
    format!("packages/{}/{}.html", Slug::new(catalog), Slug::new(package))
}

/// Returns the path of an extension's page from the root.
pub(crate) fn extension_path(extension: &str) -> String {
    format!("extensions/{}.html", Slug::new(extension))
}

/// Returns the path of the page of an extension's plan from the root.
pub(crate) fn plan_path(extension: &str) -> String {
    format!("plans/{}.html", Slug::new(extension))
}

/// Returns the path of the picture of a package's graph from the root of the site.
pub(crate) fn graph_path(catalog: &str, package: &str) -> String {
    format!("graphs/{}/{}.svg", Slug::new(catalog), Slug::new(package))
}
