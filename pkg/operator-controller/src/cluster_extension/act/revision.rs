//! Creates a revision and adjusts an existing one.

use std::collections::BTreeMap;

use kube::Resource as _;
use olm_api::rollback::{Rollback, RolloutAttempt};
use olm_api::{
    ClusterExtension, ClusterObjectSet, ClusterObjectSetPhase, CollisionProtection, LifecycleState,
    ProgressionProbe, keys,
};
use olm_applier::plan::{self, CommonMetadata};
use olm_decide::extension::desired_state::{CurrentRevision, NewRevision, Settings, TakenOver};
use olm_decide::extension::identity::config;
use olm_decide::extension::{BundleRef, History, RenderInputs};
use olm_text::name::{CatalogName, PackageName};
use olm_version::BundleVersion;
use serde_json::{Value, json};

use super::{Applied, reference};
use crate::cluster_extension::call::CallError;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::gather::admit::Admitted;
use crate::cluster_extension::gather::former::Restorable;
use crate::cluster_extension::gather::image::Located;
use crate::cluster_extension::gather::render::Rendered;
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::{Change, RevisionStore};
use crate::cluster_extension::{act, followed, gather};

/// Record that a new revision carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record<'a> {
    /// Inputs of the rollout; `None` if no catalog was read.
    Attempt(Option<&'a RolloutAttempt>),
    /// The revision has the content of a former one.
    Rollback(&'a Rollback),
}

impl Record<'_> {
    /// Returns the annotation.
    fn annotation(self) -> Option<(&'static str, String)> {
        let (key, text) = match self {
            Self::Attempt(attempt) => (keys::ROLLOUT_ATTEMPT_ANNOTATION, serde_json::to_string(attempt?)),
            Self::Rollback(rollback) => (keys::ROLLBACK_ANNOTATION, serde_json::to_string(rollback)),
        };
        text.ok().map(|text| (key, text))
    }
}

/// Creates the revision from admitted objects. The Secrets come first and the revision last, so a revision on the cluster is complete.
/// If a revision from a Helm release has the same objects, it gets the annotations instead. [`Failure::Superseded`] if `history` is
/// outdated.
pub(crate) async fn create(
    pass: &Pass<'_>,
    new: &NewRevision,
    history: &History,
    admitted: Admitted<'_>,
    record: Record<'_>,
) -> Result<Applied, Failure> {
    let live = gather::revisions::unchanged(&pass.context.revisions, pass.extension, history).await?;
    let (rendered, approval) = admitted.into_parts(&live);
    let mut annotations = annotations(pass, &rendered);
    annotations.extend(record.annotation());
    let texts = annotations.iter().map(|(key, value)| (*key, value.as_str()));
    plan::check_annotations(texts).map_err(Failure::Pack)?;
    let bundle = &rendered.located.resolved.bundle;
    let phases = plan::phases(
        rendered.objects,
        &stamp(&pass.name, &bundle.version, &bundle.package),
    );
    let release = new.taken_over.as_ref();
    if let Some(release) = release.filter(|release| release.objects == plan::digest(&phases)) {
        return complete(pass, release, &annotations, bundle).await;
    }
    let settings = Settings::of(pass.extension);
    let created = write(pass, new, history, &annotations, phases, settings).await?;
    act::events::resolved(pass, bundle, &new.name);
    if let Some(approval) = &approval {
        act::events::approved(pass, approval, &new.name);
    }
    Ok(Applied::created(created))
}

/// Creates a revision with the content of a former one. [`Failure::Superseded`] if `history` is outdated.
pub(crate) async fn restore(
    pass: &Pass<'_>,
    new: &NewRevision,
    history: &History,
    restorable: Restorable<'_>,
    rollback: &Rollback,
) -> Result<Applied, Failure> {
    gather::revisions::unchanged(&pass.context.revisions, pass.extension, history).await?;
    let former = restorable.into_former();
    let mut annotations = former.annotations;
    let followed = followed::annotations(pass.extension);
    annotations.extend(followed.filter_map(|(key, value)| Some((key, value?))));
    annotations.extend(Record::Rollback(rollback).annotation());
    let texts = annotations.iter().map(|(key, value)| (*key, value.as_str()));
    plan::check_annotations(texts).map_err(Failure::Pack)?;
    let bundle = &former.revision.bundle;
    let stamp = stamp(&pass.name, &bundle.version, &bundle.package);
    let phases = plan::phases(former.objects, &stamp);
    let settings = Settings {
        soak: None,
        ..Settings::of(pass.extension)
    };
    let created = write(pass, new, history, &annotations, phases, settings).await?;
    act::events::rolled_back(pass, rollback, bundle, &new.name);
    Ok(Applied::created(created))
}

