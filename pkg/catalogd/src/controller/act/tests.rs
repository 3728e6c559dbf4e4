use std::{fmt::Write as _, fs, future::Future as _, path::PathBuf, pin::pin, task};

use futures::FutureExt as _;
use olm_image::Puller;
use serde_json::json;
use tempfile::TempDir;

use super::{
    pull::{pull_again, store},
    *,
};
use crate::{
    controller::{
        CONCURRENCY,
        context::testing::context,
        judged::{Judged, REQUESTED, name, resolved},
    },
    storage::Origin,
};

/// Long enough that a store takes seconds.
const OBJECTS: u32 = 300_000;

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
        verified: None,
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

/// The pull that holds the lock may be about to store it.
#[tokio::test]
async fn an_unpacked_image_is_removed_once_nobody_pulls_the_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let (context, name) = (context(folder.path()), name());
    let unpacked = folder.path().join("unpack/c/sha256:aa");
    fs::create_dir_all(&unpacked).unwrap();
    let pulling = lock(&context, &name).await;
    forget_unpacked(&context, &name);
    context.cleanups.close();
    for _ in 0..100 {
        assert!(context.cleanups.wait().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert!(unpacked.exists());
    drop(pulling);
    context.cleaned_up().await;
    assert!(!unpacked.exists());
}

#[tokio::test]
async fn content_that_a_new_policy_rejects_is_no_longer_served() {
    for requested in [REQUESTED, &resolved()] {
        let judged = Judged::new(requested, &json!({"type": "insecureAcceptAnything"}));
        assert!(judged.accepted().await);
        // A policy that cannot be used is reported and refuses nothing.
        fs::write(judged.folder.path().join("policy.json"), "{").unwrap();
        assert!(!judged.accepted().await);
        pull(&judged.context, &name(), &resolved()).await.unwrap_err();
        assert!(judged.is_served());

        judged.policy(&json!({"type": "reject"}));
        assert!(!judged.accepted().await);
        // The rejection needs no registry, also for a tag.
        let error = pull(&judged.context, &name(), requested).await.unwrap_err();
        assert!(error.to_string().contains("is rejected by policy"), "{error}");
        assert!(!error.is_terminal());
        assert!(!judged.is_served());
    }
}

/// A follower pulls the image of the status, or judges its content if the status names no image.
#[tokio::test]
async fn a_follower_stops_serving_what_its_policy_rejects() {
    let judged = Judged::new(REQUESTED, &json!({"type": "reject"}));
    let pulled = pull_resolved(&judged.context, &name(), REQUESTED, &resolved()).await;
    let error = pulled.unwrap_err().to_string();
    assert!(error.contains("is rejected by policy"), "{error}");
    assert!(!judged.is_served());
}

#[tokio::test]
async fn content_without_a_fingerprint_is_verified_if_signatures_are_required() {
    let judged = Judged::new(&resolved(), &json!({"type": "insecureAcceptAnything"}));
    let unchanged = pull(&judged.context, &name(), &resolved()).await.unwrap();
    assert!(unchanged.timings.is_none());

    judged.policy(&judged.signed());
    assert!(!judged.accepted().await);
    // The signatures cannot be read, which says nothing about the content.
    let error = pull(&judged.context, &name(), &resolved()).await.unwrap_err();
    assert!(!error.to_string().contains("rejected"), "{error}");
    assert!(judged.is_served());

    // Content that was verified under this policy needs no registry.
    let (requested, reference) = (resolved().parse().unwrap(), resolved().parse().unwrap());
    let puller = Puller::new(judged.config.clone());
    let verified = puller.judge(&requested, &reference).await.unwrap();
    assert!(verified.is_some());
    let origin = judged
        .context
        .store
        .get(&name())
        .unwrap()
        .manifest()
        .origin
        .clone();
    let origin = Origin { verified, ..origin };
    judged.context.store.set_origin(&name(), origin).unwrap();
    assert!(judged.accepted().await);
    let unchanged = pull(&judged.context, &name(), &resolved()).await.unwrap();
    assert!(unchanged.timings.is_none());
}

#[tokio::test]
async fn signatures_are_not_read_again_after_a_failed_pull_of_the_same_image() {
    let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    judged.policy(&judged.signed());
    let context = &judged.context;
    let attempt = || context.history_of(&name()).verification;
    let pull = async |requested: &str| pull_resolved(context, &name(), requested, &resolved()).await;
    pull(&resolved()).await.unwrap_err();
    assert_eq!(attempt(), None, "the policy judges the tag, not the digest");
    pull(REQUESTED).await.unwrap_err();
    let last = attempt();
    assert!(last.is_some());
    assert!(judge_stored(context, &name()).await.is_none());
    assert_eq!(attempt(), last);
    assert!(judged.is_served());
}

/// The status need not have the cause.
#[tokio::test]
async fn a_policy_that_cannot_be_used_is_logged_until_it_judges_the_content() {
    let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    let cause = || judged.context.history_of(&name()).unjudged;
    fs::write(judged.folder.path().join("policy.json"), "{").unwrap();
    assert!(judge_stored(&judged.context, &name()).await.is_none());
    assert!(cause().is_some() && judged.is_served());
    judged.policy(&json!({"type": "insecureAcceptAnything"}));
    assert!(judge_stored(&judged.context, &name()).await.is_none());
    assert_eq!(cause(), None);
}

#[tokio::test]
async fn content_that_was_stored_meanwhile_is_not_replaced() {
    let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    let stored = judged.context.store.get(&name()).unwrap();
    let origin = &stored.manifest().origin;
    // The registry is never asked: a pull would fail.
    pull_again(&judged.context, &name(), origin).await.unwrap_err();
    let former = Origin {
        unpacked_at: 0,
        ..origin.clone()
    };
    pull_again(&judged.context, &name(), &former).await.unwrap();
}

#[tokio::test]
async fn a_panic_on_a_blocking_thread_reaches_the_guard() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let name = name();
    let work = blocking::<()>(&context, &name, |_, _| panic!("index out of range"));
    let panicked = olm_runtime::guard::guard(work).await.unwrap_err();
    assert!(panicked.to_string().contains("index out of range"), "{panicked}");
}
