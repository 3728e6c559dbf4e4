//! Test that the judge attributes writes to their senders and reports a controller that breaks an invariant or logs a Secret.

use std::fs::OpenOptions;
use std::io::Write as _;

use kube::api::{DeleteParams, PostParams};
use olm_faults::scenario::{FOREIGN_SECRET, Promises};
use olm_faults::{Commands, Judge, Programs, World, kinds};
use olm_harness::tls;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn an_unguarded_deletion_through_the_proxy_and_a_logged_secret_are_violations() {
    let programs = Programs::find(&Commands::default()).await.unwrap();
    let world = World::start(&programs).await.unwrap();
    let client = world.client();
    let mut judge = Judge::start(&world, Promises::All).await.unwrap();
    let config_maps = kinds::CONFIG_MAP.api(&client, "default");
    for name in ["by-controller", "by-others"] {
        let labels = json!({"olm.operatorframework.io/owner-kind": "ClusterExtension"});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}});
        let object = serde_json::from_value(object).unwrap();
        config_maps.create(&PostParams::default(), &object).await.unwrap();
    }
    assert_eq!(judge.violations("1").await, []);
    let url = format!(
        "{}/api/v1/namespaces/default/configmaps/by-controller",
        world.proxy.url()
    );
    let deleted = tls::http_client(None).unwrap().delete(url).send().await.unwrap();
    assert!(deleted.status().is_success());
    config_maps
        .delete("by-others", &DeleteParams::default())
        .await
        .unwrap();
    let found = judge.violations("2").await;
    let names: Vec<&str> = found
        .iter()
        .map(|violation| violation.invariant.as_str())
        .collect();
    assert_eq!(names, ["guarded-deletion"], "{found:#?}");
    assert!(found[0].text.contains("by-controller"), "{found:#?}");

    // The controller's log stands in for a controller that logs what it reads.
    let mut log = OpenOptions::new()
        .append(true)
        .open(world.controller.log())
        .unwrap();
    writeln!(log, "read {FOREIGN_SECRET}").unwrap();
    let found = judge.violations("3").await;
    assert!(
        found.len() == 1 && found[0].invariant == "no-secrets",
        "{found:#?}"
    );
    assert_eq!(judge.violations("4").await, []);
}
