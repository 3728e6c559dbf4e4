//! Soak test of catalogd: catalogs change every few seconds for minutes, and memory, disk, descriptors and threads must not grow.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http::StatusCode;

use crate::generate;
use crate::kernel::size_of;
use crate::load::{Ask, load};
use crate::world::World;

/// Duration and programs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The catalogd to watch.
    #[arg(long)]
    pub catalogd: PathBuf,
    /// Minutes.
    #[arg(long, default_value_t = 10)]
    pub minutes: u64,
    /// Seconds between two refreshes.
    #[arg(long, default_value_t = 4)]
    pub every: u64,
    /// Size of each catalog, in MB of JSON.
    #[arg(long, default_value_t = 5)]
    pub megabytes: u64,
}

/// Memory, in KiB, that may vary with the arenas of the C library. Each thread may have one.
const SLACK: u64 = 8 * 1024;

/// Figures at one moment: memory in KiB, and disk in bytes.
#[derive(Clone, Copy, Debug)]
struct Sample {
    resident: u64,
    anonymous: u64,
    disk: u64,
    descriptors: u64,
    threads: u64,
}

/// Refreshes two catalogs, reads them, and samples the figures of catalogd.
///
/// # Errors
/// Fails if a figure grows from the second to the last fifth of the time.
pub async fn run(options: Options) -> Result<()> {
    let work = tempfile::tempdir()?;
    let world = World::start().await?;
    let cache = work.path().join("cache");
    let mut images = Vec::new();
    for version in ["a", "b", "c"] {
        let source = work.path().join(version);
        generate::made_up(&source, options.megabytes * 1_000_000, 5_000)?;
        std::fs::write(
            source.join("version.json"),
            format!("{{\"schema\":\"version\",\"name\":\"{version}\"}}"),
        )?;
        images.push(world.push(&source, &format!("bench/soak:{version}")).await?.1);
    }
    let running = world.catalogd(&options.catalogd, &cache, None).await?;
    let mut samples: Vec<Sample> = Vec::new();
    let (start, end) = (Instant::now(), Duration::from_secs(options.minutes * 60));
    println!("seconds  VmRSS KiB  anonymous KiB  disk bytes  descriptors  threads  refreshes  requests");
    let (mut refreshes, mut requests) = (0, 0);
    while start.elapsed() < end {
        for (name, offset) in [("one", 0), ("two", 1)] {
            let Some(image) = images.get((refreshes + offset) % images.len()) else {
                continue;
            };
            world.apply(name, image, None).await?;
            world.serving(name, image).await?;
        }
        refreshes += 1;
        let asks = [
            Ask::new("/catalogs/one/api/v1/metas?package=made-up-0000003"),
            Ask::new("/catalogs/two/api/v1/all").header("accept-encoding", "gzip"),
            Ask::new("/catalogs/two/api/v1/metas?schema=olm.package"),
        ];
        let pause = Duration::from_secs(options.every);
        let read = load(&running.target, &asks, 2, pause / 2, StatusCode::OK).await?;
        requests += read.requests;
        tokio::time::sleep(pause / 2).await;
        let kernel = running.kernel;
        let sample = Sample {
            resident: kernel.kib("VmRSS")?,
            anonymous: kernel.kib("RssAnon")?,
            disk: size_of(&cache),
            descriptors: kernel.descriptors()? as u64,
            threads: kernel.threads()?,
        };
        samples.push(sample);
        if samples.len() % 5 == 1 {
            println!(
                "{:7}  {:9}  {:13}  {:10}  {:11}  {:7}  {refreshes:9}  {requests:8}",
                start.elapsed().as_secs(),
                sample.resident,
                sample.anonymous,
                sample.disk,
                sample.descriptors,
                sample.threads
            );
        }
    }
    println!("{refreshes} refreshes of two catalogs, {requests} requests");
    for (what, slack, of) in [
        (
            "VmRSS",
            SLACK,
            (|sample: &Sample| sample.resident) as fn(&Sample) -> u64,
        ),
        ("anonymous memory", SLACK, |sample| sample.anonymous),
        ("disk", 4096, |sample| sample.disk),
        ("descriptors", 4, |sample| sample.descriptors),
        ("threads", 4, |sample| sample.threads),
    ] {
        let fifth = samples.len() / 5;
        let mean = |part: &[Sample]| part.iter().map(of).sum::<u64>() / part.len().max(1) as u64;
        let early = mean(samples.get(fifth..fifth * 2).unwrap_or_default());
        let late = mean(samples.get(fifth * 4..).unwrap_or_default());
        println!("{what}: {early} in the second fifth of the time, {late} in the last");
        ensure!(
            options.minutes < 2 || late <= early + slack,
            "{what} grows from {early} to {late}"
        );
    }
    Ok(())
}
