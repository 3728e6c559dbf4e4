//! Test on the real API server that the commands in messages and documentation remove a version of a CRD.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::path::Path;
use std::process::Command;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use olm_applier::stored::{SearchLimits, uses};
use olm_bundle::crd_safety::{Finding, Rules, ServedVerdict, check, migration, unserved_versions};
use olm_harness::{ControlPlane, workspace};
use olm_integration::vectors::skipped;
use serde_json::{Value, json};

const NAME: &str = "tests.example.com";

/// Returns a CRD whose versions have the same schema.
fn crd(versions: &[&str], storage: &str) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Test", "listKind": "TestList", "plural": "tests", "singular": "test"},
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

/// Replaces the spec of the CRD, as an upgrade does.
async fn replace(client: &Client, crd: &Value) -> kube::Result<CustomResourceDefinition> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut new: CustomResourceDefinition = serde_json::from_value(crd.clone()).unwrap();
    match api.get_opt(NAME).await? {
        Some(old) => {
            new.metadata.resource_version = old.resource_version();
            api.replace(NAME, &PostParams::default(), &new).await
        }
        None => api.create(&PostParams::default(), &new).await,
    }
}

/// Returns the CRD that is on the cluster.
async fn current(client: &Client) -> Value {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    serde_json::to_value(api.get(NAME).await.unwrap()).unwrap()
}

fn objects(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", version, "Test");
    let kind = ApiResource::from_gvk_with_plural(&kind, "tests");
    Api::namespaced_with(client.clone(), "default", &kind)
}

async fn write(client: &Client, version: &str, name: &str) {
    let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Test", "metadata": {"name": name},
                        "spec": {"size": 1}});
    let params = PostParams {
        field_manager: Some(format!("writer-of-{version}")),
        ..PostParams::default()
    };
    let object = serde_json::from_value(object).unwrap();
    objects(client, version).create(&params, &object).await.unwrap();
}

/// Runs a shell command with the rights of an administrator.
fn shell(kubeconfig: &Path, command: &str) {
    let output = Command::new("sh")
        .args(["-ec", command])
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
}

/// Returns true if the commands are available. Otherwise, prints a line that says so.
fn has_commands() -> bool {
    let has = |command: &str| {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {command}")])
            .output();
        found.is_ok_and(|output| output.status.success())
    };
    let all = has("kubectl") && has("jq");
    if !all {
        skipped("kubectl and jq are not on the PATH, so no command was run");
    }
    all
}

async fn check_served(client: &Client, old: &Value, new: &Value) -> ServedVerdict {
    let unserved = unserved_versions(old, new).unwrap();
    let found = uses(client, &unserved, &SearchLimits::default()).await.unwrap();
    unserved.evaluate(&found)
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_removed_by_the_documented_commands() {
    if !has_commands() {
        return;
    }
    olm_harness::tls::install_provider();
    let plane = ControlPlane::start().await.unwrap();
    let (client, kubeconfig) = (plane.client(), plane.kubeconfig());

    // Objects are stored in v1alpha1 first and in v1 later, and clients write through both versions.
    replace(&client, &crd(&["v1alpha1", "v1"], "v1alpha1"))
        .await
        .unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    await_condition(crds, NAME, conditions::is_crd_established())
        .await
        .unwrap();
    write(&client, "v1alpha1", "one").await;
    write(&client, "v1", "two").await;
    let new = crd(&["v1"], "v1");
    let instructions = migration(&current(&client).await, &new).unwrap();
    assert!(
        instructions.starts_with("Objects are still stored in v1alpha1: first upgrade"),
        "{instructions}"
    );
    replace(&client, &crd(&["v1alpha1", "v1"], "v1")).await.unwrap();

    // The API server refuses the removal of a stored version; the commands migrate it.
    let old = current(&client).await;
    assert_eq!(rules(&check(&old, &new, Rules::Ours)), ["storedVersionRemoval"]);
    assert_eq!(unserved_versions(&old, &new), None, "one rule is enough");
    assert!(replace(&client, &new).await.is_err());
    let instructions = migration(&old, &new).unwrap();
    let commands: Vec<&str> = instructions.split('`').skip(1).step_by(2).collect();
    let [write, shorten, both] = commands.as_slice() else {
        panic!("{instructions}");
    };
    assert_eq!(*both, "kubectl olm crd migrate tests.example.com");
    for command in [write, shorten] {
        shell(kubeconfig, command);
    }
    let old = current(&client).await;
    assert_eq!(check(&old, &new, Rules::Ours), []);
    assert_eq!(migration(&old, &new), None);

    // A client has written through the version. Without the right to list objects, nobody could know that.
    let served = check_served(&client, &old, &new).await;
    assert_eq!(rules(&served.findings), ["servedVersionRemoval"]);
    let text = served.findings[0].to_string();
    assert!(
        text.contains("but \"writer-of-v1alpha1\" wrote default/one through it"),
        "{text}"
    );
    let nobody = plane.client_for("nobody", None).await.unwrap();
    let refused = uses(
        &nobody,
        &unserved_versions(&old, &new).unwrap(),
        &SearchLimits::default(),
    )
    .await;
    assert!(refused.unwrap_err().is_permanent(&old));

    // The command in the documentation removes exactly these entries.
    let path = workspace::root().join("docs/crd-upgrade-safety.md");
    let document = std::fs::read_to_string(path).unwrap();
    let mut blocks = document
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let command = blocks.find(|block| block.contains("jq")).unwrap();
    shell(kubeconfig, command);
    let served = check_served(&client, &old, &new).await;
    assert_eq!((served.findings.len(), served.warnings.len()), (0, 1));
    let two = objects(&client, "v1").get("two").await.unwrap();
    let kept = two.managed_fields().iter();
    let kept: Vec<_> = kept.filter_map(|entry| entry.manager.as_deref()).collect();
    assert!(kept.contains(&"writer-of-v1"), "{kept:?}");

    replace(&client, &new).await.unwrap();
    let one = objects(&client, "v1").get("one").await.unwrap();
    assert_eq!(one.data.pointer("/spec/size"), Some(&json!(1)));
}
