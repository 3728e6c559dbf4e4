//! Slow clients, which request a whole catalog and hardly read it, beside idle clients. There are 1,000 and 2,000 of them at full
//! scale.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use olm_harness::ProcessStats;
use tokio::{io::AsyncReadExt, task::JoinSet, time::sleep};

use super::{
    CATALOG, Limits, Measurement, PACKAGE, failed_row,
    readers::Readers,
    target::{Target, receive, send},
};
use crate::{Row, Scale};

pub(super) const NAME: &str = "slow";
/// Number of clients that connect concurrently.
const MAX_CONCURRENT: usize = 50;
/// Bytes that a slow client reads per second.
const RATE: usize = 1024;

pub(super) async fn attack(target: &Arc<Target>, stats: ProcessStats, scale: Scale) -> Row {
    match perform(target, stats, scale).await {
        Ok(row) => row,
        Err(error) => failed_row(NAME, &error),
    }
}

async fn perform(target: &Arc<Target>, stats: ProcessStats, scale: Scale) -> Result<Row> {
    let (idle, slow, time) = match scale {
        Scale::Small => (100, 100, Duration::from_secs(2)),
        Scale::Full => (2_000, 1_000, Duration::from_secs(30)),
    };
    let mut measurement = Measurement::begin(stats)?;
    let readers = Readers::start(target, 1);
    let mut clients = JoinSet::new();
    for number in (0..idle + slow).step_by(MAX_CONCURRENT) {
        for number in number..(number + MAX_CONCURRENT).min(idle + slow) {
            let target = target.clone();
            // Idle and slow clients alternate.
            let all = idle + slow;
            let reads = number * slow / all != (number + 1) * slow / all;
            clients.spawn(async move { client(&target, reads).await });
        }
        measurement.sample(super::SAMPLE_INTERVAL).await?;
    }
    measurement.sample(time).await?;
    let descriptors = stats.descriptors()?;
    let what = format!("{idle} idle, {slow} slow, {descriptors} descriptors");
    let row = measurement.end(NAME, &what, readers, Limits::tight(scale));
    clients.shutdown().await;
    Ok(row)
}

/// Runs a client that stays connected as long as possible. A slow client requests the whole catalog and reads it slowly; an idle
/// client requests little and then waits.
async fn client(target: &Target, slow: bool) -> Result<()> {
    let mut stream = target.connect(1, target.content).await?;
    if !slow {
        let path = format!("/catalogs/{CATALOG}/api/v1/metas?name={PACKAGE}");
        send(&mut stream, &path, None).await?;
        receive(&mut stream).await?;
        stream.read_u8().await?;
        return Ok(());
    }
    send(&mut stream, &format!("/catalogs/{CATALOG}/api/v1/all"), None).await?;
    let mut bytes = [0; RATE];
    loop {
        stream.read_exact(&mut bytes).await?;
        sleep(Duration::from_secs(1)).await;
    }
}