/// Creates the revision with the Secrets of its objects.
async fn write(
    pass: &Pass<'_>,
    new: &NewRevision,
    history: &History,
    annotations: &BTreeMap<&'static str, String>,
    phases: Vec<plan::Phase>,
    settings: Settings<'_>,
) -> Result<ClusterObjectSet, Failure> {
    let context = pass.context;
    let system = &context.shared.system_namespace;
    let probes = plan::probes_of(&phases);
    let packed = plan::pack(&new.name, system, &pass.name, phases).map_err(Failure::Pack)?;

    let revision = json!({
        "apiVersion": ClusterObjectSet::api_version(&()),
        "kind": ClusterObjectSet::kind(&()),
        "metadata": {
            "name": new.name,
            "labels": {
                keys::OWNER_KIND_LABEL: keys::OWNER_KIND_CLUSTER_EXTENSION, keys::OWNER_NAME_LABEL: pass.name,
            },
            "annotations": annotations,
            "ownerReferences": [reference::<ClusterExtension>(pass.extension)],
            // Set at creation, so that no object is ever left behind.
            "finalizers": [keys::TEARDOWN_FINALIZER],
        },
        "spec": spec(settings, new.number, CollisionProtection::Prevent, &packed.phases, &probes),
    });
    let what = format!("creating new Revision \"{}\"", new.name);
    let created = context.revisions.create(what, revision, packed.secrets).await;
    created_as(&context.revisions, pass.extension, history, created).await
}

/// Returns the created revision. [`Failure::Superseded`] if another process has created one meanwhile, or this process in an
/// earlier pass that got no answer: the next pass goes on with that revision.
async fn created_as(
    store: &impl RevisionStore,
    extension: &ClusterExtension,
    history: &History,
    created: Result<ClusterObjectSet, CallError>,
) -> Result<ClusterObjectSet, Failure> {
    if matches!(created, Err(CallError::Exists { .. })) {
        gather::revisions::unchanged(store, extension, history).await?;
    }
    Ok(created?)
}

/// Completes a revision from a Helm release: records the inputs from which its objects could have been rendered.
async fn complete(
    pass: &Pass<'_>,
    release: &TakenOver,
    annotations: &BTreeMap<&'static str, String>,
    bundle: &BundleRef,
) -> Result<Applied, Failure> {
    let metadata = json!({ "metadata": { "annotations": annotations } });
    let completed = patch(
        &pass.context.revisions,
        &release.name,
        release.uid.as_deref(),
        metadata,
    )
    .await?;
    act::events::resolved(pass, bundle, &release.name);
    Ok(Applied::completed(completed))
}

/// Adjusts the newest revision: its catalog, its deadline and its soak. `catalog` is that of the resolved bundle.
pub(crate) async fn adjust(
    pass: &Pass<'_>,
    current: CurrentRevision,
    catalog: Option<&CatalogName>,
    registry_error: Option<Failure>,
) -> Result<Applied, Failure> {
    let settings = Settings::of(pass.extension);
    let write = async |change: Value| {
        patch(
            &pass.context.revisions,
            &current.name,
            current.uid.as_deref(),
            change,
        )
        .await
    };
    if current.deadline_differs {
        write(json!({ "spec": { "progressDeadlineMinutes": settings.deadline_minutes } })).await?;
    }
    if current.soak_differs {
        write(json!({ "spec": { "soak": settings.soak } })).await?;
    }
    let mut applied = Applied::unchanged(registry_error);
    if let (Some(from), Some(to)) = (current.moves_from, catalog) {
        let annotations =
            json!({ keys::CATALOG_NAME_ANNOTATION: to, keys::CATALOG_MOVED_FROM_ANNOTATION: from });
        write(json!({ "metadata": { "annotations": annotations } })).await?;
        applied.moved(current.name, from, to.clone());
    }
    Ok(applied)
}

/// Changes the revision with this uid: a revision of a new extension can have the same name.
async fn patch(
    store: &impl RevisionStore,
    revision: &str,
    uid: Option<&str>,
    mut patch: Value,
) -> Result<ClusterObjectSet, Failure> {
    if let Some(uid) = uid {
        patch["metadata"]["uid"] = json!(uid);
    }
    let change = Change {
        purpose: format!("patching {revision} Revision"),
        name: revision.to_owned(),
        patch,
        status: false,
    };
    Ok(store.change(&change).await?)
}

/// Returns the labels and annotations that every object carries.
pub(super) fn stamp(extension: &str, version: &BundleVersion, package: &PackageName) -> CommonMetadata {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    CommonMetadata {
        labels: BTreeMap::from([
            pair(keys::OWNER_KIND_LABEL, keys::OWNER_KIND_CLUSTER_EXTENSION),
            pair(keys::OWNER_NAME_LABEL, extension),
        ]),
        annotations: BTreeMap::from([
            pair(keys::BUNDLE_VERSION_ANNOTATION, version.as_str()),
            pair(keys::PACKAGE_NAME_ANNOTATION, package),
        ]),
    }
}

