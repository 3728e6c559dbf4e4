//! Places of the files of a site.

use crate::slug::Slug;

/// Returns the path of a package's page from the root of the site.
pub(crate) fn package_path(catalog: &str, package: &str) -> String {
    format!("packages/{}/{}.html", Slug::new(catalog), Slug::new(package))
}

/// Returns the path of the picture of a package's graph from the root of the site.
pub(crate) fn graph_path(catalog: &str, package: &str) -> String {
    format!("graphs/{}/{}.svg", Slug::new(catalog), Slug::new(package))
}
