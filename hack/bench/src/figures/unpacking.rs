//! Starting, unpacking, starting again, polling.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{megabytes, row};
use crate::kernel::size_of;
use crate::load::Ask;
use crate::world::{Running, World};

/// Time after which memory and processor have settled after a start.
const SETTLE: Duration = Duration::from_secs(3);

/// Unpacks all catalogs one after another; catalogd was started again when this returns.
pub(super) async fn run(world: &World, cache: &Path, catalogs: &[(String, PathBuf)]) -> Result<Running> {
    let running = world.catalogd(cache, None).await?;
    tokio::time::sleep(SETTLE).await;
    let kernel = running.kernel;
    row(
        "idle resident memory",
        &format!(
            "{} KiB, of these anonymous {} KiB; {} threads",
            kernel.kib("VmRSS")?,
            kernel.kib("RssAnon")?,
            kernel.threads()?
        ),
    );
    for (name, folder) in catalogs {
        let (_, digest) = world.push(folder, &format!("bench/{name}:v1")).await?;
        tokio::time::sleep(SETTLE).await;
        kernel.reset_peak()?;
        let (start, cpu) = (Instant::now(), kernel.cpu()?);
        world.apply(name, &digest, None).await?;
        world.serving(name, &digest).await?;
        let took = start.elapsed();
        row(
            &format!(
                "create to Serving, {name} ({} MB in the image)",
                megabytes(size_of(folder))
            ),
            &format!(
                "{:.2} s, {:.2} s CPU",
                took.as_secs_f64(),
                kernel.cpu()?.saturating_sub(cpu).as_secs_f64()
            ),
        );
        row(
            &format!("peak while unpacking, {name}"),
            &format!("{} KiB", kernel.kib("VmHWM")?),
        );
        row(
            &format!("disk, {name}"),
            &format!(
                "{} MB (of these {} MB plain)",
                megabytes(size_of(cache.join("catalogs").join(name).as_path())),
                megabytes(running.target.get(&all(name)).await?.length)
            ),
        );
    }
    drop(running);
    let running = world.catalogd(cache, None).await?;
    let answer = running.target.get(&all("x15")).await?;
    ensure!(answer.status == 200, "{} after a restart", answer.status);
    row(
        "restart with all of it on disk, to ready and serving",
        &format!(
            "{:.2} s, {:.2} s CPU",
            running.ready_in.as_secs_f64(),
            running.kernel.cpu()?.as_secs_f64()
        ),
    );
    Ok(running)
}

fn all(name: &str) -> Ask {
    Ask::new(format!("/catalogs/{name}/api/v1/all"))
}

/// Measures a minute of polling unchanged tags.
pub(super) async fn polls(world: &World, running: &Running) -> Result<()> {
    for name in ["x1", "x15"] {
        let tag = format!("{}/bench/{name}:v1", world.registry.host());
        world.apply(name, &tag, Some(1)).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let log = || -> Result<usize> { Ok(world.registry.access_log()?.matches("manifests/v1").count()) };
    let (cpu, before) = (running.kernel.cpu()?, log()?);
    tokio::time::sleep(Duration::from_secs(125)).await;
    let polls = log()? - before;
    row(
        "polls that find the digest unchanged, x1 and x15",
        &format!(
            "{polls} requests in 125 s, {:.3} s CPU of the whole process",
            running.kernel.cpu()?.saturating_sub(cpu).as_secs_f64()
        ),
    );
    Ok(())
}
