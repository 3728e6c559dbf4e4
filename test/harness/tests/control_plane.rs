//! Tests of the harness: the control plane serves and its controllers work, images come back as they were pushed,
//! and no process outlives its owner.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests do")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use oci_client::Reference;
use oci_client::secrets::RegistryAuth;
use olm_harness::{
    ControlPlane, Format, ImageBuilder, PodStandIn, Process, Registry, RegistryOptions, Spawn, eventually,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(1);

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has exited.
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

fn exited_within(pids: &[u32], limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while pids.iter().any(|&pid| alive(pid)) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn pid_of(process: &Process) -> u32 {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(pid) = process.pid().filter(|&pid| alive(pid)) {
            return pid;
        }
        assert!(Instant::now() < end, "no pid");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_dropped_process_exits() {
    let dir = tempfile::tempdir().unwrap();
    let process = Spawn::new("sleeper", "sleep")
        .arg("1000")
        .spawn(dir.path())
        .unwrap();
    let pid = pid_of(&process);
    drop(process);
    assert!(exited_within(&[pid], Duration::from_secs(5)));
}

#[test]
fn an_exit_status_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Spawn::new("failing", "sh")
        .args(["-c", "echo because; exit 7"])
        .spawn(dir.path())
        .unwrap();
    assert_eq!(process.wait(TIMEOUT).unwrap().code(), Some(7));
    let text = process.check().unwrap_err().to_string();
    assert!(text.contains("failing") && text.contains("because"), "{text}");
}

#[test]
fn a_graceful_child_may_finish_and_a_stubborn_one_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let mut polite = Spawn::new("polite", "sh")
        .args(["-c", script])
        .grace_seconds(5)
        .spawn(dir.path())
        .unwrap();
    while !polite.tail(5).contains("up") {
        std::thread::sleep(Duration::from_millis(5));
    }
    polite.stop();
    assert!(polite.tail(5).contains("bye"));
    let script = "trap '' TERM; echo up; while :; do sleep 0.05; done";
    let mut stubborn = Spawn::new("stubborn", "sh")
        .args(["-c", script])
        .grace_seconds(1)
        .spawn(dir.path())
        .unwrap();
    while !stubborn.tail(5).contains("up") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = pid_of(&stubborn);
    stubborn.stop();
    assert!(exited_within(&[pid], Duration::from_secs(5)));
}

#[test]
fn signals_reach_the_child() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Spawn::new("sleeper", "sleep")
        .arg("1000")
        .spawn(dir.path())
        .unwrap();
    pid_of(&process);
    process.signal("TERM").unwrap();
    assert_eq!(process.wait(TIMEOUT).unwrap().code(), Some(128 + 15));
}

/// Helper process, not a test: the owner that the next test kills. Prints its children's process ids.
#[test]
fn owner_to_be_killed() {
    let Some(dir) = std::env::var_os("OLM_HARNESS_OWNER_DIR") else {
        return;
    };
    let dir = std::path::PathBuf::from(dir);
    let plain = Spawn::new("plain", "sleep").arg("1000").spawn(&dir).unwrap();
    let graceful = Spawn::new("graceful", "sh")
        .args(["-c", "trap '' TERM INT HUP; while :; do sleep 0.1; done"])
        .grace_seconds(1)
        .spawn(&dir)
        .unwrap();
    std::fs::write(
        dir.join("pids.new"),
        format!("{}\n{}", pid_of(&plain), pid_of(&graceful)),
    )
    .unwrap();
    std::fs::rename(dir.join("pids.new"), dir.join("pids")).unwrap();
    std::thread::sleep(Duration::from_secs(1000));
}

#[test]
fn children_end_when_their_owner_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_to_be_killed", "--nocapture"])
        .env("OLM_HARNESS_OWNER_DIR", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + TIMEOUT;
    let pids: Vec<u32> = loop {
        if let Ok(text) = std::fs::read_to_string(dir.path().join("pids")) {
            break text.lines().map(|line| line.parse().unwrap()).collect();
        }
        assert!(Instant::now() < end, "the owner has not started");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|&pid| alive(pid)));
    // On Unix this is SIGKILL: the owner runs no further code.
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(
        exited_within(&pids, Duration::from_secs(10)),
        "some of {pids:?} outlive their owner"
    );
}

