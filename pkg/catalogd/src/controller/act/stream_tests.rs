use std::{fmt::Write as _, fs, future::Future as _, io::Write as _, path::Path, task, time::Duration};

use flate2::{Compression, write::GzEncoder};
use olm_harness::stub::{Host, Image};
use olm_image::{CanonicalRef, Fetched, HostPolicy, ImageConfig, Reference};
use tempfile::TempDir;

use super::*;
use crate::controller::{
    act::{lock, pull, pull_resolved},
    context::testing::context_with_images,
    judged::name,
};

/// catalogd with a registry that has one catalog image.
struct Lab {
    folder: TempDir,
    context: Arc<Context>,
    host: Host,
    reference: String,
    resolved: String,
}

impl Lab {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let label = olm_api::keys::CATALOG_CONFIGS_IMAGE_LABEL;
        let image = Image::labelled(layer(files), &[(label, "/configs")]);
        let digest = image.digest();
        let host = Host::start(None, move |request| image.serve(request)).unwrap();
        let mut config = ImageConfig::new(folder.path());
        config.durable = false;
        config.registries_conf = Some(folder.path().join("registries.conf"));
        config.auth_file = Some(folder.path().join("auth.json"));
        config.policy_file = Some(folder.path().join("policy.json"));
        config.hosts = HostPolicy::new(vec!["loopback".parse().unwrap()]);
        config.plain_http = vec![host.address().to_string()];
        fs::write(folder.path().join("registries.conf"), "").unwrap();
        fs::write(
            folder.path().join("policy.json"),
            r#"{"default": [{"type": "insecureAcceptAnything"}]}"#,
        )
        .unwrap();
        Self {
            context: context_with_images(folder.path(), config),
            reference: format!("{}/c:v1", host.address()),
            resolved: format!("{}/c@{digest}", host.address()),
            folder,
            host,
        }
    }

    /// Returns the layers of the image.
    async fn layers(&self) -> Layers {
        self.layers_for(&name()).await
    }

    /// Returns the layers of the image for a catalog.
    async fn layers_for(&self, owner: &ValidCatalogName) -> Layers {
        let requested: Reference = self.reference.parse().unwrap();
        let resolved: CanonicalRef = self.resolved.parse().unwrap();
        let fetched = self.context.images.fetch(owner, &requested, &resolved).await;
        match fetched.unwrap().unwrap() {
            Fetched::Layers(layers) => *layers,
            Fetched::Unpacked(unpacked) => panic!("{unpacked:?} is in the cache"),
        }
    }

    fn origin(&self) -> Origin {
        Origin {
            requested: self.reference.clone(),
            resolved: self.resolved.clone(),
            unpacked_at: 1,
            verified: None,
        }
    }

    /// Returns the digest of the served content.
    fn served(&self) -> Option<String> {
        let served = self.context.store.get(&name())?;
        Some(served.manifest().digest.clone())
    }

    /// Returns the entries of the cache of images, and of the catalog's store without what it serves.
    fn left(&self) -> Vec<String> {
        let names = |path: &Path| match fs::read_dir(path) {
            Ok(entries) => entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect(),
            Err(_) => Vec::new(),
        };
        let mut left = names(&self.folder.path().join("unpack/c"));
        let stored = names(&self.folder.path().join("catalogs/c"));
        left.extend(stored.into_iter().filter(|name| name.starts_with(".tmp")));
        left
    }
}

/// Returns a compressed layer of files in this order.
fn layer(files: &[(&str, &str)]) -> Vec<u8> {
    let mut layer = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        layer.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    let mut gzip = layer.into_inner().unwrap();
    gzip.flush().unwrap();
    gzip.finish().unwrap()
}

