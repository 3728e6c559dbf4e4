//! Group `catalogs`: many small catalogs in one cluster, and fewer whole ones, are unpacked at once, rest, and are served again after a
//! restart.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use futures::TryStreamExt as _;
use olm_harness::ProcessStats;

use crate::figures;
use crate::generate;
use crate::kernel::{megabytes, size_of};
use crate::load::Ask;
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;
use crate::report::subject::CATALOGD;
use crate::world::World;

/// Size of one catalog, in bytes of JSON.
const BYTES: u64 = 1_000_000;
/// Size of an object in a catalog, in bytes.
const OBJECT: usize = 20_000;
/// Number of catalogs that are watched in parallel.
const AT_ONCE: usize = 20;

/// Catalogs of a cluster: their names, and references by digest.
pub(super) type Catalogs = Vec<(String, String)>;

/// Measures all rows about many catalogs: small ones, and whole ones.
pub(super) async fn run(bench: &mut Bench, options: &figures::Options) -> Result<()> {
    let small = push_small(&bench.stage.world, "many", bench.scale.catalogs).await?;
    measure(bench, &small, "1 MB").await?;
    let work = tempfile::tempdir()?;
    let source = figures::source(bench, options, work.path())?;
    let whole = work.path().join("whole");
    generate::cloned(&source, &whole, 1)?;
    let size = format!("{:.1} MB", megabytes(size_of(&whole)));
    let whole = push(&bench.stage.world, &whole, "whole", bench.scale.whole_catalogs).await?;
    // What the small catalogs have left in memory must not be part of the figures.
    bench.subject.restart_catalogd().await?;
    measure(bench, &whole, &size).await
}

/// Pushes synthetic catalogs of 1 MB.
pub(super) async fn push_small(world: &World, name: &str, count: u32) -> Result<Catalogs> {
    let work = tempfile::tempdir()?;
    generate::made_up(work.path(), BYTES, OBJECT)?;
    push(world, work.path(), name, count).await
}

/// Pushes the catalog in a folder several times.
async fn push(world: &World, folder: &Path, name: &str, count: u32) -> Result<Catalogs> {
    let mut catalogs = Vec::new();
    for number in 0..count {
        // Every catalog has its own digest, so that no content is shared.
        let own = format!("{{\"schema\":\"number\",\"name\":\"{number}\"}}");
        std::fs::write(folder.join("number.json"), own)?;
        let name = format!("{name}-{number:03}");
        let (_, image) = world.push(folder, &format!("bench/{name}:1")).await?;
        catalogs.push((name, image));
    }
    Ok(catalogs)
}

/// Creates all catalogs at once and waits until all are served.
pub(super) async fn serve(world: &World, catalogs: &Catalogs) -> Result<()> {
    for (name, image) in catalogs {
        world.apply(name, image, None).await?;
    }
    futures::stream::iter(catalogs.iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, async |(name, image)| world.serving(name, image).await)
        .await
}

/// Deletes all catalogs.
pub(super) async fn delete(world: &World, catalogs: &Catalogs) -> Result<()> {
    for (name, _) in catalogs {
        world.delete(name).await?;
    }
    Ok(())
}

/// Measures the unpacking of all catalogs at once, their rest and a restart.
async fn measure(bench: &mut Bench, catalogs: &Catalogs, size: &str) -> Result<()> {
    let count = format!("{} catalogs of {size}", catalogs.len());
    tokio::time::sleep(bench.scale.settle).await;
    let process = bench.subject.catalogd()?;
    if let Some(process) = process {
        process.reset_peak()?;
    }
    let cpu = process.map(ProcessStats::cpu).transpose()?;
    let (requests, plane) = (bench.stage.requests.of(CATALOGD)?, bench.plane()?);
    let start = Instant::now();
    serve(&bench.stage.world, catalogs).await?;
    let words = format!("{count} at once, all Serving");
    bench.add(&words, Measure::Time, start.elapsed().as_secs_f64());
    if let (Some(process), Some(before)) = (process, cpu) {
        let cpu = process.cpu()?.saturating_sub(before);
        bench.add(&words, Measure::Processor, cpu.as_secs_f64());
        bench.add(&words, Measure::Peak, mib(process, "VmHWM")?);
    }
    let requests = bench.stage.requests.of(CATALOGD)?.since(requests);
    bench.add(&words, Measure::Requests, requests.all.into());
    bench.add(&words, Measure::Writes, requests.writes.into());
    let used = bench.plane()?.since(plane);
    bench.add_plane(&words, used, None).await?;
    tokio::time::sleep(bench.scale.settle).await;
    at_rest(bench, &format!("{count} at rest"))?;
    restart(bench, catalogs, &count).await?;
    delete(&bench.stage.world, catalogs).await
}

/// Measures a restart of catalogd until it serves the last catalog.
async fn restart(bench: &mut Bench, catalogs: &Catalogs, count: &str) -> Result<()> {
    let words = format!("restart with {count}, to ready and serving");
    let start = Instant::now();
    bench.subject.restart_catalogd().await?;
    for (name, image) in catalogs {
        bench.stage.world.serving(name, image).await?;
    }
    if let (Some(content), Some((name, _))) = (bench.subject.content(&bench.stage).await?, catalogs.last()) {
        let path = format!("/catalogs/{name}/api/v1/all");
        let answer = content.target.get(&Ask::new(path)).await?;
        ensure!(answer.status == 200, "{} after a restart", answer.status);
    }
    bench.add(&words, Measure::Time, start.elapsed().as_secs_f64());
    if let Some(process) = bench.subject.catalogd()? {
        bench.add(&words, Measure::Processor, process.cpu()?.as_secs_f64());
    }
    tokio::time::sleep(bench.scale.settle).await;
    at_rest(bench, &format!("after a restart with {count}"))
}

/// Adds the resident memory of catalogd.
fn at_rest(bench: &mut Bench, words: &str) -> Result<()> {
    if let Some(process) = bench.subject.catalogd()? {
        bench.add(words, Measure::Resident, mib(process, "VmRSS")?);
    }
    Ok(())
}
