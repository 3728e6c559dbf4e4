//! Takes over a Helm release of upstream's former runtime: the release becomes the first revision.
//!
//! The release stays; its Secrets belong to the extension and are deleted with it. The revision holds the objects of the release,
//! so adopting them by server-side apply restarts no pod. The objects get the labels and annotations that every object of a
//! revision carries. If the bundle renders to the same objects, the revision is [completed](super::revision), else it is followed
//! by a second one.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::condition::{Status, reasons, types};
use olm_api::{ClusterExtension, ClusterObjectSet, CollisionProtection, keys};
use olm_applier::plan;
use olm_decide::extension::desired_state::Settings;
use olm_decide::numbers::highest_gone;
use olm_text::name::PackageName;
use olm_version::BundleVersion;
use serde_json::json;

use super::reference;
use super::revision::{spec, stamp};
use crate::cluster_extension::call::call;
use crate::cluster_extension::followed;
use crate::cluster_extension::gather::release::{Release, ReleaseSecret, RevisionsError};
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::{Change, RevisionStore};

/// Creates the first revision from the release and marks it as rolled out.
pub(super) async fn take_over(
    pass: &Pass<'_>,
    release: &Release,
) -> Result<ClusterObjectSet, RevisionsError> {
    let created = create(pass, release).await?;
    finish(pass, &created, Some(&release.secret)).await
}

/// Finishes a takeover after the creation of its revision. `release` is the Secret of the release if it is not marked.
///
/// The release is marked first: a revision that has succeeded is complete, and nothing looks at its release again.
pub(super) async fn finish(
    pass: &Pass<'_>,
    created: &ClusterObjectSet,
    release: Option<&ReleaseSecret>,
) -> Result<ClusterObjectSet, RevisionsError> {
    if let Some(release) = release {
        mark_taken_over(pass.context.secrets.api(), release, created).await?;
    }
    mark_succeeded(&pass.context.revisions, pass.now, created).await
}

/// Marks the release, so that it is not taken over again if all revisions are deleted: later versions may have replaced its objects.
pub(super) async fn mark_taken_over(
    secrets: &Api<Secret>,
    release: &ReleaseSecret,
    created: &ClusterObjectSet,
) -> Result<(), RevisionsError> {
    let name = &release.name;
    let annotations = json!({keys::TAKEN_OVER_BY_ANNOTATION: created.name_any()});
    let patch = Patch::Merge(json!({"metadata": {"uid": release.uid, "annotations": annotations}}));
    let what = format!("marking Secret \"{name}\" of a Helm release as taken over");
    match call(
        what,
        secrets.patch_metadata(name, &PatchParams::default(), &patch),
    )
    .await
    {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Creates the first revision from the release.
pub(super) async fn create(pass: &Pass<'_>, release: &Release) -> Result<ClusterObjectSet, RevisionsError> {
    let (context, owner) = (pass.context, &pass.name);
    // A revision from this release may be gone already, deleted by others before the release was marked.
    let live = context.revisions.extension(owner).await?;
    let same = live.filter(|live| live.metadata.uid == pass.extension.metadata.uid);
    let number = same.as_ref().map_or(0, highest_gone).saturating_add(1);
    let name = format!("{owner}-{number}");
    tracing::info!(
        secret = release.secret.name,
        revision = name,
        "taking over a Helm release"
    );
    let objects = release.objects().map_err(|why| RevisionsError::Release {
        secret: release.secret.name.clone(),
        why,
    })?;
    let mut annotations = release.bundle_annotations();
    let text = |key: &str| annotations.get(key).map(String::as_str).unwrap_or_default();
    let version = BundleVersion::recorded(
        text(keys::BUNDLE_VERSION_ANNOTATION),
        annotations.get(keys::BUNDLE_RELEASE_ANNOTATION).cloned(),
    );
    let package = PackageName::from(text(keys::PACKAGE_NAME_ANNOTATION));
    let phases = plan::phases(objects, &stamp(owner, &version, &package));
    let digest = plan::digest(&phases);
    let system = &context.shared.system_namespace;
    let probes = plan::probes_of(&phases);
    let packed = plan::pack(&name, system, owner, phases).map_err(RevisionsError::Pack)?;
    annotations.insert(keys::TAKEN_OVER_OBJECTS_ANNOTATION, digest);
    let followed = followed::annotations(pass.extension);
    annotations.extend(followed.filter_map(|(key, value)| Some((key, value?))));
    let revision = json!({
        "apiVersion": ClusterObjectSet::api_version(&()),
        "kind": ClusterObjectSet::kind(&()),
        "metadata": {
            "name": name,
            "labels": {
                keys::OWNER_KIND_LABEL: keys::OWNER_KIND_CLUSTER_EXTENSION, keys::OWNER_NAME_LABEL: owner,
                keys::MIGRATED_FROM_HELM_LABEL: "true",
            },
            "annotations": annotations,
            "ownerReferences": [reference::<ClusterExtension>(pass.extension)],
            "finalizers": [keys::TEARDOWN_FINALIZER],
        },
        // The objects exist and belong to the extension.
        "spec": spec(Settings::of(pass.extension), number, CollisionProtection::None, &packed.phases, &probes),
    });
    let what = format!("creating Revision \"{name}\" from a Helm release");
    Ok(context.revisions.create(what, revision, packed.secrets).await?)
}

/// Sets `Succeeded`, so that the release counts as installed and the next bundle must be its successor.
async fn mark_succeeded(
    store: &impl RevisionStore,
    now: Timestamp,
    created: &ClusterObjectSet,
) -> Result<ClusterObjectSet, RevisionsError> {
    let mut conditions = created.conditions().to_vec();
    let succeeded = olm_status::condition::NewCondition {
        type_: types::ObjectSet::Succeeded.into(),
        status: Status::True,
        reason: reasons::ObjectSet::Succeeded.into(),
        message: "Revision succeeded - migrated from Helm release".to_owned(),
        observed_generation: created.metadata.generation.unwrap_or_default(),
    };
    olm_status::condition::set(&mut conditions, succeeded, &Time(now));
    let name = created.name_any();
    let metadata = json!({"uid": created.metadata.uid, "resourceVersion": created.resource_version()});
    let change = Change {
        purpose: format!("writing the status of Revision \"{name}\""),
        name,
        patch: json!({"metadata": metadata, "status": {"conditions": conditions}}),
        status: true,
    };
    Ok(store.change(&change).await?)
}

#[cfg(test)]
mod tests {
    use olm_decide::extension::History;

    use super::*;
    use crate::cluster_extension::revisions::memory::MemoryRevisions;

    #[tokio::test]
    async fn a_revision_from_a_release_counts_as_installed() {
        let created: ClusterObjectSet = serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "resourceVersion": "3"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "None"},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ProbeFailure", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap();
        let store = MemoryRevisions::new(vec![created.clone()]);
        assert!(History::read(&store.all()).installed.is_none());
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        let succeeded = mark_succeeded(&store, now, &created).await.unwrap();
        assert_eq!(succeeded.conditions().len(), 2, "others stay");
        assert!(History::read(&store.all()).installed.is_some());
        let former = MemoryRevisions::new(vec![ClusterObjectSet {
            metadata: kube::core::ObjectMeta {
                uid: Some("other".to_owned()),
                ..created.metadata.clone()
            },
            ..created.clone()
        }]);
        assert!(
            mark_succeeded(&former, now, &created).await.is_err(),
            "another uid"
        );
    }
}
