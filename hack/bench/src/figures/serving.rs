//! Rows about reads of catalogs under load.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::StatusCode;
use olm_harness::ProcessStats;
use serde_json::json;

use super::Sample;
use crate::load::{Ask, Load, load};
use crate::report::bench::{Bench, mib};
use crate::report::row::Measure;
use crate::report::subject::ContentServer;

/// Measures all rows about reads of the catalogs `x1` and `large`.
pub(super) async fn run(
    bench: &mut Bench,
    content: &ContentServer,
    sample: &Sample,
    large: &str,
    time: Duration,
) -> Result<()> {
    let all = |catalog: &str| Ask::new(format!("/catalogs/{catalog}/api/v1/all"));
    let gzip = |ask: Ask| ask.header("accept-encoding", "gzip");
    let package = Ask::new(format!(
        "/catalogs/x1/api/v1/metas?schema=olm.bundle&package={}",
        sample.package
    ));
    let mut rows = Vec::new();
    for (work, ask, connections) in [
        ("`/all` x1, plain".to_owned(), all("x1"), [1, 4].as_slice()),
        ("`/all` x1, gzip".to_owned(), gzip(all("x1")), &[4]),
        (format!("`/all` {large}, gzip"), gzip(all(large)), &[1, 4]),
    ] {
        for &connections in connections {
            rows.push((work.clone(), vec![ask.clone()], connections));
        }
    }
    for catalog in ["x1", large] {
        let asks = bundles(catalog, sample);
        for connections in [1, 4, 16] {
            rows.push((
                format!("`/metas` one bundle, {catalog}"),
                asks.clone(),
                connections,
            ));
        }
    }
    let of_package = "`/metas` all bundles of a package, x1";
    rows.push((of_package.to_owned(), vec![package.clone()], 16));
    rows.push((format!("{of_package}, gzip"), vec![gzip(package)], 16));
    let ten = "GraphQL, 10 bundles, x1";
    rows.push((format!("{ten}, the same query again"), vec![graphql(0)], 16));
    let queries = DIFFERENT * u64::try_from(time.as_millis())? / 1000;
    let different = (0..queries).map(graphql).collect();
    rows.push((format!("{ten}, no query asked twice"), different, 16));
    if let Some(process) = content.process {
        process.reset_peak()?;
    }
    for (work, asks, connections) in rows {
        let measured = measured(content, &asks, connections, time, StatusCode::OK).await;
        let optional = work.starts_with("GraphQL");
        match measured {
            Ok(measured) => add(bench, &work, connections, &measured),
            // Another implementation may not serve GraphQL.
            Err(error) if optional => eprintln!("{work}: {error:#}"),
            Err(error) => return Err(error.context(work)),
        }
    }
    let answer = content.target.get(&all("x1")).await?;
    for (asked, sent) in [("if-modified-since", "last-modified"), ("if-none-match", "etag")] {
        // Another implementation may not send this header.
        let Some(value) = answer.headers.get(sent) else {
            continue;
        };
        let value = value.to_str().with_context(|| format!("{sent} is no text"))?;
        let ask = all("x1").header(asked, value);
        let measured = measured(content, &[ask], 16, time, StatusCode::NOT_MODIFIED).await?;
        add(bench, &format!("304 on `{asked}`"), 16, &measured);
    }
    memory(bench, content).await
}

/// Adds the peak memory over all loads, and the memory some time later.
async fn memory(bench: &mut Bench, content: &ContentServer) -> Result<()> {
    let Some(process) = content.process else {
        return Ok(());
    };
    bench.add("all loads of reads above", Measure::Peak, mib(process, "VmHWM")?);
    // An allocator may return freed pages only after some seconds.
    let later = bench.scale.rest * 2;
    tokio::time::sleep(later).await;
    let work = format!("{} s after the last read", later.as_secs_f64());
    bench.add(&work, Measure::Resident, mib(process, "VmRSS")?);
    Ok(())
}

/// Number of different queries per second of load: more than a server can answer.
const DIFFERENT: u64 = 40_000;

/// Returns a query for ten bundles. Its comment makes it differ from other queries.
fn graphql(number: u64) -> Ask {
    let query = format!("{{ olmbundles(limit: 10) {{ name package image }} }} # {number}");
    Ask::new("/catalogs/x1/api/v1/graphql").body(json!({ "query": query }).to_string())
}

/// Measures reads of `x1` while another large catalog is unpacked.
pub(super) async fn while_unpacking(
    bench: &mut Bench,
    content: &ContentServer,
    sample: &Sample,
    other: &Path,
    time: Duration,
) -> Result<()> {
    let world = &bench.stage.world;
    let (_, digest) = world.push(other, "bench/other:v1").await?;
    let asks = bundles("x1", sample);
    world.apply("other", &digest, None).await?;
    // The reads take about as long as the unpacking.
    let measured = measured(content, &asks, 4, time.min(UNPACKING), StatusCode::OK).await?;
    world.serving("other", &digest).await?;
    world.delete("other").await?;
    add(
        bench,
        "`/metas` one bundle, x1, while another catalog is unpacked",
        4,
        &measured,
    );
    Ok(())
}

/// Maximum time of reads during unpacking.
const UNPACKING: Duration = Duration::from_secs(3);

/// Returns the requests for the bundles of the sample, one for each bundle.
fn bundles(catalog: &str, sample: &Sample) -> Vec<Ask> {
    let path = |(package, name): &(String, String)| {
        Ask::new(format!(
            "/catalogs/{catalog}/api/v1/metas?schema=olm.bundle&package={package}&name={name}"
        ))
    };
    sample.bundles.iter().map(path).collect()
}

/// Result of a load, and the processor time of the server if its process is known.
struct Measured {
    load: Load,
    cpu: Option<Duration>,
}

/// Runs a load and measures the processor time of the server.
async fn measured(
    content: &ContentServer,
    asks: &[Ask],
    connections: usize,
    time: Duration,
    wanted: StatusCode,
) -> Result<Measured> {
    let cpu = || content.process.map(ProcessStats::cpu).transpose();
    let before = cpu()?;
    let load = load(&content.target, asks, connections, time, wanted).await?;
    let cpu = cpu()?.zip(before).map(|(now, before)| now.saturating_sub(before));
    Ok(Measured { load, cpu })
}

/// Adds the rows of a load. Unlike the rate, the processor time of one answer does not depend on other work of the machine.
fn add(bench: &mut Bench, work: &str, connections: usize, measured: &Measured) {
    let noun = if connections == 1 {
        "connection"
    } else {
        "connections"
    };
    let work = format!("{work}, {connections} {noun}");
    let load = &measured.load;
    bench.add(&work, Measure::Rate, load.per_second);
    bench.add(&work, Measure::Throughput, load.bytes_per_second / 1e6);
    for (measure, time) in [
        (Measure::Median, load.p50),
        (Measure::P99, load.p99),
        (Measure::Worst, load.worst),
    ] {
        bench.add(&work, measure, time.as_secs_f64() * 1e3);
    }
    if let Some(cpu) = measured.cpu {
        let requests = u32::try_from(load.requests.max(1)).unwrap_or(u32::MAX);
        bench.add(
            &work,
            Measure::ProcessorEach,
            cpu.as_secs_f64() * 1e3 / f64::from(requests),
        );
    }
}
