//! Queries of a catalog.

use olm_fbc::{ContentError, Meta};
use olm_text::name::PackageName;

/// Function that adds a meta to the state of a query.
pub(super) type AddMeta<T> = fn(&mut T, Meta) -> Result<(), ContentError>;

/// Metas of a catalog that a command needs. A source may deliver more.
#[derive(Clone, Debug)]
pub(super) enum Query {
    Everything,
    /// Every `olm.package`.
    Packages,
    /// Every `olm.package`, and the descriptive fields of bundles.
    Descriptions,
    Package(PackageName),
}

impl Query {
    /// Returns the package, if the query is of one alone.
    pub(super) fn package(&self) -> Option<&PackageName> {
        match self {
            Self::Package(package) => Some(package),
            Self::Everything | Self::Packages | Self::Descriptions => None,
        }
    }
}

/// The fields of an `olm.bundle` that this crate reads and requests from catalogd.
pub(super) const FIELDS: &str = "schema,name,package,properties.type,properties.value.displayName,\
    properties.value.keywords,properties.value.provider.name";
