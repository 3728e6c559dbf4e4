//! Group `slow-clients`: many clients request a whole catalog and read it very slowly, while others read at full speed. Then even more
//! clients stay connected without a request.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::idle_clients;
use crate::generate;
use crate::load::{Ask, Target, load};
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;

/// Size of an object of the catalog, in bytes.
const OBJECT: usize = 20_000;
/// Number of clients that connect in parallel.
pub(super) const CONNECTING: usize = 50;
/// Number of clients with the same address. A server may limit the connections from one address.
const OF_ONE_ADDRESS: u32 = 250;
/// Address of the first clients, 127.0.1.1. All addresses of the network 127.0.0.0/8 belong to this machine.
const FIRST_ADDRESS: u32 = 0x7f00_0101;
/// Number of bytes that a slow client reads per second.
const RATE: usize = 1024;
/// Number of connections of the clients at full speed.
const READERS: usize = 4;
const CATALOG: &str = "slow";

/// Measures all rows about slow clients. There are none if the address of the content server is unknown.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let Some(content) = bench.subject.content(&bench.stage).await? else {
        return Ok(());
    };
    let work = tempfile::tempdir()?;
    generate::made_up(work.path(), bench.scale.slow_megabytes * 1_000_000, OBJECT)?;
    let (_, image) = bench.stage.world.push(work.path(), "bench/slow:1").await?;
    bench.stage.world.apply(CATALOG, &image, None).await?;
    bench.stage.world.serving(CATALOG, &image).await?;
    tokio::time::sleep(bench.scale.settle).await;
    let ask = Ask::new(format!(
        "/catalogs/{CATALOG}/api/v1/metas?schema=olm.package&name=made-up-0000000"
    ));
    let time = bench.scale.load;
    let measured = async || {
        load(
            &content.target,
            std::slice::from_ref(&ask),
            READERS,
            time,
            StatusCode::OK,
        )
        .await
    };
    let alone = measured().await?;
    let count = bench.scale.slow_clients;
    if let Some(process) = content.process {
        process.reset_peak()?;
    }
    let clients = Clients::start(&content.target, count).await;
    let beside = measured().await?;
    let words = format!(
        "{count} slow clients of `/all` ({} MB, 1 KiB a second each)",
        bench.scale.slow_megabytes
    );
    bench.add(&words, Measure::Served, clients.served().into());
    if let Some(process) = content.process {
        bench.add(&words, Measure::Resident, mib(process, "VmRSS")?);
        bench.add(&words, Measure::Peak, mib(process, "VmHWM")?);
        let descriptors = u32::try_from(process.descriptors()?)?;
        bench.add(&words, Measure::Descriptors, descriptors.into());
    }
    clients.end().await;
    for (load, words) in [
        (
            alone,
            format!("`/metas` one package, {READERS} connections, alone"),
        ),
        (beside, "the same beside the slow clients".to_owned()),
    ] {
        bench.add(&words, Measure::Rate, load.per_second);
        bench.add(&words, Measure::P99, load.p99.as_secs_f64() * 1e3);
        bench.add(&words, Measure::Worst, load.worst.as_secs_f64() * 1e3);
    }
    // An allocator may return freed pages only after some seconds.
    tokio::time::sleep(bench.scale.rest).await;
    if let Some(process) = content.process {
        let rest = bench.scale.rest.as_secs_f64();
        let words = format!("{rest} s after {count} slow clients have left");
        bench.add(&words, Measure::Resident, mib(process, "VmRSS")?);
    }
    idle_clients::run(bench, &content, &ask).await?;
    bench.stage.world.delete(CATALOG).await
}

/// Returns the address of the client with this number.
pub(super) fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_ADDRESS + number / OF_ONE_ADDRESS)
}

/// Connected slow clients. Dropping them disconnects.
struct Clients {
    tasks: JoinSet<()>,
    /// Number of clients that the server still answers.
    served: Arc<AtomicU32>,
}

/// Guard of a client that gets its answer. While it exists, the client counts as served.
struct Served(Arc<AtomicU32>);

impl Clients {
    /// Connects this number of clients. When it returns, each client has begun to read or has failed.
    async fn start(target: &Target, count: u32) -> Self {
        let served = Arc::new(AtomicU32::new(0));
        let connecting = Arc::new(tokio::sync::Semaphore::new(CONNECTING));
        let (begun, mut all_begun) = tokio::sync::mpsc::channel::<()>(1);
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let source = address(number);
            let (target, served, connecting) = (target.clone(), served.clone(), connecting.clone());
            let begun = begun.clone();
            tasks.spawn(async move {
                let permit = connecting.acquire().await;
                // A refused client counts as not served, which is no error of the measurement.
                let Ok(stream) = begin(&target, source).await else {
                    return;
                };
                let client = Served::new(served);
                drop((permit, begun));
                read(stream, client).await;
            });
        }
        drop(begun);
        // The wait ends when all clients have dropped their senders.
        all_begun.recv().await;
        Self { tasks, served }
    }

    /// Returns the number of clients that the server still answers.
    fn served(&self) -> u32 {
        self.served.load(Ordering::Relaxed)
    }

    async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Served {
    fn new(count: Arc<AtomicU32>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Stream = tokio_rustls::client::TlsStream<tokio::net::TcpStream>;

/// Requests the whole catalog, and returns after the status of the answer.
async fn begin(target: &Target, source: Ipv4Addr) -> Result<Stream> {
    let mut stream = target.stream(source).await?;
    let request = format!(
        "GET /catalogs/{CATALOG}/api/v1/all HTTP/1.1\r\nhost: {}\r\n\r\n",
        target.address
    );
    stream.write_all(request.as_bytes()).await?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).await?;
    if start != *b"HTTP/1.1 200" {
        bail!("{}", String::from_utf8_lossy(&start));
    }
    Ok(stream)
}

/// Reads [`RATE`] bytes every second until the server ends the connection.
async fn read(mut stream: Stream, _served: Served) {
    let mut bytes = [0; RATE];
    while stream.read_exact(&mut bytes).await.is_ok() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
