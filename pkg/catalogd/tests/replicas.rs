//! Three replicas of the real catalogd against one API server: each serves its own copy, and readers of the others do
//! not notice the death of the leader.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use olm_api::ClusterCatalog;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, Registry, controllers::SYSTEM_NAMESPACE,
    eventually, install_crds,
};
use serde_json::json;
use tokio::sync::Notify;

const PATIENCE: Duration = Duration::from_mins(1);
const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";
const REPLICAS: usize = 3;
const READS: usize = 1_000;
/// Number of reads before the leader is killed.
const KILL_AFTER: usize = 200;
const READERS: usize = 4;

/// Pushes a catalog with the package `package`, large enough to take a moment.
async fn push(registry: &Registry, tag: &str, package: &str) -> Result<String> {
    let mut text = format!("{{\"schema\":\"olm.package\",\"name\":\"{package}\"}}\n");
    for number in 0..500 {
        let padding = "x".repeat(200);
        writeln!(
            text,
            "{{\"schema\":\"olm.bundle\",\"package\":\"{package}\",\"name\":\"{package}.v{number}\",\"note\":\"{padding}\"}}"
        )?;
    }
    let image = ImageBuilder::new()
        .label(CONFIGS, "/configs")
        .file("configs/catalog.json", text.into_bytes());
    let digest = image.push(registry, &format!("test/replicated:{tag}")).await?;
    Ok(format!("{}/test/replicated@{digest}", registry.host()))
}

async fn apply(catalogs: &Api<ClusterCatalog>, image: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "replicated"},
        "spec": {"source": {"type": "Image", "image": {"ref": image}}},
    });
    catalogs
        .patch(
            "replicated",
            &PatchParams::apply("test").force(),
            &Patch::Apply(object),
        )
        .await?;
    Ok(())
}

/// Returns a client that trusts the replicas' authority.
async fn client(plane: &ControlPlane) -> Result<reqwest::Client> {
    let secrets = Api::<Secret>::namespaced(plane.client(), SYSTEM_NAMESPACE);
    let data = secrets
        .get("catalogd-service-own-cert")
        .await?
        .data
        .unwrap_or_default();
    let ca = data.get("ca.crt").context("no ca.crt")?;
    Ok(reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&ca.0)?)
        .timeout(Duration::from_secs(20))
        .build()?)
}

