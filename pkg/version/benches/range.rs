//! Time to parse and to match a range.
#![expect(clippy::expect_used, reason = "a bench fails by panicking")]

use criterion::{Criterion, criterion_group, criterion_main};
use olm_version::{SkipRange, VersionRange, VersionRelease};
use std::hint::black_box;

const RANGES: [&str; 5] = ["1.2.3", "^1.2", ">=1.0.0 <2.0.0 || 3.x", "1.2 - 1.4", "~1.2.0-0"];

fn range(c: &mut Criterion) {
    let versions: Vec<VersionRelease> = (0..1000)
        .map(|n| format!("{}.{}.{}", n % 5, n % 7, n % 11))
        .map(|text| VersionRelease::parse_legacy(&text).expect("strict"))
        .collect();
    c.bench_function("five ranges, read", |b| {
        b.iter(|| RANGES.map(|text| black_box(text).parse::<VersionRange>().expect("a range")));
    });
    let ranges = RANGES.map(|text| text.parse::<VersionRange>().expect("a range"));
    c.bench_function("five ranges, 1000 versions matched", |b| {
        b.iter(|| {
            let inside =
                |range: &VersionRange| versions.iter().filter(|version| range.matches(version)).count();
            ranges.iter().map(inside).sum::<usize>()
        });
    });
    let skips: SkipRange = ">=1.0.0 <1.5.0 || >2.0.0 <=2.3.0".parse().expect("a skip range");
    c.bench_function("skipRange, 1000 versions matched", |b| {
        b.iter(|| {
            versions
                .iter()
                .filter(|version| skips.matches(&version.version))
                .count()
        });
    });
}

criterion_group!(benches, range);
criterion_main!(benches);
