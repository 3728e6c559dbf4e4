//! Writes of a pass: revisions, their Secrets, finalizers and the status.

mod events;
pub(crate) mod finalizers;
mod follow;
pub(crate) mod maintain;
pub(crate) mod pause;
pub(crate) mod removal;
pub(crate) mod revision;
pub(crate) mod status;
mod take_over;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use olm_api::ClusterObjectSet;
use olm_decide::extension::History;
use olm_text::name::CatalogName;

use super::failure::Failure;

/// Proof that the newest revision is the desired one. Only [`revision`] makes it, after its last write.
pub(crate) struct Applied {
    change: Option<Change>,
    registry_error: Option<Failure>,
}

enum Change {
    Created(Box<ClusterObjectSet>),
    Completed(Box<ClusterObjectSet>),
    Moved {
        revision: String,
        from: CatalogName,
        to: CatalogName,
    },
}

impl Applied {
    fn unchanged(registry_error: Option<Failure>) -> Self {
        Self {
            change: None,
            registry_error,
        }
    }

    fn created(revision: ClusterObjectSet) -> Self {
        Self {
            change: Some(Change::Created(Box::new(revision))),
            registry_error: None,
        }
    }

    fn completed(revision: ClusterObjectSet) -> Self {
        Self {
            change: Some(Change::Completed(Box::new(revision))),
            registry_error: None,
        }
    }

    fn moved(&mut self, revision: String, from: CatalogName, to: CatalogName) {
        self.change = Some(Change::Moved { revision, from, to });
    }

    /// Returns true if nothing was created, completed or moved.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.change.is_none()
    }

    /// Returns the failure of the registry, if the tag of the bundle's image could not be looked up.
    pub(crate) fn registry_error(&self) -> Option<&Failure> {
        self.registry_error.as_ref()
    }

    /// Records the change in the revisions.
    pub(crate) fn record(&self, history: &mut History) {
        match &self.change {
            None => {}
            Some(Change::Created(revision)) => history.add(revision),
            Some(Change::Completed(revision)) => history.replace(revision),
            Some(Change::Moved { revision, from, to }) => history.moved(revision, from, to),
        }
    }
}

/// Returns a controller reference to `owner`.
pub(crate) fn reference<K: kube::Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