/// Reads a response of a replica.
async fn read(client: &reqwest::Client, replica: &str, query: &str) -> Result<(u16, String)> {
    let url = format!("{replica}/catalogs/replicated/api/v1/{query}");
    let answer = client.get(url).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

async fn all_serve(client: &reqwest::Client, replicas: &[String], package: &str) -> Result<String> {
    let wanted = format!("{{\"name\":\"{package}\",\"schema\":\"olm.package\"}}\n");
    let mut contents = Vec::new();
    for replica in replicas {
        eventually(PATIENCE, &format!("{replica} serves {package}"), async || {
            let answer = read(client, replica, "metas?schema=olm.package").await?;
            ensure!(answer == (200, wanted.clone()), "{answer:?}");
            Ok(())
        })
        .await?;
        contents.push(read(client, replica, "all").await?.1);
    }
    ensure!(
        contents.windows(2).all(|two| two.first() == two.last()),
        "the replicas differ"
    );
    contents.pop().context("no replica")
}

/// Reads like clients of a Service: from `going` while it is ready, then from `staying`. Returns the number of reads
/// from each. `going` is stopped after some reads.
async fn read_while_it_stops(
    client: &reqwest::Client,
    going: &mut Catalogd,
    staying: &str,
    content: &str,
) -> Result<(usize, usize)> {
    let probes = reqwest::Client::builder().no_proxy().build()?;
    let (url, ready) = (going.url(), going.controller().ready_url());
    let (mut before, mut after) = (0, 0);
    for number in 0..READS {
        if number == KILL_AFTER {
            let process = going.controller().process().context("it does not run")?;
            process.signal("TERM")?;
        }
        // Readiness is checked once it can have changed, and never again after it did.
        let is_ready = after == 0
            && (number < KILL_AFTER
                || probes
                    .get(&ready)
                    .send()
                    .await
                    .is_ok_and(|answer| answer.status().is_success()));
        let (replica, count) = if is_ready {
            (url.as_str(), &mut before)
        } else {
            (staying, &mut after)
        };
        let (status, text) = read(client, replica, "all").await?;
        ensure!(status == 200, "{status} from {replica} for request {number}");
        ensure!(text == content, "another content from {replica}");
        *count += 1;
    }
    Ok((before, after))
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_do_not_notice_the_death_of_the_leader() -> Result<()> {
    olm_harness::tls::install_provider();
    let plane = ControlPlane::start().await?;
    let registry = Registry::start().await?;
    install_crds(&plane.client()).await?;
    let mut replicas = Vec::new();
    for number in 0..REPLICAS {
        let options = ControllerOptions {
            args: vec!["--leader-elect".to_owned(), "--shutdown-delay=3s".to_owned()],
            envs: vec![("POD_NAME".to_owned(), format!("replica-{number}"))],
            ..ControllerOptions::default()
        };
        replicas.push(Catalogd::start_with(&plane, &registry, options).await?);
    }
    let urls: Vec<String> = replicas.iter().map(Catalogd::url).collect();
    let client = client(&plane).await?;
    let catalogs = Api::<ClusterCatalog>::all(plane.client());

    // All replicas serve what the leader resolved, also after the tag moved.
    apply(&catalogs, &push(&registry, "v1", "first").await?).await?;
    all_serve(&client, &urls, "first").await?;
    apply(&catalogs, &push(&registry, "v2", "second").await?).await?;
    let content = Arc::new(all_serve(&client, &urls, "second").await?);

    let leases = Api::<Lease>::namespaced(plane.client(), SYSTEM_NAMESPACE);
    let lease = leases.get("catalogd-operator-lock").await?;
    let holder = lease
        .spec
        .and_then(|spec| spec.holder_identity)
        .unwrap_or_default();
    let leader = (0..REPLICAS)
        .find(|number| holder.starts_with(&format!("replica-{number}_")))
        .with_context(|| format!("{holder} is no replica"))?;
    let others: Vec<String> = urls
        .iter()
        .enumerate()
        .filter(|(number, _)| *number != leader)
        .map(|(_, url)| url.clone())
        .collect();

    let count = Arc::new(AtomicUsize::new(0));
    let enough = Arc::new(Notify::new());
    let mut readers = Vec::new();
    for reader in 0..READERS {
        let (client, others) = (client.clone(), others.clone());
        let (count, enough, content) = (count.clone(), enough.clone(), content.clone());
        readers.push(tokio::spawn(async move {
            for number in 0..READS / READERS {
                let replica = others
                    .get((reader + number) % others.len())
                    .context("no other replica")?;
                let (status, text) = read(&client, replica, "all").await?;
                ensure!(status == 200, "{status} from {replica} for request {number}");
                ensure!(text == *content, "another content from {replica}");
                if count.fetch_add(1, Ordering::Relaxed) == KILL_AFTER {
                    enough.notify_one();
                }
            }
            Ok(())
        }));
    }
    let killed = replicas
        .get_mut(leader)
        .and_then(|replica| replica.controller().process())
        .context("the leader does not run")?;
    tokio::time::timeout(PATIENCE, enough.notified())
        .await
        .context("the others are not read")?;
    killed.signal("KILL")?;
    ensure!(
        count.load(Ordering::Relaxed) < READS,
        "all was read before the leader was killed"
    );
    killed.wait(PATIENCE)?;
    for reader in readers {
        reader.await??;
    }
    assert_eq!(count.load(Ordering::Relaxed), READS);

    // The restarted replica serves its content on disk and follows the new leader.
    if let Some(replica) = replicas.get_mut(leader) {
        replica.controller().restart().await?;
    }
    assert_eq!(all_serve(&client, &urls, "second").await?, *content);

    // A stopping replica first becomes unready, and still serves while readers move to others.
    let staying = others.first().context("no other replica")?.clone();
    if let Some(going) = replicas.get_mut(leader) {
        let (before, after) = read_while_it_stops(&client, going, &staying, &content).await?;
        ensure!(
            before >= KILL_AFTER && after > 0,
            "{before} before, {after} after"
        );
        let process = going.controller().process().context("it does not run")?;
        let ended = process.wait(PATIENCE)?;
        ensure!(ended.success(), "{ended}");
    }
    // The other replicas are stopped without a delay, which would only prolong the test.
    for replica in &mut replicas {
        if let Some(process) = replica.controller().process() {
            let _gone_already = process.signal("KILL");
        }
    }
    Ok(())
}
