//! Maintains the revisions before resolution: takes over a Helm release, follows the spec, resumes paused revisions, prunes archived
//! revisions.

use olm_decide::extension::{History, Revision, superfluous};
use olm_decide::numbers::highest_gone;

use super::{follow, pause, take_over};
use crate::cluster_extension::call::{CallError, chain};
use crate::cluster_extension::gather::release::RevisionsError;
use crate::cluster_extension::gather::revisions::{Observed, Takeover};
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore;

/// Revisions of an extension after the writes that they need whatever bundle is resolved.
pub(crate) struct Maintained {
    /// The revisions, as the later steps see them.
    pub history: History,
    /// False if an archived revision could not be deleted.
    pub pruned: bool,
}

/// Carries out what the revisions need whatever bundle is resolved.
pub(crate) async fn maintain(pass: &Pass<'_>, observed: Observed) -> Result<Maintained, RevisionsError> {
    let Observed {
        mut revisions,
        takeover,
    } = observed;
    match (takeover, revisions.last_mut()) {
        (Takeover::Begin(release), _) => revisions.push(take_over::take_over(pass, &release).await?),
        (Takeover::Finish(release), Some(newest)) => {
            *newest = take_over::finish(pass, newest, release.as_ref()).await?;
        }
        _ => {}
    }
    let store = &pass.context.revisions;
    follow::follow(store, pass.extension, &revisions).await?;
    pause::follow(store, &revisions, false).await?;
    let history = History::read(&revisions).and_gone(highest_gone(pass.extension));
    let pruned = prune(store, &history).await;
    if let Err(error) = &pruned {
        tracing::warn!(
            error = chain(error),
            "an archived revision cannot be deleted; trying again"
        );
    }
    Ok(Maintained {
        history,
        pruned: pruned.is_ok(),
    })
}

/// Deletes the archived revisions beyond the number that is kept.
async fn prune(store: &impl RevisionStore, history: &History) -> Result<(), CallError> {
    for Revision { name, uid, .. } in superfluous(history) {
        let what = format!("deleting the archived ClusterObjectSet \"{name}\"");
        // The uid protects the revision of a new extension of the same name.
        store.delete(what, name, uid.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster_extension::revisions::memory::MemoryRevisions;

    #[tokio::test]
    async fn archived_revisions_beyond_five_are_deleted() {
        let revision = |number: i64| {
            let state = if number < 8 { "Archived" } else { "Active" };
            serde_json::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": format!("x-{number}"), "uid": format!("u{number}"), "labels": {olm_api::keys::OWNER_NAME_LABEL: "x"}},
                "spec": {"lifecycleState": state, "revision": number, "collisionProtection": "Prevent"},
            }))
            .unwrap()
        };
        let store = MemoryRevisions::new((1..=8).map(revision).collect());
        prune(&store, &History::read(&store.all())).await.unwrap();
        let left: Vec<String> = store.all().iter().map(kube::ResourceExt::name_any).collect();
        assert_eq!(left, ["x-3", "x-4", "x-5", "x-6", "x-7", "x-8"]);
        assert_eq!(
            store.writes(),
            [
                "deleting the archived ClusterObjectSet \"x-1\"",
                "deleting the archived ClusterObjectSet \"x-2\""
            ]
        );
        prune(&store, &History::read(&store.all())).await.unwrap();
        assert!(store.writes().is_empty());
    }

    #[tokio::test]
    async fn an_archived_revision_of_a_new_extension_stays() {
        let revisions = |uid: &str| {
            let revision = |number: i64| {
                serde_json::from_value(json!({
                    "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                    "metadata": {"name": format!("x-{number}"), "uid": format!("{uid}{number}")},
                    "spec": {"lifecycleState": "Archived", "revision": number, "collisionProtection": "Prevent"},
                }))
                .unwrap()
            };
            (1..=6).map(revision).collect::<Vec<_>>()
        };
        let store = MemoryRevisions::new(revisions("new"));
        prune(&store, &History::read(&revisions("old"))).await.ok();
        assert_eq!(store.all().len(), 6);
    }
}
