//! Writes the pause of the extension to its revisions, which are applied by another controller.

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, LifecycleState};
use serde_json::json;

use crate::cluster_extension::call::CallError;
use crate::cluster_extension::revisions::{Change, RevisionStore};

/// Pauses the Active revisions, or resumes them if `paused` is false.
pub(crate) async fn follow(
    store: &impl RevisionStore,
    revisions: &[ClusterObjectSet],
    paused: bool,
) -> Result<(), CallError> {
    let differs = |revision: &&ClusterObjectSet| {
        revision.metadata.deletion_timestamp.is_none()
            && revision.spec.lifecycle_state == LifecycleState::Active
            && (revision.spec.paused == Some(true)) != paused
    };
    for revision in revisions.iter().filter(differs) {
        let name = revision.name_any();
        // Null removes the field: revisions that were never paused do not have it.
        let patch =
            json!({"metadata": {"uid": revision.metadata.uid}, "spec": {"paused": paused.then_some(true)}});
        let change = Change {
            purpose: format!("setting spec.paused of ClusterObjectSet \"{name}\""),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_extension::revisions::memory::MemoryRevisions;

    #[tokio::test]
    async fn only_active_revisions_pause_and_resume_once() {
        let revision = |number: i64, state: &str| {
            serde_json::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": format!("x-{number}"), "uid": format!("u{number}")},
                "spec": {"lifecycleState": state, "revision": number, "collisionProtection": "Prevent"},
            }))
            .unwrap()
        };
        let store = MemoryRevisions::new(vec![revision(1, "Archived"), revision(2, "Active")]);
        let paused = |store: &MemoryRevisions| -> Vec<Option<bool>> {
            store.all().iter().map(|revision| revision.spec.paused).collect()
        };
        follow(&store, &store.all(), true).await.unwrap();
        assert_eq!(paused(&store), [None, Some(true)]);
        assert_eq!(
            store.writes(),
            ["setting spec.paused of ClusterObjectSet \"x-2\""]
        );
        follow(&store, &store.all(), true).await.unwrap();
        assert!(store.writes().is_empty());
        let stale = store.all();
        follow(&store, &stale, false).await.unwrap();
        assert_eq!(paused(&store), [None, None]);
        store.delete(String::new(), "x-2", None).await.unwrap();
        follow(&store, &stale, false).await.unwrap();
    }
}
