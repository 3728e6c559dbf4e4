//! Makes a revision: pulls, renders, checks, and only then writes.
//!
//! Nothing is written before everything that can be checked has been; the revision itself is written last, so that what is on the
//! cluster is always a whole one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys, names};
use olm_applier::plan::{self, Stamp};
use olm_bundle::{Bundle, Certificates, RenderOptions};
use olm_image::CanonicalRef;
use olm_runtime::{Feature, parsing};
use serde_json::{Value, json};

use super::call::{CallError, call};
use super::decide::{self, Choice};
use super::failure::Failure;
use super::identity::{Inputs, Provider};
use super::model::{
    BundleRef, CATALOG_ANNOTATION, CERTIFICATES_ANNOTATION, History, IDENTITY_ANNOTATION, IMAGE_ANNOTATION,
    MOVED_FROM_ANNOTATION, RENEWAL_ANNOTATION,
};
use super::{Context, account, certificates, constraints, crds, pull, rights};
use crate::metrics::Step;

/// What is to be made.
pub(crate) struct Order<'a> {
    /// The extension it is for.
    pub extension: &'a ClusterExtension,
    /// The bundle.
    pub choice: &'a Choice,
    /// Where its image is.
    pub image: &'a CanonicalRef,
    /// Who makes certificates on this cluster.
    pub provider: Provider,
    /// The revisions there are.
    pub history: &'a History,
    /// Name of the revision.
    pub name: &'a str,
    /// Its number.
    pub number: i64,
    /// When this is.
    pub now: Timestamp,
}

/// The objects of a revision and what is remembered about them.
struct Rendered {
    objects: Vec<Value>,
    properties: Option<String>,
    provider: Provider,
    renewal: Option<Timestamp>,
}

/// Makes the revision and returns it as the cluster has it.
pub(crate) async fn roll(context: &Context, order: &Order<'_>) -> Result<ClusterObjectSet, Failure> {
    check_namespace(context, order).await?;
    let shared = &context.shared;
    let account = account::wanted(shared.accounts, order.extension)?;
    if let Some(account) = &account {
        rights::present(&shared.client, shared.accounts, account).await?;
    }
    let metrics = &shared.metrics;
    let bundle = metrics.measure(Step::Pull, load(context, order)).await?;
    let rendering = async {
        let rendered = render(context, order, &bundle).await?;
        // First, so that all rights that are missing are told at once: the account may be what the CRDs are read as.
        if let Some(account) = &account {
            rights::check(&shared.client, account, &rendered.objects).await?;
        }
        crds::check(context, order.extension, &rendered.objects).await?;
        Ok::<_, Failure>(rendered)
    };
    let rendered = metrics.measure(Step::Render, rendering).await?;
    metrics
        .measure(Step::Write, write(context, order, rendered))
        .await
}

async fn check_namespace(context: &Context, order: &Order<'_>) -> Result<(), Failure> {
    let namespace = &order.extension.spec.namespace;
    // Noted before looking, so that a namespace that comes in between is not missed.
    let extension = order.extension.name_any();
    context.waiting.note(namespace, &extension);
    let api: Api<Namespace> = Api::all(context.shared.client.clone());
    let found = call(
        format!("reading namespace \"{namespace}\""),
        api.get_metadata_opt(namespace),
    )
    .await?;
    match found {
        None => Err(Failure::NamespaceMissing(namespace.clone())),
        Some(found) if found.metadata.deletion_timestamp.is_some() => {
            Err(Failure::NamespaceGoing(namespace.clone()))
        }
        Some(_) => {
            context.waiting.clear(&extension);
            Ok(())
        }
    }
}

async fn load(context: &Context, order: &Order<'_>) -> Result<Bundle, Failure> {
    let owner = order.extension.name_any();
    let image = order.image.clone();
    // The signature policy counts for what the catalog names, which may be a tag.
    let named = &order.choice.bundle.image;
    let named = named.parse().unwrap_or_else(|_| image.clone().into());
    let unpacked = pull::fetch(&context.puller, owner, named, image).await?;
    let read = tokio::task::spawn_blocking(move || {
        let declared = unpacked.labels.get(olm_bundle::FORMAT_LABEL);
        olm_bundle::check_format(declared.map(String::as_str).unwrap_or_default()).map_err(Failure::Parse)?;
        let files = olm_bundle_files::read(&unpacked.root)?;
        let _turn = parsing::turn(files.values().map(|file| file.len() as u64).sum());
        olm_bundle::parse(&files).map_err(Failure::Parse)
    });
    read.await
        .map_err(|_| Failure::Interrupted("reading the bundle"))?
}

