//! Hostile clients of catalogd: silent ones, slow readers, and bearers of bogus tokens. Well-behaved clients ask at the
//! same time, from the same address where that is the harder case.

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
use olm_harness::{Kernel, stub::Image};

use crate::{
    Expect, Peaks, Row, Scale, World,
    attacks::{catalog_image, plain_layer},
    report::mib,
};
use readers::Readers;
use target::Target;

const CLASS: &str = "clients";
/// Name of the catalog that is read.
const CATALOG: &str = "clients";
/// Package that well-behaved clients ask for.
const PACKAGE: &str = "small";
/// Interval between two looks at the figures.
const LOOK: Duration = Duration::from_millis(100);

/// Bounds of what an attack may cost, and of what others may notice.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Resident memory of catalogd, in KiB.
    memory: u64,
    /// Memory of all TCP connections of the machine beyond what they had before, in KiB.
    tcp: u64,
    /// Time within which 99 of 100 requests of others are answered. Attackers that shake hands all the time take the
    /// machine's processors, of which they have as many as catalogd: the bound is tight for those that do not.
    answered: Duration,
}

impl Bounds {
    /// 64 MB and 256 MB in full. In small, bounds that a busy machine and an unoptimised build keep to, and that a
    /// server without limits does not.
    fn of(scale: Scale) -> Self {
        match scale {
            Scale::Small => Self {
                memory: 128 * 1024,
                tcp: 128 * 1024,
                answered: Duration::from_secs(5),
            },
            Scale::Full => Self {
                memory: 64_000_000 / 1024,
                tcp: 256_000_000 / 1024,
                answered: Duration::from_secs(5),
            },
        }
    }

    /// The same, with 50 ms in full.
    fn tight(scale: Scale) -> Self {
        let bounds = Self::of(scale);
        match scale {
            Scale::Small => bounds,
            Scale::Full => Self {
                answered: Duration::from_millis(50),
                ..bounds
            },
        }
    }
}

/// Arguments that catalogd needs for these attacks. `metrics` is the address of its metrics.
pub(crate) fn arguments(metrics: &str) -> Vec<String> {
    vec![format!("--metrics-bind-address={metrics}")]
}

/// Performs all attacks of the class.
pub(crate) async fn perform(world: &mut World, metrics: &str, scale: Scale) -> Result<Vec<Row>> {
    let content = content(scale);
    let image = catalog_image(&plain_layer([("configs/catalog.json", content.as_bytes())]));
    serve(world, image).await?;
    let target = Arc::new(Target::new(world, metrics).await?);
    let kernel = world.catalogd_kernel()?;
    let rows = vec![
        silent::attack(&target, kernel, scale).await,
        slow::attack(&target, kernel, scale).await,
        tokens::attack(world, &target, kernel, scale).await,
    ];
    world.remove_catalog(CATALOG).await?;
    Ok(rows)
}

async fn serve(world: &World, image: Image) -> Result<()> {
    let reference = world.serve(CLASS, Arc::new(move |asked| image.serve(asked)));
    world.apply_catalog(CATALOG, &reference).await?;
    let served = world.catalog_ends(CATALOG, &Expect::Taken).await;
    served.context("the catalog for clients is not served").map(drop)
}

/// A catalog of one small package, and as much else as slow clients ask for: 40 MB in full.
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

/// The figures of an attack while it goes on.
struct Watch {
    kernel: Kernel,
    /// Memory of TCP, and of catalogd, in KiB.
    before: u64,
    resident: u64,
    began: Instant,
    tcp: u64,
}

impl Watch {
    fn begin(kernel: Kernel) -> Result<Self> {
        kernel.reset_peak()?;
        Ok(Self {
            kernel,
            before: tcp_kib()?,
            resident: kernel.kib("VmRSS")?,
            began: Instant::now(),
            tcp: 0,
        })
    }

    /// Looks at the figures for a while.
    async fn look(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.tcp = self.tcp.max(tcp_kib()?.saturating_sub(self.before));
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// The row of the attack; `what` says how many clients did what.
    fn end(self, name: &str, what: &str, readers: Readers, bounds: Bounds) -> Row {
        let took = self.began.elapsed();
        let outcome = (|| {
            let (peak, answers) = (self.kernel.kib("VmHWM")?, readers.end());
            let text = format!(
                "{what}; catalogd {:.1} MiB (before {:.1}), TCP {:.1} MiB, {} answers to others, p99 {:.1} ms",
                mib(peak),
                mib(self.resident),
                mib(self.tcp),
                answers.count,
                answers.p99.as_secs_f64() * 1000.0,
            );
            let kept = peak <= bounds.memory && self.tcp <= bounds.tcp && answers.p99 <= bounds.answered;
            anyhow::ensure!(
                answers.failed == 0,
                "{} requests of others failed: {text}",
                answers.failed
            );
            anyhow::ensure!(answers.count > 0, "nobody else was answered: {text}");
            anyhow::ensure!(kept, "more than {bounds:?}: {text}");
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
            took,
            peaks,
        }
    }
}

/// A row of an attack that could not be made.
fn broken(name: &str, error: &anyhow::Error) -> Row {
    Row {
        class: CLASS,
        name: name.to_owned(),
        outcome: Err(format!("{error:#}")),
        took: Duration::ZERO,
        peaks: Peaks::default(),
    }
}

/// Memory that the kernel holds for TCP, in KiB.
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
