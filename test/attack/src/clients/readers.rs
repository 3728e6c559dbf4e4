//! Well-behaved clients that read during an attack.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

use super::{
    CATALOG, PACKAGE,
    target::{Stream, Target, answer, ask},
};

/// Number of concurrent readers.
const READERS: usize = 4;
/// Pause between two requests of a reader.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of new connections for one request: clients retry if a full server closes a connection before its
/// response.
const TRIES: usize = 3;
/// Number of requests on one connection.
const ON_ONE: usize = 10;

/// Running readers, until their measurements are collected.
pub(super) struct Readers {
    tasks: JoinSet<()>,
    times: mpsc::UnboundedReceiver<Result<Duration>>,
}

/// Measurements of all readers.
pub(super) struct Answers {
    pub(super) count: usize,
    pub(super) failed: usize,
    pub(super) p99: Duration,
}

impl Readers {
    /// Starts reading from 127.0.0.`last`.
    pub(super) fn start(target: &Arc<Target>, last: u8) -> Self {
        let (sender, times) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for _ in 0..READERS {
            let (target, sender) = (target.clone(), sender.clone());
            tasks.spawn(async move {
                let mut stream = None;
                for round in 0.. {
                    if round % ON_ONE == 0 {
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

    /// Stops reading.
    pub(super) fn end(mut self) -> Answers {
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
        Answers {
            count: times.len(),
            failed,
            p99: p99.copied().unwrap_or_default(),
        }
    }
}

/// Requests a small package. The time includes a new connection if the previous one was closed.
async fn read(target: &Target, last: u8, kept: &mut Option<Stream>) -> Result<Duration> {
    let path = format!("/catalogs/{CATALOG}/api/v1/metas?package=&name={PACKAGE}");
    let began = Instant::now();
    if let Some(mut stream) = kept.take()
        && let Ok(()) = ask(&mut stream, &path, None).await
        && let Ok(200) = answer(&mut stream).await
    {
        *kept = Some(stream);
        return Ok(began.elapsed());
    }
    for _ in 1..TRIES {
        if let Ok(stream) = once(target, last, &path).await {
            *kept = Some(stream);
            return Ok(began.elapsed());
        }
    }
    *kept = Some(once(target, last, &path).await?);
    Ok(began.elapsed())
}

/// Sends a request on a new connection.
async fn once(target: &Target, last: u8, path: &str) -> Result<Stream> {
    let mut stream = target.connect(last, target.content).await?;
    ask(&mut stream, path, None).await?;
    let status = answer(&mut stream).await?;
    ensure!(status == 200, "answered with {status}");
    Ok(stream)
}
