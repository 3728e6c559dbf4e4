//! Rows about an idle catalogd, unpacking, restarts and polling.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use olm_harness::ProcessStats;

use crate::kernel::{megabytes, size_of};
use crate::load::Ask;
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;

/// Duration of the observation of polling, in which each catalog is polled twice.
const POLLING: Duration = Duration::from_secs(125);

/// Measures the unpacking of all catalogs one after the other, and a restart of catalogd.
pub(super) async fn run(bench: &mut Bench, catalogs: &[(String, PathBuf)]) -> Result<()> {
    let process = bench.subject.catalogd()?;
    tokio::time::sleep(bench.scale.settle).await;
    if let Some(process) = process {
        bench.add("idle", Measure::Resident, mib(process, "VmRSS")?);
    }
    for (name, folder) in catalogs {
        let image = format!("bench/{name}:v1");
        let (_, digest) = bench.stage.world.push(folder, &image).await?;
        tokio::time::sleep(bench.scale.settle).await;
        if let Some(process) = process {
            process.reset_peak()?;
        }
        let cpu = process.map(ProcessStats::cpu).transpose()?;
        let start = Instant::now();
        bench.stage.world.apply(name, &digest, None).await?;
        bench.stage.world.serving(name, &digest).await?;
        let time = start.elapsed();
        let work = format!(
            "create to Serving, {name} ({} MB in the image)",
            size_of(folder) / 1_000_000
        );
        bench.add(&work, Measure::Time, time.as_secs_f64());
        if let (Some(process), Some(before)) = (process, cpu) {
            let cpu = process.cpu()?.saturating_sub(before);
            bench.add(&work, Measure::Processor, cpu.as_secs_f64());
            bench.add(&work, Measure::Peak, mib(process, "VmHWM")?);
        }
        if let Some(folder) = bench.subject.stored_catalogs() {
            bench.add(&work, Measure::Disk, megabytes(size_of(&folder.join(name))));
        }
    }
    let work = "restart with all of it on disk, to ready and serving";
    let ready_in = bench.subject.restart_catalogd().await?;
    bench.add(work, Measure::Time, ready_in.as_secs_f64());
    if let Some(process) = bench.subject.catalogd()? {
        bench.add(work, Measure::Processor, process.cpu()?.as_secs_f64());
    }
    let content = bench.subject.content(&bench.stage).await?;
    for (name, _) in catalogs {
        if let Some(content) = &content {
            let answer = content
                .target
                .get(&Ask::new(format!("/catalogs/{name}/api/v1/all")))
                .await?;
            ensure!(
                answer.status == 200,
                "{} for {name} after a restart",
                answer.status
            );
        }
    }
    Ok(())
}

/// Measures two minutes of polls of unchanged tags.
pub(super) async fn polls(bench: &mut Bench, catalogs: &[(String, PathBuf)]) -> Result<()> {
    let host = bench.stage.world.registry.host();
    for (name, _) in catalogs {
        let tag = format!("{host}/bench/{name}:v1");
        bench.stage.world.apply(name, &tag, Some(1)).await?;
    }
    tokio::time::sleep(bench.scale.settle).await;
    let registry = &bench.stage.world.registry;
    let log = || -> Result<usize> { Ok(registry.access_log()?.matches("manifests/v1").count()) };
    let process = bench.subject.catalogd()?;
    let cpu = process.map(ProcessStats::cpu).transpose()?;
    let before = log()?;
    tokio::time::sleep(POLLING).await;
    let polls = u32::try_from(log()?.saturating_sub(before))?;
    let work = format!("{} s of polls that find the digests unchanged", POLLING.as_secs());
    bench.add(&work, Measure::Polls, polls.into());
    if let (Some(process), Some(before)) = (process, cpu) {
        let cpu = process.cpu()?.saturating_sub(before);
        bench.add(&work, Measure::Processor, cpu.as_secs_f64());
    }
    Ok(())
}
