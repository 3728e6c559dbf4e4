//! Clients that request a whole catalog and hardly read it, beside idle ones: 1,000 and 2,000 at full scale.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use olm_harness::Kernel;
use tokio::{io::AsyncReadExt, task::JoinSet, time::sleep};

use super::{
    Bounds, CATALOG, PACKAGE, Watch, broken,
    readers::Readers,
    target::{Target, answer, ask},
};
use crate::{Row, Scale};

const NAME: &str = "slow";
/// Number of clients that connect concurrently.
const AT_ONCE: usize = 50;
/// Bytes that a slow client reads per second.
const RATE: usize = 1024;

pub(super) async fn attack(target: &Arc<Target>, kernel: Kernel, scale: Scale) -> Row {
    match perform(target, kernel, scale).await {
        Ok(row) => row,
        Err(error) => broken(NAME, &error),
    }
}

async fn perform(target: &Arc<Target>, kernel: Kernel, scale: Scale) -> Result<Row> {
    let (idle, slow, time) = match scale {
        Scale::Small => (100, 100, Duration::from_secs(2)),
        Scale::Full => (2_000, 1_000, Duration::from_secs(30)),
    };
    let mut watch = Watch::begin(kernel)?;
    let readers = Readers::start(target, 1);
    let mut clients = JoinSet::new();
    for number in (0..idle + slow).step_by(AT_ONCE) {
        for number in number..(number + AT_ONCE).min(idle + slow) {
            let target = target.clone();
            // Idle and slow clients alternate.
            let all = idle + slow;
            let reads = number * slow / all != (number + 1) * slow / all;
            clients.spawn(async move { client(&target, reads).await });
        }
        watch.look(super::LOOK).await?;
    }
    watch.look(time).await?;
    let descriptors = kernel.descriptors()?;
    let what = format!("{idle} idle, {slow} slow, {descriptors} descriptors");
    let row = watch.end(NAME, &what, readers, Bounds::tight(scale));
    clients.shutdown().await;
    Ok(row)
}

/// Runs a client that stays connected as long as possible: it requests all content and reads slowly, or requests
/// little and idles.
async fn client(target: &Target, slow: bool) -> Result<()> {
    let mut stream = target.connect(1, target.content).await?;
    if !slow {
        let path = format!("/catalogs/{CATALOG}/api/v1/metas?name={PACKAGE}");
        ask(&mut stream, &path, None).await?;
        answer(&mut stream).await?;
        stream.read_u8().await?;
        return Ok(());
    }
    ask(&mut stream, &format!("/catalogs/{CATALOG}/api/v1/all"), None).await?;
    let mut bytes = [0; RATE];
    loop {
        stream.read_exact(&mut bytes).await?;
        sleep(Duration::from_secs(1)).await;
    }
}
