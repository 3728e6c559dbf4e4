//! Rows of the group `slow-clients` about idle clients: connections over TLS that stay open after one request.

use anyhow::Result;
use futures::StreamExt as _;

use super::slow_clients::{CONNECTING, address};
use crate::load::{Ask, Connection, Target};
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;
use crate::report::subject::ContentServer;

/// Measures the memory of catalogd for each idle client.
pub(super) async fn run(bench: &mut Bench, content: &ContentServer, ask: &Ask) -> Result<()> {
    let count = bench.scale.idle_clients;
    let resident = || content.process.map(|process| mib(process, "VmRSS")).transpose();
    let before = resident()?;
    let clients: Vec<Connection> = futures::stream::iter(0..count)
        .map(|number| connect(&content.target, number, ask))
        .buffer_unordered(CONNECTING)
        // A refused client counts as not served, which is no error of the measurement.
        .filter_map(async |client| client.ok())
        .collect()
        .await;
    // What a handshake needs is free again. The server closes a connection that is idle for longer.
    tokio::time::sleep(bench.scale.settle).await;
    let words = format!("{count} idle clients, each after one request");
    let served = u32::try_from(clients.iter().filter(|client| client.is_open()).count())?;
    bench.add(&words, Measure::Served, served.into());
    if let Some((before, after)) = before.zip(resident()?) {
        bench.add(&words, Measure::Resident, after);
        let bytes = (after - before).max(0.0) * 1024.0 * 1024.0;
        bench.add(
            &words,
            Measure::MemoryEach,
            bytes / 1e3 / f64::from(served.max(1)),
        );
    }
    Ok(())
}

async fn connect(target: &Target, number: u32, ask: &Ask) -> Result<Connection> {
    let mut connection = target.connect_from(address(number)).await?;
    connection.get(ask, false).await?;
    Ok(connection)
}