async fn render(context: &Context, order: &Order<'_>, bundle: &Bundle) -> Result<Rendered, Failure> {
    let spec = &order.extension.spec;
    let namespace = &spec.namespace;
    let mut options = RenderOptions::new(namespace.clone());
    options.config = config(order.extension);
    options.single_own_namespace = context
        .features
        .enabled(Feature::SingleOwnNamespaceInstallSupport);
    options.deployment_config = context.features.enabled(Feature::DeploymentConfig);
    let mut renewal = None;
    let mut provider = order.provider;
    let requests = olm_bundle::webhook_certificates(bundle, namespace);
    if requests.is_empty() {
        provider = Provider::None;
    }
    options.certificates = match provider {
        Provider::None => Certificates::None,
        Provider::CertManager => Certificates::CertManager,
        Provider::ServiceCa => Certificates::ServiceCa,
        Provider::Own => {
            let made = certificates::obtain(
                &account::reader(context, order.extension)?,
                &order.extension.name_any(),
                namespace,
                &requests,
                order.history.newest(),
                order.now,
            )
            .await?;
            renewal = Some(made.renewal);
            Certificates::Own(made.by_secret)
        }
    };
    let objects = distinct(olm_bundle::render(bundle, &options).map_err(Failure::Render)?);
    names::check_all(objects.iter())?;
    Ok(Rendered {
        objects,
        properties: bundle.properties_annotation(),
        provider,
        renewal,
    })
}

/// One object of each identity, the later one: a bundle may bring a Service of the name that its webhooks' Service is
/// rendered with, and a revision cannot hold both.
fn distinct(objects: Vec<Value>) -> Vec<Value> {
    let identity = |object: &Value| {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let group = text("/apiVersion")
            .rsplit_once('/')
            .map(|(group, _)| group.to_owned());
        (
            group,
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        )
    };
    let mut seen = std::collections::HashSet::new();
    let mut kept: Vec<Value> = objects
        .into_iter()
        .rev()
        .filter(|object| seen.insert(identity(object)))
        .collect();
    kept.reverse();
    kept
}

/// What every object carries besides what its bundle says.
fn stamp(extension: &str, bundle: &BundleRef) -> Stamp {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Stamp {
        labels: BTreeMap::from([
            pair(keys::OWNER_KIND_LABEL, keys::OWNER_KIND_CLUSTER_EXTENSION),
            pair(keys::OWNER_NAME_LABEL, extension),
        ]),
        annotations: BTreeMap::from([
            pair(keys::BUNDLE_VERSION_ANNOTATION, &bundle.version),
            pair(keys::PACKAGE_NAME_ANNOTATION, &bundle.package),
        ]),
    }
}

/// `spec.config.inline`, where there is a `spec.config`.
pub(crate) fn config(extension: &ClusterExtension) -> Option<Value> {
    let config = extension.spec.config.as_ref()?;
    Some(
        config
            .inline
            .as_ref()
            .map_or_else(|| json!({}), |inline| json!(inline)),
    )
}

async fn write(
    context: &Context,
    order: &Order<'_>,
    rendered: Rendered,
) -> Result<ClusterObjectSet, Failure> {
    let client = &context.shared.client;
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    let owner = order.extension.name_any();
    let annotations = annotations(order, &rendered);
    let texts = annotations.iter().map(|(key, value)| (*key, value.as_str()));
    plan::check_annotations(texts).map_err(Failure::Pack)?;
    let phases = plan::phases(rendered.objects, &stamp(&owner, &order.choice.bundle));
    let packed =
        plan::pack(order.name, &context.shared.system_namespace, &owner, phases).map_err(Failure::Pack)?;

    create_secrets(context, &packed.secrets).await?;

    let revision = json!({
        "apiVersion": ClusterObjectSet::api_version(&()),
        "kind": ClusterObjectSet::kind(&()),
        "metadata": {
            "name": order.name,
            "labels": { keys::OWNER_KIND_LABEL: keys::OWNER_KIND_CLUSTER_EXTENSION, keys::OWNER_NAME_LABEL: owner },
            "annotations": annotations,
            "ownerReferences": [owner_of(order.extension)],
            // Held from the start: nothing of it may ever be left behind.
            "finalizers": [keys::TEARDOWN_FINALIZER],
        },
        "spec": spec(order, &packed.phases),
    });
    let params = PatchParams::apply(keys::EXTENSION_FIELD_MANAGER).force();
    let what = format!("creating new Revision \"{}\"", order.name);
    let made = call(what, sets.patch(order.name, &params, &Patch::Apply(&revision))).await?;

    own_secrets(context, &packed.secrets, &made).await?;
    Ok(made)
}

