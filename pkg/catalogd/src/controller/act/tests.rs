use std::{fmt::Write as _, fs, future::Future as _, pin::pin, task};

use futures::FutureExt as _;
use tempfile::TempDir;

use super::*;
use crate::controller::{CONCURRENCY, context::testing::context};

/// Long enough that a store takes seconds.
const OBJECTS: u32 = 300_000;

fn name() -> ValidCatalogName {
    ValidCatalogName::new("c").unwrap()
}

fn long_catalog(folder: &TempDir) -> PathBuf {
    let root = folder.path().join("source");
    let mut text = String::new();
    for number in 0..OBJECTS {
        writeln!(text, "{{\"schema\":\"x\",\"name\":\"object-{number}\"}}").unwrap();
    }
    fs::create_dir(&root).unwrap();
    fs::write(root.join("catalog.json"), text).unwrap();
    root
}

#[tokio::test]
async fn a_store_that_nobody_waits_for_ends_and_releases_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (context, name, root) = (context(folder.path()), name(), long_catalog(&folder));
    let origin = Origin {
        requested: "registry.example/c:v1".to_owned(),
        resolved: "registry.example/c@sha256:aa".to_owned(),
        unpacked_at: 1,
    };
    let guard = lock(&context, &name).await;
    let mut storing = Box::pin(store(&context, &name, guard, root, origin));
    let started = folder.path().join("catalogs/c/.tmp/catalog.jsonl");
    while !started.exists() {
        assert!(storing.as_mut().now_or_never().is_none(), "too short");
        tokio::task::yield_now().await;
    }
    drop(storing);
    let _released = lock(&context, &name).await;
    assert!(context.store.get(&name).is_none(), "it went on to the end");
    let left: Vec<_> = fs::read_dir(folder.path().join("catalogs/c")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_deletion_that_waits_for_a_store_occupies_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let (context, name) = (context(folder.path()), name());
    let storing = lock(&context, &name).await;
    let mut removing = pin!(context.workers.run(remove(&context, &name)));
    let mut polled = task::Context::from_waker(task::Waker::noop());
    assert!(removing.as_mut().poll(&mut polled).is_pending());
    assert_eq!(context.workers.free(), usize::from(CONCURRENCY));
    drop(storing);
    removing.await.unwrap();
}