/// Returns the spec of a revision.
pub(super) fn spec(
    settings: Settings<'_>,
    number: i64,
    protection: CollisionProtection,
    phases: &[ClusterObjectSetPhase],
    probes: &[ProgressionProbe],
) -> Value {
    let mut spec = json!({
        "lifecycleState": LifecycleState::Active,
        "revision": number,
        "collisionProtection": protection,
        "phases": phases,
        "progressionProbes": probes,
    });
    if let Some(map) = spec.as_object_mut() {
        if let Some(minutes) = settings.deadline_minutes {
            map.insert("progressDeadlineMinutes".to_owned(), minutes.into());
        }
        if let Some(soak) = settings.soak {
            map.insert("soak".to_owned(), soak.into());
        }
    }
    spec
}

fn annotations(pass: &Pass<'_>, rendered: &Rendered<'_>) -> BTreeMap<&'static str, String> {
    let Located { resolved, image, .. } = &rendered.located;
    let bundle = &resolved.bundle;
    let config = config(pass.extension);
    let identity = RenderInputs {
        bundle,
        canonical_image: image,
        namespace: Some(&rendered.namespace),
        config: config.as_ref(),
        namespaces: rendered.namespaces.as_deref(),
        provider: rendered.provider,
    }
    .identity();
    let mut annotations = BTreeMap::from([
        (keys::BUNDLE_NAME_ANNOTATION, bundle.name.to_string()),
        (keys::BUNDLE_VERSION_ANNOTATION, bundle.version.to_string()),
        (keys::BUNDLE_REFERENCE_ANNOTATION, bundle.image.text().to_string()),
        (keys::PACKAGE_NAME_ANNOTATION, bundle.package.to_string()),
        (
            keys::WEBHOOK_CERTIFICATES_ANNOTATION,
            rendered.provider.as_str().to_owned(),
        ),
        (keys::REVISION_IDENTITY_ANNOTATION, identity),
        (keys::RESOLVED_IMAGE_ANNOTATION, image.to_string()),
    ]);
    let optional = [
        (
            keys::INSTALL_NAMESPACE_ANNOTATION,
            rendered.has_namespace.then(|| rendered.namespace.clone()),
        ),
        (
            keys::BUNDLE_RELEASE_ANNOTATION,
            bundle.version.release().map(str::to_owned),
        ),
        (
            keys::SELECTED_NAMESPACES_ANNOTATION,
            rendered.namespaces.as_ref().map(|names| names.join(",")),
        ),
        (keys::PROPERTIES_ANNOTATION, rendered.properties.clone()),
        (
            keys::CATALOG_NAME_ANNOTATION,
            bundle.catalog.as_ref().map(ToString::to_string),
        ),
        (
            keys::CATALOG_MOVED_FROM_ANNOTATION,
            resolved.moved_from.as_ref().map(ToString::to_string),
        ),
        (
            keys::CATALOG_PROPERTIES_ANNOTATION,
            gather::dependencies::recorded_properties(resolved),
        ),
        (
            keys::UPGRADEABLE_CONDITION_ANNOTATION,
            rendered.upgradeable_condition.clone(),
        ),
        (
            keys::WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION,
            rendered.renewal.map(|due| due.to_string()),
        ),
    ];
    annotations.extend(
        followed::annotations(pass.extension)
            .chain(optional)
            .filter_map(|(key, value)| Some((key, value?))),
    );
    annotations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_extension::revisions::memory::MemoryRevisions;

    fn first_revision(of: &str) -> Value {
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "labels": {keys::OWNER_NAME_LABEL: "x"}, "ownerReferences": [
                {"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": "x", "uid": of, "controller": true}]},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "soak": of},
        })
    }

    #[tokio::test]
    async fn a_late_creation_spares_the_revision_that_exists() {
        let spec =
            json!({"namespace": "n", "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}});
        let mut extension = ClusterExtension::new("x", serde_json::from_value(spec).unwrap());
        extension.metadata.uid = Some("new".to_owned());
        for (existing, superseded) in [("new", true), ("former", false)] {
            let store = MemoryRevisions::new(vec![serde_json::from_value(first_revision(existing)).unwrap()])
                .of(extension.clone());
            let before = store.all();
            // The pass has seen no revision: its list was too early, or it got no answer to an earlier creation.
            let created = store
                .create(
                    "creating new Revision \"x-1\"".to_owned(),
                    first_revision("new"),
                    Vec::new(),
                )
                .await;
            let created = created_as(&store, &extension, &History::default(), created).await;
            let failure = created.unwrap_err();
            assert_eq!(
                matches!(failure, Failure::Superseded),
                superseded,
                "{existing}: {failure}"
            );
            assert!(!failure.terminal(true), "{existing}");
            assert_eq!(store.all(), before, "{existing}");
        }
    }

    #[tokio::test]
    async fn a_late_patch_spares_the_revision_of_a_new_extension() {
        let revision = serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "new"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        }))
        .unwrap();
        let store = MemoryRevisions::new(vec![revision]);
        let change = || json!({"spec": {"soak": "5m"}});
        assert!(patch(&store, "x-1", Some("old"), change()).await.is_err());
        assert_eq!(store.all()[0].spec.soak, None);
        assert!(patch(&store, "x-1", Some("new"), change()).await.is_ok());
        assert_eq!(store.all()[0].spec.soak.as_deref(), Some("5m"));
    }
}
