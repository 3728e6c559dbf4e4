//! Slow registries do not delay pulls from others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Body;
use common::{Fixture, Host, Image, RecordedRequest, answer, cause};
use futures::{StreamExt as _, stream};
use olm_image::{Fetched, Filter, MinRate, Puller, RegistryError, StreamEntry};
use tokio::{sync::watch, task::JoinSet, time::sleep};

/// Registry that sends its layers when they are released.
fn held(image: &Image, released: watch::Receiver<bool>) -> Host {
    let image = image.clone();
    Host::start(None, move |asked: &RecordedRequest| {
        if !asked.path.contains(&image.layer_path()) {
            return image.serve(asked);
        }
        let (layer, mut released) = (image.layer.clone(), released.clone());
        let body = stream::once(async move {
            let _ = released.wait_for(|released| *released).await;
            Ok::<_, Infallible>(layer)
        });
        answer(200, &[], Body::from_stream(body))
    })
}

async fn fetch(puller: &Puller, owner: &str, host: &Host) -> Result<(), olm_image::Error> {
    let reference = format!("{}/a/b:v1", host.address()).parse().unwrap();
    let canonical = puller.resolve(&reference).await?;
    puller.fetch(owner, &canonical, Filter::All).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_many_catalogs_pulls_a_few_at_a_time() {
    let image = Image::of(b"content");
    let (release, released) = watch::channel(false);
    let slow = held(&image, released);
    let other = Host::start(None, {
        let image = image.clone();
        move |asked| image.serve(asked)
    });
    let hosts = [&slow, &other].map(|host| host.address().to_string());
    let mut fixture = Fixture::plain(&hosts.each_ref().map(String::as_str));
    fixture.config.pulls.per_registry = 3;
    let puller = Arc::new(fixture.puller());
    let slow = Arc::new(slow);
    let mut pulls = JoinSet::new();
    for number in 0..20 {
        let (puller, slow) = (puller.clone(), slow.clone());
        pulls.spawn(async move { fetch(&puller, &format!("o{number}"), &slow).await });
    }
    // All images are resolved, eight at a time, and the permitted number of pulls runs.
    while slow.requests_for("/manifests/v1").len() < 20 || slow.requests_for(&image.layer_path()).len() < 3 {
        sleep(Duration::from_millis(5)).await;
    }
    fetch(&puller, "other", &other).await.unwrap();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(slow.requests_for(&image.layer_path()).len(), 3);
    release.send(true).unwrap();
    while let Some(pulled) = pulls.join_next().await {
        pulled.unwrap().unwrap();
    }
    assert_eq!(slow.requests_for(&image.layer_path()).len(), 20);
}

/// The files may be large, and a pull can wait long.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_read_once_a_pull_has_its_slot() {
    let image = Image::of(b"content");
    let (release, released) = watch::channel(false);
    let host = Arc::new(held(&image, released));
    let name = host.address().to_string();
    let mut fixture = Fixture::plain(&[&name]);
    fixture.config.pulls.per_registry = 1;
    let puller = Arc::new(fixture.puller());
    let reference = format!("{name}/a/b:v1").parse().unwrap();
    let canonical = puller.resolve(&reference).await.unwrap();
    let start = |owner: &'static str| {
        let (puller, canonical) = (puller.clone(), canonical.clone());
        tokio::spawn(async move { puller.fetch(owner, &canonical, Filter::All).await })
    };
    let first = start("first");
    while host.requests_for(&image.layer_path()).is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    fixture.write("auth.json", "not JSON");
    let second = start("second");
    sleep(Duration::from_millis(50)).await;
    assert!(!second.is_finished(), "it waits");
    fixture.credentials(&serde_json::json!({}));
    release.send(true).unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_registry_is_aborted() {
    let image = Image::of(&[7; 2000]);
    let sent = Arc::new(AtomicUsize::new(0));
    let host = Host::start(None, {
        let (image, sent) = (image.clone(), sent.clone());
        move |asked: &RecordedRequest| {
            if !asked.path.contains(&image.layer_path()) {
                return image.serve(asked);
            }
            let (layer, sent) = (image.layer.clone(), sent.clone());
            let drops = stream::iter(layer).then(move |byte| {
                sent.fetch_add(1, Ordering::Relaxed);
                async move {
                    sleep(Duration::from_millis(10)).await;
                    Ok::<_, Infallible>(vec![byte])
                }
            });
            answer(200, &[], Body::from_stream(drops))
        }
    });
    let name = host.address().to_string();
    let mut fixture = Fixture::plain(&[&name]);
    fixture.config.limits.min_rate = MinRate {
        bytes: 1000,
        window: Duration::from_millis(100),
    };
    let error = fixture.pull(&format!("{name}/a/b:v1")).await.unwrap_err();
    assert!(!error.terminal());
    assert_eq!(error.cause().as_str(), "timeout");
    let error = cause(error);
    assert!(matches!(error, RegistryError::TooSlow { .. }), "{error}");
    let words = "too slowly: fewer than 1000 bytes in 100ms; it is retried later";
    assert!(error.to_string().ends_with(words), "{error}");
    assert!(sent.load(Ordering::Relaxed) < 1000, "most of it was never sent");
    assert_eq!(
        host.requests_for(&image.layer_path()).len(),
        1,
        "not at once again"
    );
}

