//! Installation by upstream's former runtime, which installed bundles as Helm releases. Scenarios can start from it.

use std::io::Write as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use olm_api::{ClusterExtension, keys};
use olm_proof::Actor;
use olm_world::{Request, World};
use serde_json::{Value, json};

use super::When::{AfterCalls, AtRest};
use super::others::{revision_deleted, widget};
use super::{Scenario, deleted, expect_success, extension};
use crate::content::{Content, FULL, OLD};
use crate::model::{self, Chosen};
use crate::user::{self, Action};

/// Namespace of the controllers, in which the releases are.
const SYSTEM_NAMESPACE: &str = "olmv1-system";

/// Returns the scenarios that start from a Helm release. The CRD of the release has a custom resource.
pub(super) fn all() -> Vec<Scenario> {
    let alpha = |version: &str| {
        let source = json!({"packageName": "alpha", "version": version});
        extension("alpha", &source, &json!({}))
    };
    let steps = vec![
        (AtRest, vec![Action::Apply(widget())]),
        (AtRest, vec![Action::Apply(alpha("1.1.0"))]),
        (AtRest, vec![deleted("alpha")]),
    ];
    // The CRD still belongs to the extension when the deletion comes.
    let early = vec![(AfterCalls(30), vec![Action::Apply(widget()), deleted("alpha")])];
    // The release is not taken over when the deletion comes.
    let first = vec![(AfterCalls(2), vec![Action::Apply(widget()), deleted("alpha")])];
    let source = json!({"packageName": "alpha", "version": "1.0.0"});
    let policy = json!({"deletion": {"customResources": "Block"}});
    let block = Action::Apply(extension("alpha", &source, &policy));
    let blocked = vec![
        (
            AfterCalls(2),
            vec![Action::Apply(widget()), block, deleted("alpha")],
        ),
        (AtRest, vec![Action::Delete(widget())]),
    ];
    // The release is not marked yet, or about to be, when its revision is deleted.
    let revision = vec![(AfterCalls(8), vec![revision_deleted("alpha-1")])];
    let scenario = |name: &'static str, steps| Scenario {
        helm: Some(alpha("1.0.0")),
        ..Scenario::new(name, steps)
    };
    vec![
        scenario("helm", steps),
        scenario("helm-delete-early", early),
        scenario("helm-delete-first", first),
        scenario("helm-block", blocked),
        scenario("helm-revision-deleted", revision),
    ]
}

/// Creates the extension, the objects of its bundle and its release, as upstream's former runtime left them.
///
/// # Errors
/// The bundle cannot be rendered, or the API server refuses an object.
pub(crate) fn install(world: &mut World, content: &Content, extension: &Value) -> anyhow::Result<()> {
    // Shortly before the start of the run.
    let now = Timestamp::from_second(1_767_225_300)?;
    let name = extension["metadata"]["name"].as_str().unwrap_or_default();
    expect_success(world, &user::request(&Action::Apply(extension.clone())), now)?;
    let finalizers = json!([keys::CLEANUP_UNPACK_FINALIZER, keys::CLEANUP_CONTENT_FINALIZER]);
    let held = json!({"apiVersion": extension["apiVersion"], "kind": extension["kind"],
        "metadata": {"name": name, "finalizers": finalizers}});
    expect_success(world, &user::request(&Action::Merge(held)), now)?;
    let owner = owner(world, name)?;
    let parsed: ClusterExtension = serde_json::from_value(extension.clone())?;
    let catalogs = [("first", FULL), ("second", OLD)].into();
    let chosen = model::goal(content, &parsed, &catalogs, None).bundle;
    let chosen = chosen.with_context(|| format!("ClusterExtension {name} resolves to no bundle"))?;
    let mut manifest = Vec::new();
    for mut object in model::objects(content, &parsed, &chosen)? {
        object["metadata"]["labels"][keys::OWNER_KIND_LABEL] = json!(keys::OWNER_KIND_CLUSTER_EXTENSION);
        object["metadata"]["labels"][keys::OWNER_NAME_LABEL] = json!(name);
        manifest.push(object.to_string());
        object["metadata"]["labels"][keys::MANAGED_BY_LABEL] = json!("Helm");
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!(name);
        object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = json!(SYSTEM_NAMESPACE);
        object["metadata"]["ownerReferences"] = json!([owner]);
        expect_success(world, &created(&object), now)?;
        if object["kind"] == "Deployment"
            && let Some(request) = live(world, &object).and_then(|live| user::deployment_status(&live))
        {
            expect_success(world, &request, now)?;
        }
    }
    let release = release(name, &chosen, &manifest.join("\n"), &owner)?;
    expect_success(world, &created(&release), now)?;
    world.tick(now);
    Ok(())
}

/// Returns the owner reference of every object of the extension.
fn owner(world: &World, extension: &str) -> anyhow::Result<Value> {
    let mut objects = world.objects().map(|(_, object)| object);
    let found = objects.find(|object| {
        object["kind"] == keys::OWNER_KIND_CLUSTER_EXTENSION && object["metadata"]["name"] == extension
    });
    let found = found.with_context(|| format!("ClusterExtension {extension} was not created"))?;
    Ok(json!({
        "apiVersion": found["apiVersion"], "kind": found["kind"], "name": extension, "uid": found["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }))
}

/// Returns the index Secret of a release. The release is small enough for one Secret.
fn release(extension: &str, bundle: &Chosen, manifest: &str, owner: &Value) -> anyhow::Result<Value> {
    let package = bundle.installed.name.as_str().split('.').next();
    let release = json!({
        "name": extension, "version": 1, "info": {"status": "deployed"}, "manifest": manifest,
        "labels": {
            keys::BUNDLE_NAME_ANNOTATION: bundle.installed.name.as_str(), keys::PACKAGE_NAME_ANNOTATION: package,
            keys::BUNDLE_VERSION_ANNOTATION: bundle.installed.version.as_str(),
            keys::BUNDLE_REFERENCE_ANNOTATION: bundle.image,
        },
    });
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(release.to_string().as_bytes())?;
    let chunk = STANDARD.encode(encoder.finish()?);
    let name = format!("sh.helm.release.v1.{extension}.v1");
    let labels = json!({"owner": "operator-controller", "name": extension, "status": "deployed", "version": "1",
        "key": name, "type": "index"});
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": keys::RELEASE_INDEX_SECRET_TYPE,
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE, "labels": labels, "ownerReferences": [owner]},
        "data": {"chunk": chunk},
    }))
}

/// Returns the request that creates an object, as Helm in upstream's controller sent it.
fn created(object: &Value) -> Request {
    let path = user::path_of(object);
    let collection = path.rsplit_once('/').map_or("", |(collection, _)| collection);
    let path = format!("{collection}?fieldManager=operator-controller");
    Request::new(Actor::Other("helm".to_owned()), "POST", &path).with_body(object)
}

fn live(world: &World, object: &Value) -> Option<Value> {
    let path = user::path_of(object);
    let mut objects = world.objects().map(|(_, object)| object);
    let found = objects.find(|live| live["kind"] == object["kind"] && user::path_of(live) == path);
    found.map(|found| found.as_ref().clone())
}
