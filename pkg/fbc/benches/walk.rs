//! Speed of reading a catalog: the real one under `OLM_VECTORS`, else a generated one.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a bench fails by panicking, reads files and says what it measures"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use olm_fbc::{Limits, LocatedMeta, Validator, decode, decode_located};
use std::fmt::Write as _;
use std::path::Path;

/// The files of the catalogs in `root`, of one ending.
fn files(root: &Path, ending: &str) -> Vec<Vec<u8>> {
    let list = |path: &Path| {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect::<Vec<_>>()
    };
    list(root)
        .iter()
        .flat_map(|catalog| list(catalog))
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .map(|path| std::fs::read(path).expect("a file"))
        .collect()
}

fn generated() -> Vec<Vec<u8>> {
    let mut text = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}\n".to_owned();
    for at in 0..2000 {
        let description = "words of a description, ".repeat(300);
        let _ = writeln!(
            text,
            "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v1.0.{at}\",\"image\":\"quay.io/a/b:{at}\",\
             \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"1.0.{at}\"}}}},\
             {{\"type\":\"olm.csv.metadata\",\"value\":{{\"description\":\"{description}\"}}}}]}}"
        );
    }
    vec![text.into_bytes()]
}

fn bench(c: &mut Criterion, name: &str, files: &[Vec<u8>]) {
    let bytes: usize = files.iter().map(Vec::len).sum();
    eprintln!("{name}: {} files, {bytes} bytes", files.len());
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    group.throughput(Throughput::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
    group.bench_function("decode", |b| {
        b.iter(|| {
            let metas = |file: &Vec<u8>| decode(file.as_slice(), &Limits::default()).flatten().count();
            files.iter().map(metas).sum::<usize>()
        });
    });
    group.bench_function("decode and validate", |b| {
        b.iter(|| {
            let mut validator = Validator::default();
            for file in files {
                for meta in decode_located(file.as_slice(), &Limits::default()) {
                    let (line, meta) = meta.expect("a sound meta");
                    validator.add(LocatedMeta {
                        file: "catalog",
                        line,
                        meta: &meta,
                    });
                }
            }
            validator.finish().len()
        });
    });
    group.finish();
}

fn walk(c: &mut Criterion) {
    let Some(vectors) = std::env::var_os("OLM_VECTORS") else {
        return bench(c, "generated JSON", &generated());
    };
    let catalogs = Path::new(&vectors).join("catalogs");
    for (name, part, ending) in [("real JSON", "rest", "json"), ("real YAML", "medium", "yaml")] {
        let found = files(&catalogs.join(part), ending);
        if found.is_empty() {
            eprintln!("SKIPPED: no {ending} files in {}", catalogs.join(part).display());
        } else {
            bench(c, name, &found);
        }
    }
}

criterion_group!(benches, walk);
criterion_main!(benches);
