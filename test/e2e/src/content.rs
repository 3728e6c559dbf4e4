//! Generates catalogs and bundles from a table in a scenario. Each row is a bundle, and its `contents` are keywords such as `CRD,
//! Deployment, ConfigMap`. Names include the id of the scenario, so that scenarios can run concurrently.

mod bundle;
mod catalog;
mod hostile;
mod keyword;
pub mod support;

pub use bundle::{BAD_IMAGE, crd as bundle_crd, files as bundle_files};
pub use catalog::{MIRRORED_REGISTRY, Row, catalog_file};
pub use hostile::layer as hostile_layer;
pub use keyword::Keyword;

/// Returns the name of a package in the catalog. Names in a table are local to the scenario.
pub fn package_name(name: &str, id: &str) -> String {
    format!("{name}-{id}")
}

/// Returns the name of a bundle in the catalog.
pub fn bundle_name(package: &str, version: &str) -> String {
    format!("{package}.{version}")
}

/// Returns the repository and the tag of a bundle's image.
pub fn bundle_repository(package: &str, version: &str) -> String {
    format!("bundles/{package}:v{}", version.replace('+', "_"))
}
