//! Tests that the validation of stored objects against the schema of a CRD agrees with the validation by the real API server.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use olm_applier::stored::{Limits, survey};
use olm_bundle::crd_schema::{Plan, plan};
use olm_harness::ControlPlane;
use serde_json::{Value, json};

const CASES: &str = include_str!("../../testdata/crd-schema/values.jsonl");

fn crd(kind: &str, fields: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.stored.example.com")},
        "spec": {
            "group": "stored.example.com", "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}}],
        },
    })
}

async fn install(client: &Client, crd: &Value) -> Api<DynamicObject> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let created = crds
        .create(
            &PostParams::default(),
            &serde_json::from_value(crd.clone()).unwrap(),
        )
        .await
        .unwrap();
    await_condition(crds, &created.name_any(), conditions::is_crd_established())
        .await
        .unwrap();
    let names = &created.spec.names;
    let kind = GroupVersionKind::gvk(&created.spec.group, "v1", &names.kind);
    Api::namespaced_with(
        client.clone(),
        "default",
        &ApiResource::from_gvk_with_plural(&kind, &names.plural),
    )
}

fn object(kind: &str, name: &str, spec: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "stored.example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

/// Checks that the API server accepts or refuses every value of every case as the case expects.
async fn the_api_server_agrees(client: &Client) {
    let cases: Vec<Value> = CASES
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let fields: Value = cases
        .iter()
        .enumerate()
        .map(|(at, case)| {
            (
                format!("f{at}"),
                json!({"type": "object", "properties": {"value": case["schema"]}}),
            )
        })
        .collect();
    let api = install(client, &crd("Case", &fields)).await;
    let mut requests = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        for (list, expected) in [("valid", true), ("invalid", false)] {
            for value in case[list].as_array().into_iter().flatten() {
                requests.push((at, value, expected));
            }
        }
    }
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let wrong: Vec<String> = stream::iter(&requests)
        .map(async |(at, value, expected)| {
            let field = format!("f{at}");
            let answer = api
                .create(&params, &object("Case", "a", &json!({field: {"value": value}})))
                .await;
            let accepted = match answer {
                Ok(_) => true,
                Err(kube::Error::Api(status)) if status.code == 422 => false,
                Err(error) => panic!("{value}: {error}"),
            };
            (accepted != *expected)
                .then(|| format!("{} {value}: the API server says {accepted}", cases[*at]["schema"]))
        })
        .buffered(8)
        .filter_map(async |wrong| wrong)
        .collect()
        .await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(requests.len() > 200, "{}", requests.len());
}

/// Checks that objects are read page by page within the size limits, and that invalid objects are named.
async fn all_pages_are_read(client: &Client) {
    let old = crd(
        "Pebble",
        &json!({"size": {"type": "integer"}, "note": {"type": "string"}}),
    );
    let new = crd(
        "Pebble",
        &json!({"size": {"type": "integer", "maximum": 100}, "note": {"type": "string"}}),
    );
    let api = install(client, &old).await;
    let make = async |at: usize| {
        let size = if at.is_multiple_of(50) { 1000 } else { 5 };
        let pebble = object(
            "Pebble",
            &format!("p{at:03}"),
            &json!({"size": size, "note": "x".repeat(500)}),
        );
        api.create(&PostParams::default(), &pebble).await.unwrap();
    };
    stream::iter(0..150)
        .map(make)
        .buffer_unordered(8)
        .collect::<Vec<()>>()
        .await;
    let Plan {
        group,
        plural,
        targets,
        ..
    } = plan(&old, &new);
    let target = Arc::new(targets.into_iter().next().unwrap());
    let limits = Limits {
        page: 70,
        // About twenty objects fit into this size, so a page of 70 objects is requested again in smaller parts.
        bytes: 20_000,
        named: 2,
        ..Limits::default()
    };
    let found = survey(client, &group, &plural, target, &limits).await.unwrap();
    assert_eq!((found.objects, found.broken, found.stopped), (150, 3, false));
    let named: Vec<String> = found
        .named
        .iter()
        .map(|broken| format!("{broken}: {}", broken.faults[0]))
        .collect();
    assert_eq!(
        named,
        [
            "default/p000: spec.size: 1000 is more than the maximum 100",
            "default/p050: spec.size: 1000 is more than the maximum 100",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_objects() {
    olm_harness::tls::install_provider();
    let plane = ControlPlane::start().await.unwrap();
    let client = plane.client();
    tokio::join!(the_api_server_agrees(&client), all_pages_are_read(&client));
}