const A: (&str, &str) = ("configs/a/catalog.json", r#"{"schema":"olm.package","name":"a"}"#);
const B: (&str, &str) = ("configs/b/catalog.yaml", "schema: olm.package\nname: b\n");

#[tokio::test]
async fn an_image_is_stored_without_unpacking_it() {
    let lab = Lab::new(&[("etc/hosts", ""), A, B]);
    let layers = lab.layers().await;
    let guard = lock(&lab.context, &name()).await;
    let streamed = stream(&lab.context, &name(), guard, layers, lab.origin()).await;
    assert!(matches!(streamed, Ok(Streamed::Stored(_))));
    assert!(lab.context.store.try_lock(&name()).is_some());
    lab.context.cleaned_up().await;
    assert_eq!(lab.left(), [""; 0]);
    let served = lab.served();

    // An image that is unpacked gives the same content.
    for files in [vec![B, A], vec![A, B, ("configs/.indexignore", "none")]] {
        let lab = Lab::new(&files);
        let layers = lab.layers().await;
        let guard = lock(&lab.context, &name()).await;
        let streamed = stream(&lab.context, &name(), guard, layers, lab.origin()).await;
        let Ok(Streamed::Refused(guard, layers)) = streamed else {
            panic!("the stream is stored");
        };
        assert!(lab.context.store.try_lock(&name()).is_none());
        assert_eq!(lab.served(), None);
        drop((guard, layers));
        let pulled = pull(&lab.context, &name(), &lab.reference).await.unwrap();
        assert!(pulled.timings.is_some());
        assert_eq!(lab.served(), served);
        lab.context.cleaned_up().await;
        assert_eq!(lab.left(), [""; 0]);
    }
}

/// The message is that of the unpacked image, which stays for the next attempt.
#[tokio::test]
async fn a_catalog_that_is_not_valid_is_read_from_the_unpacked_image() {
    let lab = Lab::new(&[A, ("configs/b/catalog.yaml", "a: [")]);
    for _ in 0..2 {
        let error = pull_resolved(&lab.context, &name(), &lab.reference, &lab.resolved).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with(r#"error storing fbc: error walking FBC root: file "b/catalog.yaml" of the catalog is not valid"#),
            "{error}"
        );
        assert_eq!(lab.served(), None);
    }
    assert_eq!(
        lab.host.requests_for("/blobs/").len(),
        2,
        "config and layer, once"
    );
    assert_eq!(lab.left().len(), 1);
}

#[tokio::test]
async fn a_stream_that_nobody_waits_for_ends_and_releases_its_locks() {
    let mut text = String::new();
    for number in 0..300_000_u32 {
        writeln!(text, "{{\"schema\":\"x\",\"name\":\"object-{number}\"}}").unwrap();
    }
    let lab = Lab::new(&[("configs/catalog.json", &text)]);
    let layers = lab.layers().await;
    let guard = lock(&lab.context, &name()).await;
    let name = name();
    let mut streaming = Box::pin(stream(&lab.context, &name, guard, layers, lab.origin()));
    let started = lab.folder.path().join("catalogs/c/.tmp/catalog.jsonl");
    let mut polled = task::Context::from_waker(task::Waker::noop());
    while !started.exists() {
        assert!(streaming.as_mut().poll(&mut polled).is_pending(), "too short");
        tokio::task::yield_now().await;
    }
    drop(streaming);
    let _released = lock(&lab.context, &name).await;
    assert_eq!(lab.served(), None, "it went on to the end");
    // Waits for the lock of the layers.
    lab.context.images.forget(&name).await.unwrap();
    assert_eq!(lab.left(), [""; 0]);
}

/// No entry of this image is in the catalog's directory, so no file is visited.
#[tokio::test]
async fn a_shutdown_ends_a_stream_that_has_not_reached_the_catalog() {
    let lab = Lab::new(&[("usr/large", &"x".repeat(60 * 1024 * 1024))]);
    let layers = lab.layers().await;
    let guard = lock(&lab.context, &name()).await;
    let name = name();
    let mut streaming = Box::pin(stream(&lab.context, &name, guard, layers, lab.origin()));
    let mut polled = task::Context::from_waker(task::Waker::noop());
    assert!(streaming.as_mut().poll(&mut polled).is_pending(), "too short");
    assert!(lab.context.store.try_lock(&name).is_none());
    lab.context.shutdown.cancel();
    assert!(matches!(streaming.await, Err(ActError::Interrupted)));
    let _released = lock(&lab.context, &name).await;
    lab.context.images.forget(&name).await.unwrap();
    assert_eq!(lab.left(), [""; 0]);
}

#[tokio::test]
async fn an_image_is_unpacked_without_a_permit_to_store() {
    let lab = Lab::new(&[B, A]);
    let other = lab.layers_for(&ValidCatalogName::new("d").unwrap()).await;
    let (first, second) = (other.begin().await.unwrap(), other.begin().await.unwrap());
    let all = lab.context.store_permits.available_permits();
    let name = name();
    let mut pulling = Box::pin(pull(&lab.context, &name, &lab.reference));
    let mut permits_become = async |wanted: usize| {
        while lab.context.store_permits.available_permits() != wanted {
            let waited = tokio::time::timeout(Duration::from_millis(1), pulling.as_mut()).await;
            assert!(waited.is_err(), "both slots to unpack are taken");
        }
    };
    let in_time = Duration::from_secs(20);
    // The stream waits for a slot to unpack, and `third` waits behind it: the image waits for a slot again when the stream is refused.
    tokio::time::timeout(in_time, permits_become(all - 1))
        .await
        .unwrap();
    let mut third = Box::pin(other.begin());
    let mut polled = task::Context::from_waker(task::Waker::noop());
    assert!(third.as_mut().poll(&mut polled).is_pending());
    drop(first);
    tokio::time::timeout(in_time, permits_become(all)).await.unwrap();
    drop((third, second));
    pulling.await.unwrap();
    assert!(lab.served().is_some());
    assert_eq!(lab.context.store_permits.available_permits(), all);
}
