//! Reads the objects of the newest revision, for the plan of the next one.

use olm_decide::extension::Revision;
use olm_decide::extension::plan::Previous;

use crate::cluster_extension::call::CallError;
use crate::cluster_extension::revisions::RevisionStore;

/// Reads the objects of `revision`. Objects that are gone are named, since an upgrade must not depend on them.
pub(crate) async fn previous<'a>(
    store: &impl RevisionStore,
    revision: &'a Revision,
) -> Result<Previous<'a>, CallError> {
    let found = store.content(&revision.name).await?;
    let (objects, missing) = found.map_or_else(Default::default, |found| (found.objects, found.missing));
    Ok(Previous {
        revision,
        objects,
        missing,
    })
}
