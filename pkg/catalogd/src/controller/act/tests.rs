use std::{fmt::Write as _, fs, future::Future as _, pin::pin, task};

use futures::FutureExt as _;
use olm_image::{ImageConfig, Puller};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::controller::{
    CONCURRENCY,
    context::testing::{context, context_with_images},
};

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

/// Stored content of a tag under a signature policy. Its registry is on loopback, which the controllers never ask.
struct Judged {
    folder: TempDir,
    config: ImageConfig,
    context: Arc<Context>,
}

const REQUESTED: &str = "127.0.0.1:1/c:v1";

fn resolved() -> String {
    format!("127.0.0.1:1/c@sha256:{}", "a".repeat(64))
}

impl Judged {
    /// Stores content without a fingerprint, as earlier versions did, under a policy with this requirement.
    fn new(requested: &str, requirement: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = ImageConfig::new(folder.path());
        config.policy_file = Some(folder.path().join("policy.json"));
        let context = context_with_images(folder.path(), config.clone());
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
        let origin = Origin {
            requested: requested.to_owned(),
            resolved: resolved(),
            unpacked_at: 1,
            verified: None,
        };
        context
            .store
            .store(&name(), &source, origin, 1, &|| false)
            .unwrap();
        let judged = Self {
            folder,
            config,
            context,
        };
        judged.policy(requirement);
        judged
    }

    fn policy(&self, requirement: &Value) {
        let policy = json!({"default": [requirement]}).to_string();
        fs::write(self.folder.path().join("policy.json"), policy).unwrap();
    }

    fn signed(&self) -> Value {
        let key = self.folder.path().join("cosign.pub");
        let der = format!("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE{}==", "A".repeat(86));
        fs::write(
            &key,
            format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n"),
        )
        .unwrap();
        json!({"type": "sigstoreSigned", "keyPath": key})
    }

    fn is_served(&self) -> bool {
        // What a restart finds counts, too.
        let reopened = crate::storage::Store::open(self.folder.path().join("catalogs")).unwrap();
        let served = self.context.store.get(&name()).is_some();
        assert_eq!(reopened.get(&name()).is_some(), served);
        served
    }

    async fn accepted(&self) -> bool {
        let stored = self.context.store.get(&name()).unwrap();
        matches!(
            self.context.images.accepts(&stored.manifest().origin).await,
            Ok(true)
        )
    }
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
