//! Speed of pages: one of a package of 152 bundles, a graph of 1,000 bundles, a search of 306 packages. Catalogs are generated;
//! with `OLM_VECTORS`, the real ones are measured besides.
#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a bench fails by panicking, reads files and says what it measures"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use olm_ui::{CatalogView, Medium, Search, Site, package_page, picture};

use common::{TODAY, profile, real_catalogs, view};

fn pages(c: &mut Criterion) {
    let today = TODAY.parse().expect("a date");
    let catalog = "catalog".into();
    let description =
        "# Kite\n\nFlies *high*, see <https://example.org>.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n".repeat(40);
    let middle = profile("kite", 152, &description);
    eprintln!(
        "page of 152 bundles: {} bytes",
        package_page(Medium::Live, &catalog, &middle, &[], today)
            .into_string()
            .len()
    );
    c.bench_function("page of 152 bundles", |b| {
        b.iter(|| package_page(Medium::Live, &catalog, &middle, &[], today));
    });

    let large = profile("kite", 1000, "");
    let drawn = picture(&catalog, &large.content).expect("a picture");
    eprintln!("graph of 1,000 bundles: {} bytes", drawn.len());
    c.bench_function("graph of 1,000 bundles", |b| {
        b.iter(|| picture(&catalog, &large.content));
    });

    let many = (0..306).map(|number| profile(&format!("kite-{number}"), 18, &description));
    let catalogs = [view("catalog", many.collect())];
    searches(c, "generated", &catalogs);
    let Some(real) = real_catalogs() else { return };
    searches(c, "real", &real);
    let largest = real.iter().flat_map(CatalogView::packages);
    let largest = largest
        .max_by_key(|package| package.content.bundles.len())
        .expect("a package");
    let name = format!(
        "page of {}, {} bundles",
        largest.listing.name,
        largest.content.bundles.len()
    );
    c.bench_function(&name, |b| {
        b.iter(|| package_page(Medium::Live, &catalog, largest, &[], today));
    });
    let site = Site::new(&real, today).expect("a site");
    let mut group = c.benchmark_group("real");
    group.sample_size(10);
    group.bench_function("whole site", |b| b.iter(|| site.files().count()));
}

fn searches(c: &mut Criterion, what: &str, catalogs: &[CatalogView]) {
    let packages: usize = catalogs.iter().map(|catalog| catalog.packages().len()).sum();
    c.bench_function(&format!("search of {packages} {what} packages"), |b| {
        b.iter(|| Search::new(catalogs).find("kafka operator").len());
    });
}

criterion_group!(benches, pages);
criterion_main!(benches);
