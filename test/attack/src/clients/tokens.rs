//! Clients with bogus tokens: they flood the metrics server, while a scraper with a valid token reads the metrics from another
//! address.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{Api, api::PostParams};
use olm_harness::ProcessStats;
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use super::{
    Limits, Measurement, failed_row,
    readers::Readers,
    target::{Target, receive, send},
};
use crate::{NAMESPACE, Row, Scale, World};

pub(super) const NAME: &str = "bogus-tokens";
const SCRAPER: &str = "scraper";
/// Maximum duration of a scrape during the flood. It is far below the timeout of a token review, which is twenty seconds.
const MAX_SCRAPE: Duration = Duration::from_secs(5);

pub(super) async fn attack(world: &World, target: &Arc<Target>, stats: ProcessStats, scale: Scale) -> Row {
    match perform(world, target, stats, scale).await {
        Ok(row) => row,
        Err(error) => failed_row(NAME, &error),
    }
}

async fn perform(world: &World, target: &Arc<Target>, stats: ProcessStats, scale: Scale) -> Result<Row> {
    let (clients, scrapes) = match scale {
        Scale::Small => (20, 3),
        Scale::Full => (100, 30),
    };
    let token = scraper(world).await?;
    let mut measurement = Measurement::begin(stats)?;
    let readers = Readers::start(target, 2);
    let mut flood = JoinSet::new();
    for number in 0..clients {
        let target = target.clone();
        flood.spawn(async move {
            for round in 0.. {
                // Disconnected and refused clients try again.
                let _ = scrape(&target, 1, &format!("bogus-{number}-{round}")).await;
                sleep(Duration::from_millis(1)).await;
            }
        });
    }
    measurement.sample(Duration::from_secs(1)).await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..scrapes {
        let start = Instant::now();
        let code = scrape(target, 2, &token)
            .await
            .context("the scraper is not answered")?;
        ensure!(code == 200, "the scraper is answered with {code}");
        slowest = slowest.max(start.elapsed());
        measurement.sample(super::SAMPLE_INTERVAL).await?;
    }
    ensure!(slowest < MAX_SCRAPE, "a scrape took {slowest:?}");
    ensure!(!flood.is_empty(), "the flood ended");
    let what = format!(
        "{clients} clients, {scrapes} scrapes, the slowest {} ms",
        slowest.as_millis()
    );
    let row = measurement.end(NAME, &what, readers, Limits::of_scale(scale));
    flood.shutdown().await;
    Ok(row)
}

/// Requests the metrics from the address 127.0.0.`last` with a token. Returns the status.
async fn scrape(target: &Target, last: u8, token: &str) -> Result<u16> {
    let mut stream = target.connect(last, target.metrics).await?;
    send(&mut stream, "/metrics", Some(token)).await?;
    receive(&mut stream).await
}

/// Creates a service account that may read metrics, and returns its token.
async fn scraper(world: &World) -> Result<String> {
    let (client, post) = (world.plane.client(), PostParams::default());
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let account = serde_json::from_value(json!({"metadata": {"name": SCRAPER}}))?;
    accounts.create(&post, &account).await?;
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": SCRAPER},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }))?;
    Api::all(client.clone()).create(&post, &role).await?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": SCRAPER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SCRAPER},
        "subjects": [{"kind": "ServiceAccount", "name": SCRAPER, "namespace": NAMESPACE}],
    }))?;
    Api::all(client).create(&post, &binding).await?;
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}}))?;
    let answer = accounts.create_token_request(SCRAPER, &post, &request).await?;
    answer.status.and_then(|status| status.token).context("no token")
}
