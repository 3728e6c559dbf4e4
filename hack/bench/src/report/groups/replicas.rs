//! Group `replicas`: catalogd with several replicas. Measures reads that are spread over the replicas, and the time until each
//! replica serves a change.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use http::StatusCode;
use olm_harness::{Catalogd, ControllerOptions, ProcessStats};

use crate::generate;
use crate::load::{Ask, Target, load};
use crate::report::bench::{Bench, mib};
use crate::report::row::{Curve, Measure};
use crate::report::stage::until;
use crate::world::target_of;

/// Numbers of replicas to measure.
const REPLICAS: [u32; 3] = [1, 2, 4];
/// Number of connections of all clients. A Service would assign each connection to one replica.
const CONNECTIONS: u32 = 16;
/// Size of an object of the catalog, in bytes.
const OBJECT: usize = 20_000;
const CATALOG: &str = "replicas";
/// Pause between two requests to a replica.
const PAUSE: Duration = Duration::from_millis(5);

/// A ready replica.
struct Replica {
    catalogd: Catalogd,
    target: Target,
    _cache: tempfile::TempDir,
}

/// Measures all rows about replicas. There are none for another implementation, because its start script starts a single replica.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let Some(program) = bench.subject.program("catalogd") else {
        return Ok(());
    };
    bench.subject.stop();
    let work = tempfile::tempdir()?;
    generate::made_up(work.path(), bench.scale.megabytes * 1_000_000, OBJECT)?;
    for count in REPLICAS {
        let mut replicas = Vec::new();
        for number in 0..count {
            replicas.push(start(bench, &program, number).await?);
        }
        freshness(bench, &replicas, work.path()).await?;
        tokio::time::sleep(bench.scale.settle).await;
        reads(bench, &mut replicas).await?;
        bench.stage.world.delete(CATALOG).await?;
    }
    Ok(())
}

/// Starts a replica with its own cache and with leader election.
async fn start(bench: &Bench, program: &Path, number: u32) -> Result<Replica> {
    let cache = tempfile::tempdir().context("cannot create a folder for a cache")?;
    let world = &bench.stage.world;
    let options = ControllerOptions {
        program: Some(program.to_owned()),
        cache: Some(cache.path().to_owned()),
        args: vec!["--leader-elect".to_owned()],
        envs: vec![("POD_NAME".to_owned(), format!("replica-{number}"))],
        ..ControllerOptions::default()
    };
    let catalogd = Catalogd::start_with(&world.plane, &world.registry, options).await?;
    Ok(Replica {
        target: target_of(&world.plane, &catalogd).await?,
        catalogd,
        _cache: cache,
    })
}

/// Returns a point of a curve over the number of replicas.
fn at(name: &str, replicas: &[Replica]) -> Curve {
    Curve {
        name: name.to_owned(),
        axis: "replicas".to_owned(),
        x: u32::try_from(replicas.len()).unwrap_or(u32::MAX),
    }
}

fn of(replicas: &[Replica]) -> String {
    match replicas.len() {
        1 => "1 replica".to_owned(),
        count => format!("{count} replicas"),
    }
}

/// Creates the catalog and changes it. Measures the time from the change to the status, and to the last replica that serves it.
async fn freshness(bench: &mut Bench, replicas: &[Replica], content: &Path) -> Result<()> {
    let words = format!("{}, a change of the catalog", of(replicas));
    for version in ["first", "second"] {
        let own = format!("{{\"schema\":\"version\",\"name\":\"{version}\"}}");
        std::fs::write(content.join("version.json"), own)?;
        let world = &bench.stage.world;
        let (_, image) = world.push(content, &format!("bench/{CATALOG}:{version}")).await?;
        let start = Instant::now();
        world.apply(CATALOG, &image, None).await?;
        world.serving(CATALOG, &image).await?;
        let told = start.elapsed();
        let ask = Ask::new(format!(
            "/catalogs/{CATALOG}/api/v1/metas?schema=version&name={version}"
        ));
        for replica in replicas {
            until("every replica serves the change", PAUSE, async || {
                let answer = replica.target.get(&ask).await?;
                Ok(answer.status == StatusCode::OK && !answer.body.is_empty())
            })
            .await?;
        }
        let everywhere = start.elapsed();
        if version == "second" {
            let curve = at("change of the catalog to all replicas", replicas);
            let (to_status, to_all) = (
                format!("{words} to the status"),
                format!("{words} to all of them"),
            );
            bench.add(&to_status, Measure::Time, told.as_secs_f64());
            bench.add_at(&to_all, Measure::Time, everywhere.as_secs_f64(), Some(&curve));
        }
    }
    Ok(())
}

/// Measures reads of one object from all replicas in parallel.
async fn reads(bench: &mut Bench, replicas: &mut [Replica]) -> Result<()> {
    let ask = Ask::new(format!(
        "/catalogs/{CATALOG}/api/v1/metas?schema=olm.package&name=made-up-0000000"
    ));
    let asks = std::slice::from_ref(&ask);
    let each = usize::try_from(CONNECTIONS)? / replicas.len();
    let loads = replicas
        .iter()
        .map(|replica| load(&replica.target, asks, each, bench.scale.load, StatusCode::OK));
    let loads = try_join_all(loads).await?;
    let words = format!("{}, `/metas` one object, {CONNECTIONS} connections", of(replicas));
    let rate = loads.iter().map(|load| load.per_second).sum();
    let curve = at("reads of all replicas", replicas);
    bench.add_at(&words, Measure::Rate, rate, Some(&curve));
    if let Some(p99) = loads.iter().map(|load| load.p99).max() {
        bench.add(&words, Measure::P99, p99.as_secs_f64() * 1e3);
    }
    let mut resident = 0.0_f64;
    for replica in replicas {
        let pid = replica
            .catalogd
            .controller()
            .process()
            .and_then(|process| process.pid());
        let process = ProcessStats {
            pid: pid.context("a replica does not run")?,
        };
        resident = resident.max(mib(process, "VmRSS")?);
    }
    bench.add(
        &format!("{words}, the largest replica"),
        Measure::Resident,
        resident,
    );
    Ok(())
}