/// Deletes the archived revisions beyond those that are kept.
pub(crate) async fn prune(context: &Context, history: &History) -> Result<(), CallError> {
    let sets: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    for superfluous in decide::superfluous(history) {
        let what = format!("deleting the archived ClusterObjectSet \"{superfluous}\"");
        match call(what, sets.delete(superfluous, &DeleteParams::background())).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the Secrets a revision is to refer to; those of an attempt that was cut off are good.
pub(crate) async fn create_secrets(context: &Context, secrets: &[Secret]) -> Result<(), CallError> {
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &context.shared.system_namespace);
    for secret in secrets {
        let what = format!("creating ref Secret \"{}\"", secret.name_any());
        match call(what, api.create(&PostParams::default(), secret)).await {
            Err(error) if !error.is_already_exists() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// From here on the Secrets go with the revision.
pub(crate) async fn own_secrets(
    context: &Context,
    secrets: &[Secret],
    revision: &ClusterObjectSet,
) -> Result<(), CallError> {
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &context.shared.system_namespace);
    let ownership = json!({ "metadata": { "ownerReferences": [reference::<ClusterObjectSet>(revision)] } });
    for secret in secrets {
        let name = secret.name_any();
        let what = format!("making ref Secret \"{name}\" go with its revision");
        let (params, patch) = (PatchParams::default(), Patch::Merge(&ownership));
        call(what, api.patch_metadata(&name, &params, &patch)).await?;
    }
    Ok(())
}

fn spec(order: &Order<'_>, phases: &[olm_api::ClusterObjectSetPhase]) -> Value {
    let mut spec = json!({
        "lifecycleState": "Active",
        "revision": order.number,
        "collisionProtection": "Prevent",
        "phases": phases,
        "progressionProbes": plan::default_probes(),
    });
    if let (Some(map), Some(minutes)) = (spec.as_object_mut(), deadline(order.extension)) {
        map.insert("progressDeadlineMinutes".to_owned(), minutes.into());
    }
    spec
}

/// `spec.progressDeadlineMinutes`, where it is set to anything.
pub(crate) fn deadline(extension: &ClusterExtension) -> Option<i32> {
    extension
        .spec
        .progress_deadline_minutes
        .filter(|minutes| *minutes > 0)
}

fn annotations(order: &Order<'_>, rendered: &Rendered) -> BTreeMap<&'static str, String> {
    let bundle = &order.choice.bundle;
    let config = config(order.extension);
    let identity = Inputs {
        bundle,
        canonical_image: &order.image.to_string(),
        namespace: &order.extension.spec.namespace,
        config: config.as_ref(),
        provider: rendered.provider,
    }
    .identity();
    let mut annotations = BTreeMap::from([
        (keys::BUNDLE_NAME_ANNOTATION, bundle.name.clone()),
        (keys::BUNDLE_VERSION_ANNOTATION, bundle.version.clone()),
        (keys::BUNDLE_REFERENCE_ANNOTATION, bundle.image.clone()),
        (keys::PACKAGE_NAME_ANNOTATION, bundle.package.clone()),
        (CERTIFICATES_ANNOTATION, rendered.provider.as_str().to_owned()),
        (IDENTITY_ANNOTATION, identity),
        (IMAGE_ANNOTATION, order.image.to_string()),
    ]);
    let optional = [
        (keys::BUNDLE_RELEASE_ANNOTATION, bundle.release.clone()),
        (keys::PROPERTIES_ANNOTATION, rendered.properties.clone()),
        (CATALOG_ANNOTATION, bundle.catalog.clone()),
        (MOVED_FROM_ANNOTATION, order.choice.moved_from.clone()),
        (
            keys::CATALOG_PROPERTIES_ANNOTATION,
            constraints::remembered(order.choice),
        ),
        (RENEWAL_ANNOTATION, rendered.renewal.map(|due| due.to_string())),
    ];
    annotations.extend(
        account::annotations(order.extension)
            .into_iter()
            .chain(optional)
            .filter_map(|(key, value)| Some((key, value?))),
    );
    annotations
}

fn owner_of(extension: &ClusterExtension) -> OwnerReference {
    reference::<ClusterExtension>(extension)
}

/// A controller reference: the owned object goes with `owner`, which waits for it when asked to.
pub(crate) fn reference<K: kube::Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Changes the one thing of a revision that may change.
pub(crate) async fn adjust_deadline(
    context: &Context,
    revision: &str,
    extension: &ClusterExtension,
) -> Result<(), Failure> {
    let patch = json!({ "spec": { "progressDeadlineMinutes": deadline(extension) } });
    adjust(context, revision, &patch).await
}

/// Remembers on a revision that its bundle is another catalog's from now on.
pub(crate) async fn move_catalog(
    context: &Context,
    revision: &str,
    from: &str,
    to: &str,
) -> Result<(), Failure> {
    let patch =
        json!({ "metadata": { "annotations": { CATALOG_ANNOTATION: to, MOVED_FROM_ANNOTATION: from } } });
    adjust(context, revision, &patch).await
}

async fn adjust(context: &Context, revision: &str, patch: &Value) -> Result<(), Failure> {
    let sets: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let params = PatchParams {
        field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let what = format!("patching {revision} Revision");
    call(what, sets.patch(revision, &params, &Patch::Merge(patch))).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::distinct;

    #[test]
    fn the_later_of_two_services_of_one_name_is_kept() {
        let service = |port: u16| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "a", "name": "webhook"}, "spec": port});
        let other =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "b", "name": "webhook"}});
        assert_eq!(
            distinct(vec![service(1), other.clone(), service(2)]),
            vec![other, service(2)]
        );
    }
}
