//! Memory for storing and serving a catalog does not grow with the catalog. This test runs alone in its process, since
//! the kernel's figures cover the whole process.
//!
//! A small catalog goes the same way first. The kernel counts pages of the program itself as soon as they are used, in
//! blocks whose size depends on what the page cache holds: several megabytes in an unoptimised build, which say nothing
//! about the catalog.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod process;

use std::{
    fs,
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
};

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use olm_catalogd::{
    server::{self, Metrics},
    storage::{Origin, Store, ValidCatalogName},
};
use olm_runtime::memory::Jemalloc;
use process::kib;
use tower::ServiceExt;

/// The allocator of the program; libc's keeps more of the freed memory.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Small objects: many locations and names for the index.
const BUNDLES: u64 = 120_000;
/// Objects of the catalog that is stored first.
const FEW_BUNDLES: u64 = 1_000;
/// Maximum growth during storing and serving, in KiB; less than the catalog, and than its index in memory.
const CAP: u64 = 12 * 1024;

/// Writes a catalog of `bundles` small objects and returns its size.
fn generate(path: &Path, bundles: u64) -> u64 {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    let mut size = 0;
    for number in 0..bundles {
        let line = format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"package-{:05}\",\"name\":\"package-{:05}.v{number}.0.0\",\
             \"image\":\"registry.example/image@sha256:{number:064x}\",\"properties\":[{{\"type\":\"text\",\
             \"value\":\"{:064}\"}}]}}\n",
            number / 20,
            number / 20,
            number * 7_919
        );
        size += line.len() as u64;
        file.write_all(line.as_bytes()).unwrap();
    }
    file.flush().unwrap();
    size
}

/// Stores a catalog of `bundles` objects and reads all of it, then one package and one object.
async fn store_and_serve(bundles: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let size = generate(&source.join("catalog.json"), bundles);
    let store = Arc::new(Store::open(folder.path().join("catalogs")).unwrap());
    let name = ValidCatalogName::new("large").unwrap();
    let origin = Origin {
        requested: "registry.example/catalog:v1".to_owned(),
        resolved: "registry.example/catalog@sha256:aa".to_owned(),
        unpacked_at: 7,
        verified: None,
    };
    let stored = store.store(&name, &source, origin, 7, &|| false).unwrap();
    assert_eq!(stored.manifest().counts.bundles, bundles);

    let router = server::router(
        store,
        Metrics::register(&mut prometheus_client::registry::Registry::default()),
    );
    let last = bundles - 1;
    let mut lengths = Vec::new();
    for query in [
        "all".to_owned(),
        "metas?schema=olm.bundle".to_owned(),
        "metas?package=package-00003".to_owned(),
        format!("metas?name=package-{:05}.v{last}.0.0", last / 20),
    ] {
        let request = Request::get(format!("/catalogs/large/api/v1/{query}"))
            .body(Body::empty())
            .unwrap();
        let mut body = router.clone().oneshot(request).await.unwrap().into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame.unwrap().into_data().unwrap().len() as u64;
        }
        lengths.push(length);
    }
    let one = size / bundles;
    let [all, schema, package, object] = lengths.try_into().unwrap();
    assert_eq!(all, schema);
    assert!(all > size * 9 / 10, "{all}");
    assert!((one * 15..one * 25).contains(&package), "{package}");
    assert!((one / 2..one * 2).contains(&object), "{object}");
    size
}

#[tokio::test]
async fn a_catalog_far_larger_than_what_storing_it_takes() {
    store_and_serve(FEW_BUNDLES).await;
    let before = kib("VmRSS");
    // The peak counts anew from here on.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let size = store_and_serve(BUNDLES).await;
    assert!(size / 1024 > CAP * 3 / 2, "{size}");
    let growth = kib("VmHWM").saturating_sub(before);
    println!("{size} bytes: storing and serving took {growth} KiB");
    assert!(growth < CAP, "storing and serving took {growth} KiB");
}
