//! The image that hack/image.sh pushes equals the Dockerfile's, as pulled from a real registry.
#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use oci_client::secrets::RegistryAuth;
use oci_client::{Reference, manifest};
use olm_harness::controller_image::{BuildInfo, USER, controller_image};
use olm_harness::{Registry, scratch::Scratch, workspace};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn the_image_runs_one_file_as_a_nameless_user() {
    let scratch = Scratch::new("controller-image").unwrap();
    let binary = scratch.path().join("catalogd");
    std::fs::write(&binary, "#!static").unwrap();
    let build = BuildInfo {
        version: "1.2.3".to_owned(),
        commit: "abc".to_owned(),
    };
    let registry = Registry::start().await.unwrap();
    let image = controller_image("catalogd", &binary, Vec::new(), &build).unwrap();
    image.push(&registry, "olmv1/catalogd:test").await.unwrap();

    let reference: Reference = format!("{}/olmv1/catalogd:test", registry.host())
        .parse()
        .unwrap();
    let client = registry.client();
    let (manifest, _, config) = client
        .pull_manifest_and_config(&reference, &RegistryAuth::Anonymous)
        .await
        .unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let run = config.get("config").unwrap();
    assert_eq!(run.get("User"), Some(&json!(USER)));
    assert_eq!(run.get("Entrypoint"), Some(&json!(["/catalogd"])));
    assert_eq!(run.get("WorkingDir"), Some(&json!("/")));
    let label = |name: &str| run["Labels"][format!("org.opencontainers.image.{name}")].clone();
    assert_eq!(label("version"), "1.2.3");
    assert_eq!(label("revision"), "abc");
    assert_eq!(label("title"), "catalogd");

    assert_eq!(manifest.layers.len(), 1);
    let mut layer = Vec::new();
    let blob = manifest::OciDescriptor::clone(&manifest.layers[0]);
    client.pull_blob(&reference, &blob, &mut layer).await.unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(layer.as_slice()));
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = Vec::new();
        entry.read_to_end(&mut text).unwrap();
        found.insert(path, (entry.header().mode().unwrap(), text));
    }
    assert_eq!(found["catalogd"], (0o755, b"#!static".to_vec()));
    assert_eq!(found["tmp/"].0, 0o1777);
    assert_eq!(found["var/cache/"].0, 0o1777);
}

#[test]
fn the_dockerfile_agrees() {
    let text = std::fs::read_to_string(workspace::root().join("Dockerfile")).unwrap();
    for line in [
        &format!("USER {USER}"),
        "WORKDIR /",
        "ENTRYPOINT [\"/catalogd\"]",
        "ENTRYPOINT [\"/operator-controller\"]",
        "ENTRYPOINT [\"/sample-operator\"]",
        "LABEL org.opencontainers.image.title=catalogd",
        "FROM scratch AS base",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "the Dockerfile lacks {line}"
        );
    }
}
