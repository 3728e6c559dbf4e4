//! Validation by the real API server with this project's CRDs: this project's own cases, and upstream's recorded answers if they
//! are available. Also checks behaviour of the API server that the applier relies on although Kubernetes does not document it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use olm_harness::{ControlPlane, install_crds, workspace};
use olm_integration::{api_validation, vectors};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_validates_as_expected() {
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client();
    install_crds(&client).await.unwrap();
    an_apply_of_version_1_only_creates(&client).await;

    let mut wrong = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(workspace::testdata().join("api"))
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let mut own = 0;
    for path in files {
        for case in api_validation::own_cases(&path).unwrap() {
            own += 1;
            let difference = api_validation::run_case(&client, &case).await.unwrap();
            wrong.extend(difference.map(|difference| format!("{}: {difference}", case.name)));
        }
    }
    println!("own cases: {own}, wrong: {}", wrong.len());
    assert!(own > 0);

    if let Some(dir) = vectors::folder("no recorded answer was compared") {
        let report = api_validation::run_at(&client, &dir).await.unwrap();
        println!("{report}");
        wrong.extend(report.wrong);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks that an apply with resource version 1 creates an object or fails. No object has this version, so the apply never
/// changes an existing object, not even one of the same field manager.
async fn an_apply_of_version_1_only_creates(client: &Client) {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let apply = async |version: Option<&str>, value: &str| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "once", "resourceVersion": version},
            "data": {"key": value}});
        let params = PatchParams::apply("once").force();
        config_maps.patch("once", &params, &Patch::Apply(object)).await
    };
    let created = apply(Some("1"), "first").await.unwrap();
    assert_eq!(
        created.metadata.managed_fields.unwrap()[0].operation.as_deref(),
        Some("Apply")
    );
    match apply(Some("1"), "second").await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 409, "{status:?}"),
        other => panic!("an object that exists is applied: {other:?}"),
    }
    let changed = apply(None, "second").await.unwrap();
    assert_eq!(changed.data.unwrap()["key"], "second");
}