/// Registry that sends its layer in drops of some bytes, each after a pause.
fn dripping(image: &Image, bytes: usize, pause: Duration) -> Host {
    let image = image.clone();
    Host::start(None, move |asked: &RecordedRequest| {
        if !asked.path.contains(&image.layer_path()) {
            return image.serve(asked);
        }
        let drops: Vec<_> = image.layer.chunks(bytes).map(<[u8]>::to_vec).collect();
        let drops = stream::iter(drops).then(move |drop| async move {
            sleep(pause).await;
            Ok::<_, Infallible>(drop)
        });
        answer(200, &[], Body::from_stream(drops))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_may_take_long_while_it_makes_progress() {
    let image = Image::of(&vec![7; 30_000]);
    let host = dripping(&image, image.layer.len().div_ceil(10), Duration::from_millis(300));
    let name = host.address().to_string();
    let mut fixture = Fixture::plain(&[&name]);
    fixture.config.limits.pull = Duration::from_secs(1);
    fixture.config.limits.min_rate = MinRate {
        bytes: 1,
        window: Duration::from_secs(1),
    };
    let started = Instant::now();
    fixture.pull(&format!("{name}/a/b:v1")).await.unwrap();
    assert!(started.elapsed() > fixture.config.limits.pull);
}

/// A registry that sends a little now and then is not silent.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_without_progress_is_left_for_the_next_one() {
    let image = Image::of(b"content");
    let mirror = dripping(&image, 1, Duration::from_millis(10));
    let origin = Host::start(None, {
        let image = image.clone();
        move |asked| image.serve(asked)
    });
    let hosts = [&mirror, &origin].map(|host| host.address().to_string());
    let [mirror_name, origin_name] = &hosts;
    let mut fixture = Fixture::plain(&[mirror_name, origin_name]);
    fixture.config.limits.pull = Duration::from_secs(1);
    fixture.config.limits.min_rate.bytes = 0;
    let digest = image.digest();
    let failing = format!("{mirror_name}/a/b@{digest}");
    let error = cause(fixture.pull(&failing).await.unwrap_err());
    assert_eq!(
        error.to_string(),
        format!(
            "registry {mirror_name} sends image {failing} too slowly: fewer than 4369 bytes in 1s; it is retried later"
        )
    );
    fixture.write(
        "registries.conf",
        format!(
            "[[registry]]\nlocation = \"{origin_name}\"\n[[registry.mirror]]\nlocation = \"{mirror_name}\"\n"
        ),
    );
    fixture
        .pull(&format!("{origin_name}/a/b@{digest}"))
        .await
        .unwrap();
    assert_eq!(mirror.requests_for(&image.layer_path()).len(), 2);
    assert_eq!(origin.requests_for(&image.layer_path()).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_not_removed_during_a_pull() {
    let image = Image::of(b"content");
    let (release, released) = watch::channel(false);
    let host = Arc::new(held(&image, released));
    let name = host.address().to_string();
    let fixture = Fixture::plain(&[&name]);
    let puller = Arc::new(fixture.puller());
    let layers = |count: usize| {
        let (host, path) = (host.clone(), image.layer_path());
        async move {
            while host.requests_for(&path).len() < count {
                sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let start = |puller: &Arc<Puller>| {
        let (puller, host) = (puller.clone(), host.clone());
        tokio::spawn(async move { fetch(&puller, "owner", &host).await })
    };
    let first = start(&puller);
    layers(1).await;
    let forgetting = tokio::spawn({
        let puller = puller.clone();
        async move { puller.forget("owner").await }
    });
    // The owner's content is requested again while the first pull runs and its removal waits.
    sleep(Duration::from_millis(20)).await;
    let second = start(&puller);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(
        host.requests_for(&image.layer_path()).len(),
        1,
        "two pulls of one owner at the same time"
    );
    release.send(true).unwrap();
    first.await.unwrap().unwrap();
    forgetting.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    let place = fixture.config.cache_dir.join("unpack/owner");
    assert_eq!(
        std::fs::read_dir(place).unwrap().count(),
        1,
        "the second pull's content stays"
    );
}

/// They are read without being unpacked, and unpacked if that is not enough.
#[tokio::test(flavor = "multi_thread")]
async fn layers_are_not_removed_while_they_are_in_use() {
    let image = Image::of(b"content");
    let host = Host::start(None, {
        let image = image.clone();
        move |asked| image.serve(asked)
    });
    let name = host.address().to_string();
    let fixture = Fixture::plain(&[&name]);
    let puller = Arc::new(fixture.puller());
    let reference = format!("{name}/a/b:v1").parse().unwrap();
    let canonical = puller.resolve(&reference).await.unwrap();
    let fetch = || puller.fetch_layers("owner", &reference, &canonical, Filter::All);
    let Fetched::Layers(layers) = fetch().await.unwrap() else {
        panic!("nothing is in the cache");
    };
    let forgetting = tokio::spawn({
        let puller = puller.clone();
        async move { puller.forget("owner").await }
    });
    let reading = layers.begin().await.unwrap();
    let (layers, files) = tokio::task::spawn_blocking(move || {
        let mut files = Vec::new();
        let mut visit = |entry: StreamEntry<'_>| {
            let mut text = String::new();
            let (size, content) = entry.file.unwrap();
            content.read_to_string(&mut text)?;
            files.push((entry.path.to_vec(), size, text));
            Ok::<_, std::io::Error>(())
        };
        layers.each(&reading, &mut visit).unwrap();
        (layers, files)
    })
    .await
    .unwrap();
    assert_eq!(files, [(vec!["a".into()], 7, "content".to_owned())]);
    assert!(!forgetting.is_finished());
    let unpacked = layers.unpack().await.unwrap();
    forgetting.await.unwrap().unwrap();
    assert!(!unpacked.root.exists());

    let Fetched::Layers(layers) = fetch().await.unwrap() else {
        panic!("the content is forgotten");
    };
    drop(layers);
    let place = fixture.config.cache_dir.join("unpack/owner");
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "no layer stays");
    puller.fetch("owner", &canonical, Filter::All).await.unwrap();
    assert!(matches!(fetch().await.unwrap(), Fetched::Unpacked(_)));
    assert_eq!(host.requests_for(&image.layer_path()).len(), 3);
}
