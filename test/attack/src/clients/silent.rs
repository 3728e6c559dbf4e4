//! Clients that complete the TLS handshake and send nothing: 10,000 at full scale.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures::{StreamExt, stream};
use olm_harness::Kernel;
use tokio::{io::AsyncReadExt, time::timeout};

use super::{
    Bounds, Watch, broken,
    readers::Readers,
    target::{Stream, Target},
};
use crate::{Row, Scale};

const NAME: &str = "silent";
/// Number of connections that are opened concurrently.
const AT_ONCE: usize = 64;
/// Time after which silent clients are disconnected, with a margin for busy machines.
const CLOSED: Duration = Duration::from_secs(8);

pub(super) async fn attack(target: &Arc<Target>, kernel: Kernel, scale: Scale) -> Row {
    match perform(target, kernel, scale).await {
        Ok(row) => row,
        Err(error) => broken(NAME, &error),
    }
}

async fn perform(target: &Arc<Target>, kernel: Kernel, scale: Scale) -> Result<Row> {
    let count = match scale {
        Scale::Small => 600,
        Scale::Full => 10_000,
    };
    let mut watch = Watch::begin(kernel)?;
    let readers = Readers::start(target, 1);
    let opening = open(target, count);
    tokio::pin!(opening);
    let mut most = 0;
    let silent = loop {
        tokio::select! {
            silent = &mut opening => break silent,
            looked = watch.look(super::LOOK) => looked?,
        }
        most = most.max(kernel.descriptors()?);
    };
    let opened = silent.len();
    watch.look(CLOSED).await?;
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
    let what = format!("{opened} clients, at most {most} descriptors, none left");
    Ok(watch.end(NAME, &what, readers, Bounds::of(scale)))
}

async fn open(target: &Arc<Target>, count: usize) -> Vec<Stream> {
    stream::iter(0..count)
        .map(|_| target.connect(1, target.content))
        .buffer_unordered(AT_ONCE)
        .filter_map(async |stream| stream.ok())
        .collect()
        .await
}
