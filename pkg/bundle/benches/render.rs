//! Cost of parsing and rendering bundles: the largest one, and all of them.
//!
//! With `OLM_VECTORS` these are the recorded real bundles, else our own. Before the measurements, the largest is
//! rendered once and the peak of the process's memory is printed.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, reads files and prints"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group};
use olm_bundle::{Bundle, Certificates, InstallMode, RenderOptions, list_hash, parse, render};
use serde_json::json;

type Files = BTreeMap<String, Vec<u8>>;

/// The folders that hold a bundle, at most a few levels below `root`.
fn folders(root: &Path, depth: usize, into: &mut Vec<PathBuf>) {
    if root.join("manifests").is_dir() {
        return into.push(root.to_owned());
    }
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if depth > 0 && entry.path().is_dir() {
            folders(&entry.path(), depth - 1, into);
        }
    }
}

fn files(folder: &Path) -> Files {
    let mut out = Files::new();
    for name in ["manifests", "metadata"] {
        for entry in std::fs::read_dir(folder.join(name))
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.path().is_file() {
                let key = format!("{name}/{}", entry.file_name().to_string_lossy());
                out.insert(key, std::fs::read(entry.path()).expect("a readable file"));
            }
        }
    }
    out
}

fn options(bundle: &Bundle) -> RenderOptions {
    let mut options = RenderOptions::new("olm-test");
    options.certificates = Certificates::CertManager;
    if !bundle.supports(InstallMode::AllNamespaces) {
        let own = bundle.supports(InstallMode::OwnNamespace);
        options.config = Some(json!({"watchNamespace": if own { "olm-test" } else { "other" }}));
    }
    options
}

/// Bundles that can be rendered, the largest last.
fn bundles() -> Vec<Files> {
    let root = std::env::var_os("OLM_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/testdata/bundles"),
        PathBuf::from,
    );
    let mut found = Vec::new();
    for part in ["render", "bundles", ""] {
        let place = root.join(part);
        if found.is_empty() || !part.is_empty() {
            folders(&place, 2, &mut found);
        }
    }
    let mut all: Vec<Files> = found
        .iter()
        .map(|folder| files(folder))
        .filter(|files| parse(files).is_ok_and(|bundle| render(&bundle, &options(&bundle)).is_ok()))
        .collect();
    all.sort_by_key(|files| files.values().map(Vec::len).sum::<usize>());
    all
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn measure(criterion: &mut Criterion) {
    let all = bundles();
    let largest = all.last().expect("at least one bundle");
    let bytes: usize = largest.values().map(Vec::len).sum();
    let bundle = parse(largest).expect("a sound bundle");
    let options_of_largest = options(&bundle);
    let objects = render(&bundle, &options_of_largest).expect("a sound bundle");
    println!(
        "{}: {bytes} bytes, {} objects; peak {}",
        bundle.csv_name(),
        objects.len(),
        peak()
    );

    let mut group = criterion.benchmark_group("largest");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("parse", |bencher| bencher.iter(|| parse(black_box(largest))));
    group.bench_function("render", |bencher| {
        bencher.iter(|| render(black_box(&bundle), &options_of_largest));
    });
    group.finish();

    let mut group = criterion.benchmark_group("all");
    group.sample_size(10);
    group.throughput(Throughput::Elements(all.len() as u64));
    group.bench_function("parse, render, hash", |bencher| {
        bencher.iter(|| {
            for files in &all {
                let bundle = parse(files).expect("a sound bundle");
                let objects = render(&bundle, &options(&bundle)).expect("a sound bundle");
                black_box(list_hash(&objects));
            }
        });
    });
    group.finish();
    println!("{} bundles; peak {}", all.len(), peak());
}

criterion_group!(benches, measure);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
