//! Reads of a pass: the API server, catalogs and registries. Nothing here writes to the cluster; warnings of the checks are
//! events.

pub(crate) mod bundle;
pub(crate) mod catalogs;
mod certificates;
mod crds;
pub(crate) mod dependencies;
pub(crate) mod image;
mod provider;
pub(crate) mod release;
pub(crate) mod render;
pub(crate) mod revisions;
mod rights;
mod served;
mod stored;
pub(crate) mod stores;
pub(crate) mod tag_cache;
pub(crate) mod target;
pub(crate) mod verify;

pub(crate) use certificates::CertificateError;
