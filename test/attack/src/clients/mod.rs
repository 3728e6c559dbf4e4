//! Attacks by clients of catalogd: silent clients, slow readers, and clients with bogus tokens.
//!
//! During each attack, well-behaved clients ([`readers`]) send requests and measure response times. They use the same address as
//! the attackers if this makes the case harder.

mod readers;
mod silent;
mod slow;
mod target;
mod tokens;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use olm_harness::{ProcessStats, stub::Image};

use crate::{
    Expect, Peaks, Row, Scale, Selection, World,
    attacks::{catalog_image, plain_layer},
    report::mib,
};
use readers::Readers;
use target::Target;

const CLASS: &str = "clients";
/// Name of the served catalog.
const CATALOG: &str = "clients";
/// Package that well-behaved clients request.
const PACKAGE: &str = "small";
/// Sampling interval of memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Limits for the cost of an attack, and for its effect on other clients.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Resident memory of catalogd, in KiB.
    memory: u64,
    /// Additional memory of all TCP connections of the machine, in KiB.
    tcp: u64,
    /// 99th percentile of other clients' response times. Attackers with continuous handshakes compete with catalogd for the
    /// processors of the machine, so the tight limit is only for other attacks.
    p99: Duration,
}

impl Limits {
    /// Returns the limits of a scale. At full scale, these are 64 MB for catalogd and 256 MB for TCP. At small scale, an
    /// unoptimised build on a busy machine keeps them, but a server without limits exceeds them.
    fn of_scale(scale: Scale) -> Self {
        match scale {
            Scale::Small => Self {
                memory: 128 * 1024,
                tcp: 128 * 1024,
                p99: Duration::from_secs(5),
            },
            Scale::Full => Self {
                memory: 64_000_000 / 1024,
                tcp: 256_000_000 / 1024,
                p99: Duration::from_secs(5),
            },
        }
    }

    /// Returns the same limits, except that response times at full scale are limited to 50 ms.
    fn tight(scale: Scale) -> Self {
        let limits = Self::of_scale(scale);
        match scale {
            Scale::Small => limits,
            Scale::Full => Self {
                p99: Duration::from_millis(50),
                ..limits
            },
        }
    }
}

/// Returns the arguments of catalogd for these attacks. `metrics` is the address of its metrics server.
pub(crate) fn arguments(metrics: &str) -> Vec<String> {
    vec![format!("--metrics-bind-address={metrics}")]
}

/// Performs the selected attacks of the class.
pub(crate) async fn perform(
    world: &mut World,
    metrics: &str,
    scale: Scale,
    selection: &Selection,
) -> Result<Vec<Row>> {
    let names = [silent::NAME, slow::NAME, tokens::NAME].map(|name| (name, selection.contains(CLASS, name)));
    if names.iter().all(|(_, selected)| !selected) {
        return Ok(Vec::new());
    }
    let content = content(scale);
    let image = catalog_image(&plain_layer([("configs/catalog.json", content.as_bytes())]));
    serve(world, image).await?;
    let target = Arc::new(Target::new(world, metrics).await?);
    let stats = world.catalogd_stats()?;
    let mut rows = Vec::new();
    for (name, selected) in names {
        if !selected {
            continue;
        }
        let row = match name {
            silent::NAME => silent::attack(&target, stats, scale).await,
            slow::NAME => slow::attack(&target, stats, scale).await,
            _ => tokens::attack(world, &target, stats, scale).await,
        };
        // The run takes long, so each row is printed at once.
        eprintln!("{row}");
        rows.push(row);
    }
    world.remove_catalog(CATALOG).await?;
    Ok(rows)
}

/// Creates the catalog that the clients read, and waits until it is served.
async fn serve(world: &World, image: Image) -> Result<()> {
    let reference = world.serve(CLASS, Arc::new(move |request| image.serve(request)));
    world.apply_catalog(CATALOG, &reference).await?;
    let served = world.wait_for_catalog(CATALOG, &Expect::Accepted).await;
    served.context("the catalog for clients is not served").map(drop)
}

