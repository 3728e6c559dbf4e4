//! Reads the revisions of an extension.

use kube::{Resource as _, ResourceExt as _};
use olm_api::condition::{is_true, types};
use olm_api::{ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_applier::ownership;
use olm_decide::extension::History;
use olm_decide::numbers::highest_gone;

use super::release::{self, Deployed, Release, ReleaseSecret, RevisionsError};
use crate::cluster_extension::call::CallError;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore;

/// Revisions of an extension at the start of a pass.
pub(crate) struct Observed {
    /// The revisions, the oldest first.
    pub revisions: Vec<ClusterObjectSet>,
    /// Takeover of a Helm release of upstream's former runtime.
    pub takeover: Takeover,
}

/// Step that the takeover of a Helm release still needs.
pub(crate) enum Takeover {
    /// No step: there is no release, or its revision counts as installed.
    None,
    /// The release becomes the first revision.
    Begin(Box<Release>),
    /// The newest revision is from a release, and its creation was not finished; the Secret is that of the release if it is not marked.
    Finish(Option<ReleaseSecret>),
}

/// Reads the revisions of the extension, and its Helm release if the release has no finished revision.
pub(crate) async fn observe(pass: &Pass<'_>) -> Result<Observed, RevisionsError> {
    let (context, name, uid) = (pass.context, &pass.name, pass.extension.metadata.uid.as_deref());
    let revisions = revisions(&context.revisions, name, uid).await?;
    let takeover = match revisions.as_slice() {
        [] => match release::deployed(context, name, uid).await? {
            Deployed::Release(release) => Takeover::Begin(release),
            Deployed::None | Deployed::TakenOver(_) => Takeover::None,
        },
        [.., newest] if is_unfinished(newest) => {
            Takeover::Finish(release::unmarked(context, name, uid).await?)
        }
        _ => Takeover::None,
    };
    Ok(Observed { revisions, takeover })
}

/// Returns true if the revision is from a Helm release and does not count as installed yet: a crash or a conflict interrupted the
/// takeover after the creation.
fn is_unfinished(newest: &ClusterObjectSet) -> bool {
    newest.labels().contains_key(keys::MIGRATED_FROM_HELM_LABEL)
        && newest.spec.lifecycle_state == LifecycleState::Active
        && newest.metadata.deletion_timestamp.is_none()
        && !is_true(newest.conditions(), types::ObjectSet::Succeeded)
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
    all.retain(|object| belongs_to(object, uid));
    all.sort_by_key(|object| object.spec.revision);
    Ok(all)
}

/// Returns the revisions of the extension with this uid among those with `names`, as they are now. The lists of the store may lack what
/// another process wrote that led before this one.
pub(crate) async fn named(
    store: &impl RevisionStore,
    names: &[&str],
    uid: Option<&str>,
) -> Result<Vec<ClusterObjectSet>, CallError> {
    let mut found = Vec::new();
    for name in names {
        found.extend(store.read(name).await?.filter(|object| belongs_to(object, uid)));
    }
    found.sort_by_key(|object| object.spec.revision);
    Ok(found)
}

/// Returns false for a revision that an extension with another uid controls.
fn belongs_to(revision: &ClusterObjectSet, uid: Option<&str>) -> bool {
    let controller = ownership::controller(revision.meta());
    controller.is_none_or(|owner| uid.is_none_or(|uid| owner.uid == uid))
}

/// Checks right before a write that the spec is still that of `extension`, and that the revisions are still those that `history` shows, as
/// far as the graph and the rules of rollbacks depend on them. Returns the extension as it is now. Pulls and checks take long: meanwhile a
/// user pauses, changes or deletes the extension, or a rollout succeeds and permits other versions.
///
/// The extension and its newest revision are read from the API server: the watches may be behind, above all in a process that no longer
/// leads. A revision after the newest one makes the creation fail, because that one has the wanted name. If it is gone again, its number
/// is on the extension.
///
/// # Errors
/// [`Failure::Superseded`] if they changed, so that the next pass follows at once; [`Failure::RevisionGone`] if the newest revision is gone
/// and the watch still shows it.
pub(crate) async fn unchanged(
    store: &impl RevisionStore,
    extension: &ClusterExtension,
    history: &History,
) -> Result<ClusterExtension, Failure> {
    if let Some(newest) = history.newest() {
        // After this read, the list is not older than its answer.
        let read = store.read(&newest.name).await?;
        read.ok_or_else(|| Failure::RevisionGone(newest.name.clone()))?;
    }
    let (name, read) = (extension.name_any(), &extension.metadata);
    let now = revisions(store, &name, read.uid.as_deref()).await?;
    // After the list: a revision that is missing there has left its number.
    let live = store.extension(&name).await?.ok_or(Failure::Superseded)?;
    let same_spec = (&live.metadata.uid, live.metadata.generation) == (&read.uid, read.generation);
    let history_now = History::read(&now).and_gone(highest_gone(&live));
    if same_spec && history_now.permits_as(history) {
        Ok(live)
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
                "metadata": {"name": format!("x-{number}"), "labels": {keys::OWNER_NAME_LABEL: owner},
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
        let found = named(&store, &["x-1", "x-2", "x-4"], Some("new")).await.unwrap();
        let names: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
        assert_eq!(names, ["x-2"]);
    }

    #[tokio::test]
    async fn the_newest_revision_is_read_before_a_write() {
        let revision = |succeeded: &str| -> ClusterObjectSet {
            let conditions = json!([{"type": "Succeeded", "status": succeeded, "reason": "Succeeded", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            serde_json::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": "x-1", "labels": {keys::OWNER_NAME_LABEL: "x"}},
                "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
                "status": {"conditions": conditions},
            }))
            .unwrap()
        };
        let spec =
            json!({"namespace": "n", "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}});
        let extension = ClusterExtension::new("x", serde_json::from_value(spec).unwrap());
        let rolling_out = vec![revision("False")];
        let seen = History::read(&rolling_out);
        let check = async |shown: Vec<ClusterObjectSet>, stored: Vec<ClusterObjectSet>, seen: &History| {
            let store = MemoryRevisions::new(stored).behind(shown).of(extension.clone());
            unchanged(&store, &extension, seen).await
        };
        assert!(
            check(rolling_out.clone(), rolling_out.clone(), &seen)
                .await
                .is_ok()
        );
        // The watch still shows a revision that is rolling out.
        let succeeded = check(rolling_out.clone(), vec![revision("True")], &seen).await;
        assert!(matches!(succeeded, Err(Failure::Superseded)), "{succeeded:?}");
        let gone = check(rolling_out, Vec::new(), &seen).await;
        assert!(
            matches!(&gone, Err(Failure::RevisionGone(name)) if name == "x-1"),
            "{gone:?}"
        );
        let nothing = History::default();
        assert!(check(Vec::new(), Vec::new(), &nothing).await.is_ok());
        // The watch does not show yet that the extension had a revision, which is gone.
        let mut noted = extension.clone();
        let annotation = (keys::HIGHEST_GONE_REVISION_ANNOTATION.to_owned(), "1".to_owned());
        noted.metadata.annotations = Some([annotation].into());
        let store = MemoryRevisions::default().of(noted);
        let gone = unchanged(&store, &extension, &nothing).await;
        assert!(matches!(gone, Err(Failure::Superseded)), "{gone:?}");
        assert!(unchanged(&store, &extension, &nothing.and_gone(1)).await.is_ok());
    }

    #[tokio::test]
    async fn the_extension_is_read_before_a_write() {
        let spec = json!({"namespace": "n", "source": {"sourceType": "Catalog"}});
        let extension: ClusterExtension = serde_json::from_value(json!({"spec": spec,
            "metadata": {"name": "x", "uid": "u", "generation": 1, "resourceVersion": "1"}}))
        .unwrap();
        let check = async |live: Option<ClusterExtension>| {
            let store = MemoryRevisions::default();
            let store = match live {
                Some(live) => store.of(live),
                None => store,
            };
            unchanged(&store, &extension, &History::default()).await
        };
        let mut live = extension.clone();
        live.metadata.resource_version = Some("2".to_owned());
        let found = check(Some(live.clone())).await.unwrap();
        assert_eq!(found.resource_version(), Some("2".to_owned()), "the state of now");
        live.metadata.generation = Some(2);
        let mut again = extension.clone();
        again.metadata.uid = Some("other".to_owned());
        // A changed spec, an extension that was created again, and one that is gone.
        for other in [Some(live), Some(again), None] {
            let checked = check(other).await;
            assert!(matches!(checked, Err(Failure::Superseded)), "{checked:?}");
        }
    }

    #[test]
    fn an_interrupted_takeover_is_unfinished_until_it_succeeded() {
        let unfinished = |change: serde_json::Value| {
            let mut revision = json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": "x-1", "labels": {keys::MIGRATED_FROM_HELM_LABEL: "true"}},
                "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "None"},
            });
            for (key, value) in change.as_object().unwrap() {
                revision[key] = value.clone();
            }
            is_unfinished(&serde_json::from_value(revision).unwrap())
        };
        let condition = |type_: &str| {
            json!({"status": {"conditions": [{"type": type_, "status": "True", "reason": "Succeeded", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        };
        assert!(unfinished(json!({})));
        assert!(unfinished(condition("Available")));
        assert!(!unfinished(condition("Succeeded")));
        assert!(
            !unfinished(json!({"metadata": {"name": "x-1"}})),
            "not from a release"
        );
    }
}
