//! Cost of a resolution: on long channels with many skips and over several catalogs, with content that must be read
//! from its stored form (cold) and with content in memory (warm).
//!
//! With `OLM_VECTORS` the catalogs hold a real package, else a generated one. Before the measurements, the longest
//! channel is resolved once and the peak of the process's memory is printed.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, reads files and prints"
)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use olm_fbc::lifecycle::Lifecycles;
use olm_fbc::{Bundle, Channel, Entry, Limits, Meta, PackageContent, Property, decode};
use olm_resolve::{CatalogInput, CatalogLookup, Installed, Request, resolve};
use olm_version::RequestedRange;
use serde_json::json;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const SKIPS: usize = 100;
const ENTRIES: [usize; 5] = [1_000, 2_000, 4_000, 8_000, 10_000];
const CATALOGS: [i32; 3] = [1, 4, 16];
/// The real package and the bundle installed of it.
const REAL: &str = "argocd-operator";

/// Returns a channel in which every entry replaces its predecessor and skips the hundred entries before that.
fn long(entries: usize) -> CatalogInput {
    let name = |at: usize| format!("p.v1.{at}.0");
    let bundle = |at: usize| Bundle {
        name: name(at),
        image: String::new(),
        properties: vec![Property {
            type_: Bundle::PACKAGE_PROPERTY.to_owned(),
            value: json!({"packageName": "p", "version": format!("1.{at}.0")}),
        }],
        min_kube_version: None,
    };
    let entry = |at: usize| Entry {
        name: name(at),
        replaces: at.checked_sub(1).map(name).unwrap_or_default(),
        skips: (at.saturating_sub(SKIPS + 1)..at.saturating_sub(1))
            .map(name)
            .collect(),
        skip_range: String::new(),
    };
    let content = PackageContent {
        name: "p".to_owned(),
        package: None,
        channels: vec![Channel {
            name: "stable".to_owned(),
            entries: (0..entries).map(entry).collect(),
        }],
        bundles: (0..entries).map(bundle).collect(),
        deprecations: Vec::new(),
        lifecycles: Lifecycles::default(),
    };
    CatalogInput {
        name: "catalog".into(),
        priority: 0,
        lookup: CatalogLookup::Found(Arc::new(content)),
    }
}

/// Upgrades from `installed`; a `wanted` version that cannot be had makes all of the explanation and the
/// suggestion be worked out.
fn request(package: &str, installed: (&str, &str), wanted: Option<&str>) -> Request {
    Request {
        package: package.into(),
        range: wanted.and_then(RequestedRange::new),
        installed: Some(Installed {
            name: installed.0.into(),
            version: installed.1.into(),
            ..Installed::default()
        }),
        ..Request::default()
    }
}

fn long_channels(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("long channel");
    group.sample_size(10);
    let chosen = request("p", ("p.v1.0.0", "1.0.0"), None);
    for entries in ENTRIES {
        let catalogs = [long(entries)];
        group.throughput(Throughput::Elements(u64::try_from(entries).expect("a count")));
        let last = format!("1.{}.0", entries - 1);
        let refused = request("p", ("p.v1.0.0", "1.0.0"), Some(&last));
        group.bench_function(BenchmarkId::new("chosen", entries), |bench| {
            bench.iter(|| resolve(black_box(&chosen), &catalogs).is_ok());
        });
        group.bench_function(BenchmarkId::new("explained", entries), |bench| {
            bench.iter(|| resolve(black_box(&refused), &catalogs).is_err());
        });
    }
    group.finish();
}

/// The stored objects of the real package, or of a channel of 200 entries.
fn stored() -> (String, Vec<Meta>, Request) {
    let folder =
        std::env::var_os("OLM_VECTORS").map(|root| PathBuf::from(root).join("catalogs/medium").join(REAL));
    if let Some(folder) = folder {
        let mut metas = Vec::new();
        for file in std::fs::read_dir(folder).expect("the package's folder") {
            let file = std::fs::File::open(file.expect("an entry").path()).expect("a file");
            metas.extend(decode(file, &Limits::default()).map(|meta| meta.expect("a meta")));
        }
        let request = request(REAL, ("argocd-operator.v0.10.0", "0.10.0"), None);
        return (REAL.to_owned(), metas, request);
    }
    let CatalogLookup::Found(content) = long(200).lookup else {
        return (String::new(), Vec::new(), Request::default());
    };
    let meta = |schema: &str, name: &str, value: &serde_json::Value| Meta {
        schema: schema.to_owned(),
        package: "p".to_owned(),
        name: name.to_owned(),
        blob: value.to_string().into_bytes(),
    };
    let channels = content
        .channels
        .iter()
        .map(|channel| meta("olm.channel", &channel.name, &json!(channel)));
    let bundles = content
        .bundles
        .iter()
        .map(|bundle| meta("olm.bundle", &bundle.name, &json!(bundle)));
    let metas = channels.chain(bundles).collect();
    ("p".to_owned(), metas, request("p", ("p.v1.0.0", "1.0.0"), None))
}

fn several_catalogs(criterion: &mut Criterion) {
    let (package, metas, request) = stored();
    let read = || {
        let content = PackageContent::from_metas(&package, metas.clone()).expect("sound content");
        CatalogLookup::Found(Arc::new(content))
    };
    let catalogs = |count: i32, lookup: &dyn Fn() -> CatalogLookup| -> Vec<CatalogInput> {
        let catalog = |priority| CatalogInput {
            name: format!("catalog-{priority}").into(),
            priority,
            lookup: lookup(),
        };
        (0..count).map(catalog).collect()
    };
    let mut group = criterion.benchmark_group(format!("catalogs of {package}"));
    for count in CATALOGS {
        let warm = read();
        let warm = catalogs(count, &|| warm.clone());
        assert!(resolve(&request, &warm).is_ok(), "something is chosen");
        group.bench_function(BenchmarkId::new("warm", count), |bench| {
            bench.iter(|| resolve(black_box(&request), &warm).is_ok());
        });
        group.bench_function(BenchmarkId::new("cold", count), |bench| {
            bench.iter(|| resolve(black_box(&request), &catalogs(count, &read)).is_ok());
        });
    }
    group.finish();
}

/// The most memory this process has had, as the kernel counts it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".to_owned(), |line| line.trim().to_owned())
}

fn once() {
    let entries = ENTRIES[ENTRIES.len() - 1];
    let catalogs = [long(entries)];
    let content = peak();
    let start = Instant::now();
    let chosen = resolve(&request("p", ("p.v1.0.0", "1.0.0"), None), &catalogs).is_ok();
    let took = start.elapsed();
    println!(
        "{entries} entries of {SKIPS} skips: chosen {chosen} in {took:?}; peak {} ({content} before)",
        peak()
    );
    let last = format!("1.{}.0", entries - 1);
    let start = Instant::now();
    let refused = resolve(&request("p", ("p.v1.0.0", "1.0.0"), Some(&last)), &catalogs).is_err();
    println!(
        "the last entry refused {refused} in {:?}; peak {}",
        start.elapsed(),
        peak()
    );
}

criterion_group!(benches, long_channels, several_catalogs);

fn main() {
    once();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
