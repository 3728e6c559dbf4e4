//! Reads under load.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::StatusCode;
use serde_json::json;

use super::{Sample, row};
use crate::load::{Ask, Load, load};
use crate::world::{Running, World};

/// Measures all rows of reads.
pub(super) async fn run(running: &Running, sample: &Sample, time: Duration) -> Result<()> {
    let target = &running.target;
    let all = |catalog: &str| Ask::new(format!("/catalogs/{catalog}/api/v1/all"));
    let gzip = |ask: Ask| ask.header("accept-encoding", "gzip");
    let ok = StatusCode::OK;
    say(
        "`/all` x1, plain, 4 connections",
        &measured(running, &[all("x1")], 4, time, ok).await?,
    );
    say(
        "`/all` x1, gzip, 4 connections",
        &measured(running, &[gzip(all("x1"))], 4, time, ok).await?,
    );
    say(
        "`/all` x15, gzip, 1 connection",
        &measured(running, &[gzip(all("x15"))], 1, time, ok).await?,
    );
    for catalog in ["x1", "x15"] {
        let asks = bundles(catalog, sample);
        for connections in [1, 4, 16] {
            say(
                &format!("`/metas` one bundle, {catalog}, {connections} connections"),
                &measured(running, &asks, connections, time, ok).await?,
            );
        }
    }
    let package = Ask::new(format!(
        "/catalogs/x1/api/v1/metas?schema=olm.bundle&package={}",
        sample.package
    ));
    let plain = measured(running, std::slice::from_ref(&package), 16, time, ok).await?;
    say("`/metas` all bundles of a package, x1, 16 connections", &plain);
    let compressed = measured(running, &[gzip(package)], 16, time, ok).await?;
    say("the same, gzip accepted", &compressed);
    say(
        "GraphQL, 10 bundles, x1, 16 connections, the same query again",
        &measured(running, &[graphql(0)], 16, time, ok).await?,
    );
    let different: Vec<_> = (0..DIFFERENT).map(graphql).collect();
    say(
        "the same, no query asked twice",
        &measured(running, &different, 16, time, ok).await?,
    );
    let answer = target.get(&all("x1")).await?;
    for (asked, sent) in [("if-modified-since", "last-modified"), ("if-none-match", "etag")] {
        let value = answer
            .headers
            .get(sent)
            .and_then(|value| value.to_str().ok())
            .with_context(|| format!("/all sends no {sent}"))?;
        let ask = all("x1").header(asked, value);
        let figures = measured(running, &[ask], 16, time, StatusCode::NOT_MODIFIED).await?;
        say(&format!("304 on `{asked}`, 16 connections"), &figures);
    }
    Ok(())
}

/// More queries than are answered in the time that a row has.
const DIFFERENT: usize = 200_000;

/// Ten bundles; the comment makes it another query.
fn graphql(number: usize) -> Ask {
    let query = format!("{{ olmbundles(limit: 10) {{ name package image }} }} # {number}");
    Ask::new("/catalogs/x1/api/v1/graphql").body(json!({ "query": query }).to_string())
}

/// Reads of x1 while another x15 is unpacked.
pub(super) async fn while_unpacking(
    world: &World,
    running: &Running,
    sample: &Sample,
    other: &Path,
) -> Result<()> {
    let (_, digest) = world.push(other, "bench/other:v1").await?;
    let asks = bundles("x1", sample);
    world.apply("other", &digest, None).await?;
    let reads = measured(running, &asks, 4, Duration::from_secs(3), StatusCode::OK);
    let figures = reads.await?;
    world.serving("other", &digest).await?;
    say(
        "`/metas` one bundle, x1, 4 connections, in the first 3 s of unpacking x15",
        &figures,
    );
    world.delete("other").await
}

fn bundles(catalog: &str, sample: &Sample) -> Vec<Ask> {
    let path = |(package, name): &(String, String)| {
        Ask::new(format!(
            "/catalogs/{catalog}/api/v1/metas?schema=olm.bundle&package={package}&name={name}"
        ))
    };
    sample.bundles.iter().map(path).collect()
}

/// A load, and what it cost the server.
struct Measured {
    load: Load,
    cpu: Duration,
}

async fn measured(
    running: &Running,
    asks: &[Ask],
    connections: usize,
    time: Duration,
    wanted: StatusCode,
) -> Result<Measured> {
    let before = running.kernel.cpu()?;
    let load = load(&running.target, asks, connections, time, wanted).await?;
    let cpu = running.kernel.cpu()?.saturating_sub(before);
    Ok(Measured { load, cpu })
}

/// The CPU of one answer does not depend on what else the machine does, as the rate does.
fn say(work: &str, measured: &Measured) {
    let load = &measured.load;
    let each =
        measured.cpu.as_secs_f64() / f64::from(u32::try_from(load.requests.max(1)).unwrap_or(u32::MAX));
    row(
        work,
        &format!(
            "{:.0} req/s, {:.1} MB/s, p50 {:.2} ms, p99 {:.2} ms, worst {:.1} ms; {:.3} ms of the server's CPU each",
            load.per_second,
            load.bytes_per_second / 1e6,
            load.p50.as_secs_f64() * 1e3,
            load.p99.as_secs_f64() * 1e3,
            load.worst.as_secs_f64() * 1e3,
            each * 1e3,
        ),
    );
}
