//! Rows of the group `slow-clients` about idle clients: connections over TLS that stay open after one request.

use anyhow::Result;
use futures::StreamExt as _;

use super::slow_clients::{CONNECTING, address};
use crate::load::{Ask, Connection};
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;
use crate::report::subject::ContentServer;

/// Measures the memory of catalogd for each idle client: first of clients that have asked nothing, then of the same clients after one
/// request each.
pub(super) async fn run(bench: &mut Bench, content: &ContentServer, ask: &Ask) -> Result<()> {
    let (count, settle, idle) = (bench.scale.idle_clients, bench.scale.settle, bench.scale.idle);
    let before = resident(content)?;
    let clients: Vec<Connection> = futures::stream::iter(0..count)
        .map(async |number| content.target.connect_from(address(number)).await)
        .buffer_unordered(CONNECTING)
        // A refused client counts as not served, which is no error of the measurement.
        .filter_map(async |client| client.ok())
        .collect()
        .await;
    let words = format!("{count} idle clients that have asked nothing");
    // What a handshake needs is free again. The server closes a connection without any request soon after.
    tokio::time::sleep(settle).await;
    add(bench, content, &words, &clients, before)?;
    let clients: Vec<Connection> = futures::stream::iter(clients)
        .map(async |mut client| client.get(ask, false).await.map(|_| client))
        .buffer_unordered(CONNECTING)
        .filter_map(async |client| client.ok())
        .collect()
        .await;
    let words = format!("{count} idle clients, each after one request");
    tokio::time::sleep(idle).await;
    add(bench, content, &words, &clients, before)
}

/// Adds the rows about these clients. `before` is the resident memory without them, in MiB.
fn add(
    bench: &mut Bench,
    content: &ContentServer,
    words: &str,
    clients: &[Connection],
    before: Option<f64>,
) -> Result<()> {
    let served = u32::try_from(clients.iter().filter(|client| client.is_open()).count())?;
    bench.add(words, Measure::Served, served.into());
    if let Some((before, after)) = before.zip(resident(content)?) {
        bench.add(words, Measure::Resident, after);
        let bytes = (after - before).max(0.0) * 1024.0 * 1024.0;
        bench.add(words, Measure::MemoryEach, bytes / 1e3 / f64::from(served.max(1)));
    }
    Ok(())
}

fn resident(content: &ContentServer) -> Result<Option<f64>> {
    content.process.map(|process| mib(process, "VmRSS")).transpose()
}
