//! Groups `tiny` and `five`: many extensions at once are installed, rest, see a change of their catalog and a restart, and are
//! deleted.

use anyhow::Result;

use super::catalogs;
use crate::report::bench::{Bench, over_extensions};
use crate::report::packages::{Kind, Package};
use crate::report::row::Measure;

/// Name of the catalog with the installed packages.
const CATALOG: &str = "many";

/// Measures all rows about many extensions of one kind, beside this number of other catalogs.
pub(super) async fn run(bench: &mut Bench, kind: Kind, other_catalogs: u32) -> Result<()> {
    let all = bench.scale.extensions;
    let packages = kind.packages(all);
    bench.stage.publish(CATALOG, &packages).await?;
    let others = catalogs::push_small(&bench.stage.world, "other", other_catalogs).await?;
    catalogs::serve(&bench.stage.world, &others).await?;
    let beside = match other_catalogs {
        0 => String::new(),
        count => format!(" beside {count} catalogs"),
    };
    bench.stage.create_namespaces(all).await?;
    for count in bench.scale.steps() {
        let words = format!("{count} {}{beside}", kind.words());
        let before = bench.idle().await?;
        let time = bench.stage.install(kind, 0..count).await?;
        let usage = bench.since(&before)?.lasting(time);
        let curve = over_extensions("create to all Installed", count);
        bench
            .add_usage(&format!("{words} at once, all Installed"), &usage, Some(&curve))
            .await?;
        bench.idle().await?;
        bench.add_resident(
            &format!("{words} at rest"),
            Some(&over_extensions("installed", count)),
        )?;
        if count == all {
            changed_catalog(bench, &packages, &words).await?;
            restart(bench, &words).await?;
            rest(bench, &words).await?;
        }
        let before = bench.read()?;
        let time = bench.stage.delete_all().await?;
        let usage = bench.since(&before)?.lasting(time);
        bench
            .add_usage(
                &format!("delete {words}"),
                &usage,
                Some(&over_extensions("delete all", count)),
            )
            .await?;
        bench.stage.wait_for_no_pods().await?;
    }
    catalogs::delete(&bench.stage.world, &others).await?;
    bench.stage.world.delete(CATALOG).await
}

/// Measures the effect of a new catalog with one more package, which no extension uses.
async fn changed_catalog(bench: &mut Bench, packages: &[Package], words: &str) -> Result<()> {
    let before = bench.idle().await?;
    bench.stage.update(CATALOG, packages, Some("another")).await?;
    let usage = bench.idle_since(&before).await?;
    let work = format!("new digest of the catalog with {words}, nothing to upgrade, to idle");
    bench.add_usage(&work, &usage, None).await
}

/// Measures a restart of operator-controller.
async fn restart(bench: &mut Bench, words: &str) -> Result<()> {
    let mut before = bench.idle().await?;
    bench.subject.restart_operator_controller().await?;
    before.forget_cpu();
    let usage = bench.idle_since(&before).await?;
    bench
        .add_usage(&format!("restart with {words}, to idle"), &usage, None)
        .await?;
    bench.add_resident(&format!("after a restart with {words}"), None)
}

/// Measures operator-controller while nothing changes.
async fn rest(bench: &mut Bench, words: &str) -> Result<()> {
    let before = bench.read()?;
    tokio::time::sleep(bench.scale.rest).await;
    let usage = bench.since(&before)?;
    let work = format!("{} s at rest with {words}", bench.scale.rest.as_secs_f64());
    if let Some(cpu) = usage.cpu {
        bench.add(&work, Measure::Processor, cpu.as_secs_f64());
    }
    bench.add(&work, Measure::Requests, usage.requests.all.into());
    bench.add(&work, Measure::Writes, usage.requests.writes.into());
    bench.add_resident(&work, None)
}
