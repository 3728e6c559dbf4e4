//! Steps that simulate the remains of upstream's Helm runtime.

use std::io::Write as _;

use anyhow::Context as _;
use base64::Engine as _;
use cucumber::{then, when};
use flate2::Compression;
use flate2::write::GzEncoder;
use olm_api::keys;
use olm_e2e::content::{bundle_crd, bundle_name, bundle_repository, package_name};
use serde_json::{Value, json};

use crate::world::OlmWorld;

/// Namespace of the controllers' own objects.
const SYSTEM_NAMESPACE: &str = "olmv1-system";

/// Creates the bundle's `ConfigMap`, and its CRD if the step says so, owned by the extension, and the Helm release that contains them.
#[when(
    regex = r#"^Helm has installed bundle "([^"]+)" in version "([^"]+)"(| with its CustomResourceDefinition)$"#
)]
async fn installed(
    world: &mut OlmWorld,
    package: String,
    version: String,
    with_crd: String,
) -> anyhow::Result<()> {
    let cluster = world.cluster();
    let extension = format!("clusterextension/{}", world.name());
    let extension = cluster.get(&extension, "").await?.context("no extension")?;
    let owner = json!([{
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": world.name(),
        "uid": extension.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    }]);
    let name = format!("test-configmap-{}", world.id);
    let labels = json!({keys::OWNER_KIND_LABEL: "ClusterExtension", keys::OWNER_NAME_LABEL: world.name()});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": world.namespace(), "labels": labels, "ownerReferences": owner},
        "data": {"version": version, "name": "test-configmap"},
    });
    let mut objects = vec![map];
    if !with_crd.is_empty() {
        let mut crd = crd(&world.id);
        crd["metadata"]["labels"] = labels;
        crd["metadata"]["ownerReferences"] = owner.clone();
        objects.push(crd);
    }
    for object in &objects {
        let mut live = object.clone();
        live["metadata"]["labels"][keys::MANAGED_BY_LABEL] = json!("Helm");
        live["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": world.name()});
        cluster.apply(&live).await?;
    }
    let manifest: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let manifest = manifest.join("\n");
    let reference = format!("configmap/{name}");
    let created = cluster.get(&reference, &world.namespace()).await?;
    let uid = created
        .and_then(|created| created.metadata.uid)
        .context("not made")?;
    world.removed.insert("helm".to_owned(), uid);

    let package = package_name(&package, &world.id);
    let image = format!(
        "{}/{}",
        world.environment.registry.host(),
        bundle_repository(&package, &version)
    );
    let release = json!({
        "name": world.name(), "version": 1, "info": {"status": "deployed"}, "manifest": manifest,
        "labels": {
            keys::BUNDLE_NAME_ANNOTATION: bundle_name(&package, &version), keys::PACKAGE_NAME_ANNOTATION: package,
            keys::BUNDLE_VERSION_ANNOTATION: version, keys::BUNDLE_REFERENCE_ANNOTATION: image,
        },
    });
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(release.to_string().as_bytes())?;
    // Large releases are split into several Secrets; this one is split in two.
    let bytes = encoder.finish()?;
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let text = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let (index, chunk) = (
        format!("sh.helm.release.v1.{}.v1", world.name()),
        format!("sh.helm.release.v1.{}.v1-more", world.name()),
    );
    let common = |name: &str, type_: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE, "ownerReferences": owner, "labels": {
                "owner": "operator-controller", "name": world.name(), "status": "deployed", "version": "1",
                "key": index, "type": type_}}})
    };
    let mut secret = common(&chunk, "chunk", keys::RELEASE_CHUNK_SECRET_TYPE);
    secret["data"] = json!({"chunk": text(second)});
    cluster.apply(&secret).await?;
    let mut secret = common(&index, "index", keys::RELEASE_INDEX_SECRET_TYPE);
    let extra = serde_json::to_vec(&[&chunk])?;
    secret["data"] = json!({"chunk": text(first), "extraChunks": text(&extra)});
    cluster.apply(&secret).await
}

/// Returns the CRD of the generated bundles, which accepts any field in `spec`.
fn crd(id: &str) -> Value {
    let mut crd = bundle_crd(id, &json!({}));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    crd
}

#[then(regex = r#"^resource "([^"]+)" is not owned by the ClusterExtension$"#)]
async fn released(world: &mut OlmWorld, reference: String) {
    let reference = world.expand(&reference);
    world
        .eventually(&format!("{reference} to lose its owner"), async || {
            let found = world.cluster().get(&reference, &world.namespace()).await?;
            let found = found.context("it is gone")?;
            let owners = found.metadata.owner_references.unwrap_or_default();
            anyhow::ensure!(
                owners.iter().all(|owner| owner.kind != "ClusterExtension"),
                "it belongs to {owners:?}"
            );
            Ok(())
        })
        .await;
}

#[then(regex = r#"^the Helm release is marked as taken over by ClusterObjectSet "([^"]+)"$"#)]
async fn marked(world: &mut OlmWorld, revision: String) -> anyhow::Result<()> {
    let secret = format!("secret/sh.helm.release.v1.{}.v1", world.name());
    let found = world.cluster().get(&secret, SYSTEM_NAMESPACE).await?;
    let annotations = found
        .context("no release")?
        .metadata
        .annotations
        .unwrap_or_default();
    let mark = annotations.get(keys::TAKEN_OVER_BY_ANNOTATION);
    anyhow::ensure!(mark == Some(&world.expand(&revision)), "it has {annotations:?}");
    Ok(())
}

#[then("the objects that Helm installed were not recreated")]
async fn same(world: &mut OlmWorld) -> anyhow::Result<()> {
    let reference = format!("configmap/test-configmap-{}", world.id);
    let found = world.cluster().get(&reference, &world.namespace()).await?;
    let uid = found.and_then(|found| found.metadata.uid);
    anyhow::ensure!(uid.as_ref() == world.removed.get("helm"), "it is {uid:?} now");
    Ok(())
}