#[tokio::test]
async fn the_control_plane_works_and_leaves_nothing() {
    let started = Instant::now();
    let control_plane = ControlPlane::start().await.unwrap();
    eprintln!("ready in {:?}", started.elapsed());
    let client = control_plane.client();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.36.3");

    // The controllers work: a namespace gets its account and is deleted.
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "one"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    namespaces
        .delete("one", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    eventually(TIMEOUT, "the namespace is gone", async || {
        match namespaces.get_opt("one").await? {
            None => Ok(()),
            Some(namespace) => anyhow::bail!("{:?}", namespace.status),
        }
    })
    .await
    .unwrap();

    // RBAC: other users have no rights.
    let nobody = control_plane.client_for("nobody", None).await.unwrap();
    let refused = Api::<Namespace>::all(nobody)
        .list(&kube::api::ListParams::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.is_forbidden()),
        "{refused}"
    );
    assert!(namespaces.get("default").await.unwrap().name_any() == "default");

    let pids = control_plane.pids();
    let logs = control_plane.logs();
    assert_eq!(pids.len(), 3);
    drop(control_plane);
    assert!(
        exited_within(&pids, Duration::from_secs(10)),
        "some of {pids:?} still run"
    );
    assert!(!logs.exists());
}

async fn available_is(client: &Client, name: &str, wanted: &str) {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    eventually(TIMEOUT, &format!("{name} has Available={wanted}"), async || {
        let status = deployments.get_status(name).await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        match conditions.iter().find(|condition| condition.type_ == "Available") {
            Some(condition) if condition.status == wanted => Ok(()),
            other => anyhow::bail!("{other:?}"),
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn deployments_become_available_and_go_with_all_they_own() {
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client();
    let pods = PodStandIn::start(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    for (name, image) in [
        ("one", "registry.invalid/good:v1"),
        ("one-more", "registry.invalid/bad-image:v1"),
    ] {
        let deployment = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
            },
        }))
        .unwrap();
        deployments
            .create(&PostParams::default(), &deployment)
            .await
            .unwrap();
    }
    let started = Instant::now();
    available_is(&client, "one", "True").await;
    available_is(&client, "one-more", "True").await;
    eprintln!("available in {:?}", started.elapsed());

    pods.set_ready("default", "one", false).await;
    available_is(&client, "one", "False").await;
    available_is(&client, "one-more", "True").await;
    pods.set_ready("default", "one", true).await;
    pods.set_image_pulls("bad-image", false).await;
    available_is(&client, "one", "True").await;
    available_is(&client, "one-more", "False").await;
    pods.set_image_pulls("bad-image", true).await;
    available_is(&client, "one-more", "True").await;

    // The garbage collector deletes the dependents.
    for name in ["one", "one-more"] {
        deployments
            .delete(name, &kube::api::DeleteParams::background())
            .await
            .unwrap();
    }
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    let all_pods: Api<Pod> = Api::default_namespaced(client);
    eventually(TIMEOUT, "ReplicaSets and pods are gone", async || {
        let everything = kube::api::ListParams::default();
        let left = (
            sets.list(&everything).await?.items.len(),
            all_pods.list(&everything).await?.items.len(),
        );
        anyhow::ensure!(left == (0, 0), "{left:?}");
        Ok(())
    })
    .await
    .unwrap();
}

async fn pull(registry: &Registry, name: &str) -> anyhow::Result<(String, Vec<Vec<u8>>)> {
    let client = registry.client();
    let image: Reference = format!("{}/{name}", registry.host()).parse()?;
    let (manifest, digest) = client
        .pull_image_manifest(&image, &RegistryAuth::Anonymous)
        .await?;
    let mut layers = Vec::new();
    for layer in &manifest.layers {
        let mut bytes = Vec::new();
        client.pull_blob(&image, layer, &mut bytes).await?;
        layers.push(bytes);
    }
    Ok((digest, layers))
}

fn files_of(layer: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(layer));
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn images_come_back_as_pushed() {
    for tls in [false, true] {
        let mut registry = Registry::start_with(RegistryOptions {
            tls,
            ..RegistryOptions::default()
        })
        .await
        .unwrap();
        for format in [Format::Oci, Format::Docker] {
            let builder = ImageBuilder::new()
                .format(format)
                .label("who", "me")
                .file("a/b/c.txt", "one")
                .new_layer()
                .file("/d.txt", "two");
            let digest = builder.clone().push(&registry, "some/image:v1").await.unwrap();
            let (pulled, layers) = pull(&registry, "some/image:v1").await.unwrap();
            assert_eq!(pulled, digest);
            let names: Vec<_> = layers.iter().map(|layer| files_of(layer)).collect();
            assert_eq!(names, [vec!["a/", "a/b/", "a/b/c.txt"], vec!["d.txt"]]);
            // Equal content has an equal digest.
            assert_eq!(builder.push(&registry, "some/image:v2").await.unwrap(), digest);
        }
        let host = registry.host();
        registry.stop();
        assert!(pull(&registry, "some/image:v1").await.is_err());
        registry.restart().await.unwrap();
        assert_eq!(registry.host(), host);
        pull(&registry, "some/image:v1").await.unwrap();
    }
}
