//! Checks before adoptions: the revision must still exist.
//!
//! A former leader that goes on late would take back what the removal of the revision has handed over to an older one. A read of the
//! revision after those of the objects shows the removal: objects are handed over only after the revision is marked as deleted.
//!
//! The garbage collector deletes an object whose only owner is gone, and with a CRD or a Namespace all that it holds. A former leader
//! that goes on late would give what another removal has left to a revision that is gone.

use kube::api::{Api, DynamicObject};
use olm_api::ClusterObjectSet;

use super::apply::ObjectState;
use super::call::timed;
use super::{Engine, EngineError, PreparedObject, Revision};
use crate::ownership::{Claim, controller};

impl Engine {
    /// Reads the revision if it would be the only one of its extension among the owners of a CRD or a Namespace.
    ///
    /// # Errors
    /// The revision is gone or being deleted, or cannot be read.
    pub(super) async fn check_adoption(
        &self,
        revision: &Revision,
        item: &PreparedObject,
        live: &DynamicObject,
        claim: &Claim,
    ) -> Result<(), EngineError> {
        let identity = &revision.identity;
        let of_sibling = controller(&live.metadata)
            .is_some_and(|owner| identity.siblings.iter().any(|sibling| sibling.uid == owner.uid));
        if *claim != Claim::Adopt || of_sibling || !item.id.can_stay() || revision.observe {
            return Ok(());
        }
        self.check_revision(revision, item).await
    }

    /// Reads the revision if it would take the object over from an older one.
    ///
    /// # Errors
    /// The revision is gone or being deleted, or cannot be read.
    pub(super) async fn check_takeover(
        &self,
        revision: &Revision,
        item: &PreparedObject,
        state: &ObjectState,
    ) -> Result<(), EngineError> {
        if state.is_of_sibling(&revision.identity) {
            return self.check_revision(revision, item).await;
        }
        Ok(())
    }

    /// Reads the revision, which is to adopt the object.
    async fn check_revision(&self, revision: &Revision, item: &PreparedObject) -> Result<(), EngineError> {
        let identity = &revision.identity;
        let api: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let read = timed(api.get_metadata_opt(&identity.name)).await;
        let present = read.map_err(|source| EngineError::object(&item.id, "reading its revision", source))?;
        let stays = present.is_some_and(|set| {
            set.metadata.uid.as_deref() == Some(&identity.uid) && set.metadata.deletion_timestamp.is_none()
        });
        if stays {
            return Ok(());
        }
        let reason = format!(
            "ClusterObjectSet \"{}\" is deleted, so it does not adopt the object",
            identity.name
        );
        Err(EngineError::invalid(&item.id, reason))
    }
}
