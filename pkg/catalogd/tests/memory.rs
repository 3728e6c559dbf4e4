//! Memory for storing and serving a catalog does not grow with the catalog. This test runs alone in its process, since
//! the kernel's figures cover the whole process.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    fs,
    io::{BufWriter, Write},
    path::Path,
};

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use olm_catalogd::{
    server::{self, Metrics},
    storage::{Origin, Store, ValidCatalogName},
};
use tower::ServiceExt;

/// Small objects: many locations and names for the index.
const BUNDLES: u64 = 120_000;
/// Maximum growth during storing and serving, in KiB; less than the catalog, and than its index in memory.
const CAP: u64 = 16 * 1024;

/// Reads a figure of `/proc/self/status` in KiB.
fn kib(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn generate(path: &Path) -> u64 {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    let mut size = 0;
    for number in 0..BUNDLES {
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

#[tokio::test]
async fn a_catalog_far_larger_than_what_storing_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let size = generate(&source.join("catalog.json"));
    assert!(size / 1024 > CAP * 3 / 2, "{size}");
    let store = std::sync::Arc::new(Store::open(folder.path().join("catalogs")).unwrap());
    let name = ValidCatalogName::new("large").unwrap();
    let origin = Origin {
        requested: "registry.example/catalog:v1".to_owned(),
        resolved: "registry.example/catalog@sha256:aa".to_owned(),
        unpacked_at: 7,
    };
    let before = kib("VmRSS");
    // The peak counts anew from here on.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let stored = store.store(&name, &source, origin, 7, &|| false).unwrap();
    assert_eq!(stored.manifest().counts.bundles, BUNDLES);
    let after_storing = kib("VmHWM").saturating_sub(before);

    let router = server::router(
        store,
        Metrics::register(&mut prometheus_client::registry::Registry::default()),
    );
    let mut lengths = Vec::new();
    for query in [
        "all",
        "metas?schema=olm.bundle",
        "metas?package=package-00003",
        "metas?name=package-05999.v119999.0.0",
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
    let one = size / BUNDLES;
    assert_eq!(lengths.first(), lengths.get(1));
    assert!(
        lengths.first().is_some_and(|all| *all > size * 9 / 10),
        "{lengths:?}"
    );
    assert!(
        lengths
            .get(2)
            .is_some_and(|some| (one * 15..one * 25).contains(some)),
        "{lengths:?}"
    );
    assert!(
        lengths
            .get(3)
            .is_some_and(|some| (one / 2..one * 2).contains(some)),
        "{lengths:?}"
    );
    let peak = kib("VmHWM").saturating_sub(before);
    println!("{size} bytes: storing took {after_storing} KiB, with serving {peak} KiB");
    assert!(peak < CAP, "storing {after_storing} KiB, with serving {peak} KiB");
}
