//! Reads of a pass: the API server, catalogs and registries. Nothing here writes to the cluster; warnings of the checks are
//! events.

pub(crate) mod admit;
pub(crate) mod answers;
mod api_services;
pub(crate) mod bundle;
pub(crate) mod catalogs;
mod certificates;
mod crd_roles;
mod crds;
pub(crate) mod dependencies;
pub(crate) mod dependents;
pub(crate) mod former;
pub(crate) mod image;
pub(crate) mod joint;
mod kube_version;
pub(crate) mod namespaces;
mod own_namespace;
mod previous;
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
mod upgradeable;
pub(crate) mod verify;

pub(crate) use certificates::CertificateError;
