//! Silent clients: they complete the TLS handshake and send nothing. There are 10,000 of them at full scale.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures::{StreamExt, stream};
use olm_harness::ProcessStats;
use tokio::{io::AsyncReadExt, time::timeout};

use super::{
    Limits, Measurement, failed_row,
    readers::Readers,
    target::{Stream, Target},
};
use crate::{Row, Scale};

pub(super) const NAME: &str = "silent";
/// Number of connections that are opened concurrently.
const MAX_CONCURRENT: usize = 64;
/// Time within which catalogd disconnects silent clients, with a margin for busy machines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(8);

pub(super) async fn attack(target: &Arc<Target>, stats: ProcessStats, scale: Scale) -> Row {
    match perform(target, stats, scale).await {
        Ok(row) => row,
        Err(error) => failed_row(NAME, &error),
    }
}

async fn perform(target: &Arc<Target>, stats: ProcessStats, scale: Scale) -> Result<Row> {
    let count = match scale {
        Scale::Small => 600,
        Scale::Full => 10_000,
    };
    let mut measurement = Measurement::begin(stats)?;
    let readers = Readers::start(target, 1);
    let opening = open(target, count);
    tokio::pin!(opening);
    let mut max_descriptors = 0;
    let silent = loop {
        tokio::select! {
            silent = &mut opening => break silent,
            sampled = measurement.sample(super::SAMPLE_INTERVAL) => sampled?,
        }
        max_descriptors = max_descriptors.max(stats.descriptors()?);
    };
    let opened = silent.len();
    measurement.sample(CLOSE_TIMEOUT).await?;
    let mut open = 0;
    for mut stream in silent {
        let mut byte = [0];
        if timeout(Duration::from_millis(1), stream.read(&mut byte))
            .await
            .is_err()
        {
            open += 1;
        }
    }
    ensure!(open == 0, "{open} of {opened} silent clients are still connected");
    let what = format!("{opened} clients, at most {max_descriptors} descriptors, none left");
    Ok(measurement.end(NAME, &what, readers, Limits::of_scale(scale)))
}

async fn open(target: &Arc<Target>, count: usize) -> Vec<Stream> {
    stream::iter(0..count)
        .map(|_| target.connect(1, target.content))
        .buffer_unordered(MAX_CONCURRENT)
        .filter_map(async |stream| stream.ok())
        .collect()
        .await
}
