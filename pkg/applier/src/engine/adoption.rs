//! Check before the adoption of a CRD or a Namespace: the revision must still exist.
//!
//! The garbage collector deletes an object whose only owner is gone, and with a CRD or a Namespace all that it holds. A former leader
//! that goes on late would give what another removal has left to a revision that is gone.

use kube::api::{Api, DynamicObject};
use olm_api::ClusterObjectSet;

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
