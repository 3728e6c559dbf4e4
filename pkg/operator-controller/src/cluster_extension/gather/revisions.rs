//! Reads the revisions of an extension.

use kube::ResourceExt as _;
use olm_api::ClusterObjectSet;
use olm_decide::extension::History;

use super::release::{self, Release, RevisionsError};
use crate::cluster_extension::call::CallError;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore;

/// Revisions of an extension at the start of a pass.
pub(crate) struct Observed {
    /// The revisions, the oldest first.
    pub revisions: Vec<ClusterObjectSet>,
    /// Deployed Helm release of upstream's former runtime, if no revision exists.
    pub release: Option<Release>,
}

/// Reads the revisions of the extension, and its Helm release if it has none.
pub(crate) async fn observe(pass: &Pass<'_>) -> Result<Observed, RevisionsError> {
    let revisions = revisions(
        &pass.context.revisions,
        &pass.name,
        pass.extension.metadata.uid.as_deref(),
    )
    .await?;
    let release = match revisions.as_slice() {
        [] => release::deployed(pass.context, &pass.name).await?,
        _ => None,
    };
    Ok(Observed { revisions, release })
}

/// Returns the revisions of the extension `name`, the oldest first.
///
/// Revisions that another extension object controls belong to an earlier extension of the same name and are left out.
pub(crate) async fn revisions(
    store: &impl RevisionStore,
    name: &str,
    uid: Option<&str>,
) -> Result<Vec<ClusterObjectSet>, CallError> {
    let mut all = store.list(Some(name)).await?;
    all.retain(|object| {
        let controller = object
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true));
        controller.is_none_or(|owner| uid.is_none_or(|uid| owner.uid == uid))
    });
    all.sort_by_key(|object| object.spec.revision);
    Ok(all)
}

/// Checks right before a write that the revisions are still those that `history` shows, as far as the graph and the rules of
/// rollbacks depend on them. Pulls and checks take long, and a rollout that succeeds meanwhile permits other versions.
///
/// # Errors
/// [`Failure::Superseded`] if they changed.
pub(crate) async fn unchanged(pass: &Pass<'_>, history: &History) -> Result<(), Failure> {
    let uid = pass.extension.metadata.uid.as_deref();
    let now = revisions(&pass.context.revisions, &pass.name, uid).await?;
    if History::read(&now).permits_as(history) {
        Ok(())
    } else {
        Err(Failure::Superseded)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster_extension::revisions::memory::MemoryRevisions;

    #[tokio::test]
    async fn revisions_of_a_former_extension_are_left_out() {
        let revision = |number: i64, owner: &str, uid: &str| {
            serde_json::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": format!("x-{number}"), "labels": {olm_api::keys::OWNER_NAME_LABEL: owner},
                    "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": owner, "uid": uid, "controller": true}]},
                "spec": {"lifecycleState": "Active", "revision": number, "collisionProtection": "Prevent"},
            }))
            .unwrap()
        };
        let all = vec![
            revision(1, "x", "old"),
            revision(2, "x", "new"),
            revision(3, "y", "new"),
        ];
        let store = MemoryRevisions::new(all);
        let found = revisions(&store, "x", Some("new")).await.unwrap();
        let names: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
        assert_eq!(names, ["x-2"]);
    }
}