/// Returns a catalog with one small package, and with large content for slow clients, which is 40 MB at full scale.
fn content(scale: Scale) -> String {
    let objects = match scale {
        Scale::Small => 8,
        Scale::Full => 40,
    };
    let mut text =
        format!("{{\"schema\":\"olm.package\",\"name\":\"{PACKAGE}\",\"defaultChannel\":\"stable\"}}\n");
    let filling = "x".repeat(1_000_000);
    for number in 0..objects {
        text.push_str("{\"schema\":\"olm.filling\",\"package\":\"large\",\"name\":\"");
        text.push_str(&number.to_string());
        text.push_str("\",\"text\":\"");
        text.push_str(&filling);
        text.push_str("\"}\n");
    }
    text
}

/// Measurements during an attack.
struct Measurement {
    stats: ProcessStats,
    /// Memory of all TCP connections before the attack, in KiB.
    tcp_before: u64,
    /// Resident memory of catalogd before the attack, in KiB.
    resident_before: u64,
    began: Instant,
    /// Highest memory of TCP during the attack, without the memory before the attack, in KiB.
    tcp: u64,
}

impl Measurement {
    fn begin(stats: ProcessStats) -> Result<Self> {
        stats.reset_peak()?;
        Ok(Self {
            stats,
            tcp_before: tcp_kib()?,
            resident_before: stats.kib("VmRSS")?,
            began: Instant::now(),
            tcp: 0,
        })
    }

    /// Samples the memory of TCP for this time.
    async fn sample(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.tcp = self.tcp.max(tcp_kib()?.saturating_sub(self.tcp_before));
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
        Ok(())
    }

    /// Ends the readers and returns the row of the attack. `what` describes the attackers.
    fn end(self, name: &str, what: &str, readers: Readers, limits: Limits) -> Row {
        let duration = self.began.elapsed();
        let outcome = (|| {
            let (peak, answers) = (self.stats.kib("VmHWM")?, readers.end());
            let text = format!(
                "{what}; catalogd {:.1} MiB (before {:.1}), TCP {:.1} MiB, {} answers to others, p99 {:.1} ms",
                mib(peak),
                mib(self.resident_before),
                mib(self.tcp),
                answers.count,
                answers.p99.as_secs_f64() * 1000.0,
            );
            let within_limits = peak <= limits.memory && self.tcp <= limits.tcp && answers.p99 <= limits.p99;
            anyhow::ensure!(
                answers.failed == 0,
                "{} requests of others failed: {text}",
                answers.failed
            );
            anyhow::ensure!(answers.count > 0, "nobody else was answered: {text}");
            anyhow::ensure!(within_limits, "more than {limits:?}: {text}");
            Ok((text, peak))
        })();
        let peaks = Peaks {
            catalogd: outcome.as_ref().map_or(0, |(_, peak)| *peak),
            ..Peaks::default()
        };
        Row {
            class: CLASS,
            name: name.to_owned(),
            outcome: outcome
                .map(|(text, _)| text)
                .map_err(|error: anyhow::Error| format!("{error:#}")),
            duration,
            peaks,
        }
    }
}

/// Returns the row of an attack that failed to run.
fn failed_row(name: &str, error: &anyhow::Error) -> Row {
    Row {
        class: CLASS,
        name: name.to_owned(),
        outcome: Err(format!("{error:#}")),
        duration: Duration::ZERO,
        peaks: Peaks::default(),
    }
}

/// Returns the kernel's memory for TCP, in KiB.
fn tcp_kib() -> Result<u64> {
    const PAGE_KIB: u64 = 4;
    let text = fs::read_to_string("/proc/net/sockstat").context("cannot read /proc/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let pages = line.and_then(|line| line.split_once(" mem "));
    let pages: u64 = pages
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
        .context("/proc/net/sockstat has no memory of TCP")?;
    Ok(pages * PAGE_KIB)
}
