//! Writes the parts of the spec that revisions follow to the revisions.

use kube::ResourceExt as _;
use olm_api::{ClusterExtension, ClusterObjectSet};
use olm_decide::object_set::is_held;
use serde_json::json;

use crate::cluster_extension::call::CallError;
use crate::cluster_extension::followed::annotations;
use crate::cluster_extension::revisions::{Change, RevisionStore};

/// Sets the annotations of the spec on the revisions that have others.
pub(crate) async fn follow(
    store: &impl RevisionStore,
    extension: &ClusterExtension,
    revisions: &[ClusterObjectSet],
) -> Result<(), CallError> {
    let wanted: Vec<_> = annotations(extension).collect();
    let differs = |revision: &ClusterObjectSet| {
        wanted
            .iter()
            .any(|(key, value)| revision.annotations().get(*key) != value.as_ref())
    };
    // A revision without its finalizer has no objects left.
    for revision in revisions.iter().filter(|r| is_held(r) && differs(r)) {
        let name = revision.name_any();
        let map: serde_json::Map<_, _> = wanted
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let patch = json!({"metadata": {"uid": revision.metadata.uid, "annotations": map}});
        let change = Change {
            purpose: format!("writing the annotations of the spec to ClusterObjectSet \"{name}\""),
            name,
            patch,
            status: false,
        };
        match store.change(&change).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
