//! Well-behaved clients (readers) that read from catalogd during an attack.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

use super::{
    CATALOG, PACKAGE,
    target::{Stream, Target, receive, send},
};

/// Number of concurrent readers.
const COUNT: usize = 4;
/// Pause between two requests of a reader.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of new connections for one request. A client retries if a server at its limit closes the connection without a
/// response.
const MAX_ATTEMPTS: usize = 3;
/// Number of requests on one connection.
const REQUESTS_PER_CONNECTION: usize = 10;

/// Running readers.
pub(super) struct Readers {
    tasks: JoinSet<()>,
    times: mpsc::UnboundedReceiver<Result<Duration>>,
}

/// Measurements of all readers.
pub(super) struct Measurements {
    pub(super) count: usize,
    pub(super) failed: usize,
    pub(super) p99: Duration,
}

impl Readers {
    /// Starts the readers at the address 127.0.0.`last`.
    pub(super) fn start(target: &Arc<Target>, last: u8) -> Self {
        let (sender, times) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for _ in 0..COUNT {
            let (target, sender) = (target.clone(), sender.clone());
            tasks.spawn(async move {
                let mut stream = None;
                for round in 0.. {
                    if round % REQUESTS_PER_CONNECTION == 0 {
                        stream = None;
                    }
                    if sender.send(read(&target, last, &mut stream).await).is_err() {
                        return;
                    }
                    sleep(PAUSE).await;
                }
            });
        }
        Self { tasks, times }
    }

    /// Stops the readers and returns their measurements.
    pub(super) fn end(mut self) -> Measurements {
        self.tasks.abort_all();
        let (mut times, mut failed) = (Vec::new(), 0);
        while let Ok(time) = self.times.try_recv() {
            match time {
                Ok(time) => times.push(time),
                Err(_) => failed += 1,
            }
        }
        times.sort_unstable();
        let p99 = times.get(times.len() * 99 / 100).or(times.last());
        Measurements {
            count: times.len(),
            failed,
            p99: p99.copied().unwrap_or_default(),
        }
    }
}

/// Requests a small package and returns the response time. It includes a new connection if the previous one was closed.
async fn read(target: &Target, last: u8, connection: &mut Option<Stream>) -> Result<Duration> {
    let path = format!("/catalogs/{CATALOG}/api/v1/metas?package=&name={PACKAGE}");
    let start = Instant::now();
    if let Some(mut stream) = connection.take()
        && let Ok(()) = send(&mut stream, &path, None).await
        && let Ok(200) = receive(&mut stream).await
    {
        *connection = Some(stream);
        return Ok(start.elapsed());
    }
    for _ in 1..MAX_ATTEMPTS {
        if let Ok(stream) = request_once(target, last, &path).await {
            *connection = Some(stream);
            return Ok(start.elapsed());
        }
    }
    *connection = Some(request_once(target, last, &path).await?);
    Ok(start.elapsed())
}

/// Sends a request on a new connection.
async fn request_once(target: &Target, last: u8, path: &str) -> Result<Stream> {
    let mut stream = target.connect(last, target.content).await?;
    send(&mut stream, path, None).await?;
    let status = receive(&mut stream).await?;
    ensure!(status == 200, "answered with {status}");
    Ok(stream)
}
