//! Catalogs and bundles made from a table: one row is one bundle, its `contents` are words such as
//! `CRD, Deployment, ConfigMap`. Names carry the scenario's id, so that scenarios can run side by side.

mod bundle;
mod catalog;
mod hostile;
mod word;

pub use bundle::{BAD_IMAGE, files as bundle_files};
pub use catalog::{MIRRORED_REGISTRY, Row, catalog_file};
pub use hostile::layer as hostile_layer;
pub use word::Word;

/// A package's name in the catalog: names of a table are local to the scenario.
pub fn package_name(name: &str, id: &str) -> String {
    format!("{name}-{id}")
}

/// A bundle's name in the catalog.
pub fn bundle_name(package: &str, version: &str) -> String {
    format!("{package}.{version}")
}

/// The repository and tag that a bundle is pushed to.
pub fn bundle_repository(package: &str, version: &str) -> String {
    format!("bundles/{package}:v{}", version.replace('+', "_"))
}
