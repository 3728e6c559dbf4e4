//! Group `catalogs`: many catalogs in one cluster are unpacked at once, rest, and are served again after a restart.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures::TryStreamExt as _;
use olm_harness::ProcessStats;

use crate::generate;
use crate::load::Ask;
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;
use crate::report::subject::CATALOGD;

/// Size of one catalog, in bytes of JSON.
const BYTES: u64 = 1_000_000;
/// Size of an object in a catalog, in bytes.
const OBJECT: usize = 20_000;
/// Number of catalogs that are watched in parallel.
const AT_ONCE: usize = 20;

/// Measures all rows about many catalogs.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let count = bench.scale.catalogs;
    let work = tempfile::tempdir()?;
    generate::made_up(work.path(), BYTES, OBJECT)?;
    let mut images = Vec::new();
    for number in 0..count {
        // Every catalog has its own digest, so that no content is shared.
        let own = format!("{{\"schema\":\"number\",\"name\":\"{number}\"}}");
        std::fs::write(work.path().join("number.json"), own)?;
        let name = format!("many-{number:03}");
        let (_, image) = bench
            .stage
            .world
            .push(work.path(), &format!("bench/{name}:1"))
            .await?;
        images.push((name, image));
    }
    tokio::time::sleep(bench.scale.settle).await;
    let process = bench.subject.catalogd()?;
    if let Some(process) = process {
        process.reset_peak()?;
    }
    let cpu = process.map(ProcessStats::cpu).transpose()?;
    let requests = bench.stage.requests.of(CATALOGD)?;
    let start = Instant::now();
    for (name, image) in &images {
        bench.stage.world.apply(name, image, None).await?;
    }
    let world = &bench.stage.world;
    futures::stream::iter(images.iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, async |(name, image)| world.serving(name, image).await)
        .await?;
    let time = start.elapsed();
    let words = format!("{count} catalogs of 1 MB at once, all Serving");
    bench.add(&words, Measure::Time, time.as_secs_f64());
    if let (Some(process), Some(before)) = (process, cpu) {
        let cpu = process.cpu()?.saturating_sub(before);
        bench.add(&words, Measure::Processor, cpu.as_secs_f64());
        bench.add(&words, Measure::Peak, mib(process, "VmHWM")?);
    }
    let requests = bench.stage.requests.of(CATALOGD)?.since(requests);
    bench.add(&words, Measure::Requests, requests.all.into());
    bench.add(&words, Measure::Writes, requests.writes.into());
    tokio::time::sleep(bench.scale.settle).await;
    at_rest(bench, &format!("{count} catalogs at rest"))?;
    restart(bench, &images).await?;
    for (name, _) in &images {
        bench.stage.world.delete(name).await?;
    }
    Ok(())
}

/// Measures a restart of catalogd until it serves the last catalog.
async fn restart(bench: &mut Bench, images: &[(String, String)]) -> Result<()> {
    let words = format!("restart with {} catalogs, to ready and serving", images.len());
    let start = Instant::now();
    bench.subject.restart_catalogd().await?;
    for (name, image) in images {
        bench.stage.world.serving(name, image).await?;
    }
    if let (Some(content), Some((name, _))) = (bench.subject.content(&bench.stage).await?, images.last()) {
        let path = format!("/catalogs/{name}/api/v1/all");
        let answer = content.target.get(&Ask::new(path)).await?;
        ensure!(answer.status == 200, "{} after a restart", answer.status);
    }
    bench.add(&words, Measure::Time, start.elapsed().as_secs_f64());
    if let Some(process) = bench.subject.catalogd()? {
        bench.add(&words, Measure::Processor, process.cpu()?.as_secs_f64());
    }
    tokio::time::sleep(bench.scale.settle).await;
    at_rest(bench, &format!("after a restart with {} catalogs", images.len()))
}

/// Adds the resident memory of catalogd.
fn at_rest(bench: &mut Bench, words: &str) -> Result<()> {
    if let Some(process) = bench.subject.catalogd()? {
        bench.add(words, Measure::Resident, mib(process, "VmRSS")?);
    }
    Ok(())
}
