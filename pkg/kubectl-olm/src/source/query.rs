//! Parts of a catalog.

/// Metas of a catalog that a command needs. A source may deliver more.
#[derive(Clone, Debug)]
pub(super) enum Query {
    Everything,
    /// Every `olm.package`.
    Packages,
    /// Every `olm.package`, and the parts of bundles that describe it.
    Descriptions,
    Package(String),
}

/// The parts of an `olm.bundle` that are read here; they are also all that catalogd is asked for.
pub(super) const FIELDS: &str = "schema,name,package,properties.type,properties.value.displayName,\
    properties.value.keywords,properties.value.provider.name";
