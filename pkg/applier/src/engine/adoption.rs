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
use crate::ownership::{Claim, is_of_sibling};

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
        let of_sibling = is_of_sibling(&live.metadata, &revision.identity);
        if *claim != Claim::Adopt || of_sibling || !item.id.can_stay() || revision.observe {
            return Ok(());
        }
        self.check_revision(revision, item).await
    }

    /// Reads the revision once if it would take one of the objects over from another revision. The states are of reads before this one.
    ///
    /// # Errors
    /// The revision is gone or being deleted, or cannot be read.
    pub(super) async fn check_takeover<'a>(
        &self,
        revision: &Revision,
        states: impl IntoIterator<Item = (&'a PreparedObject, &'a ObjectState)>,
    ) -> Result<(), EngineError> {
        let mut states = states.into_iter();
        match states.find(|(_, state)| state.is_of_sibling(&revision.identity)) {
            Some((item, _)) => self.check_revision(revision, item).await,
            None => Ok(()),
        }
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
