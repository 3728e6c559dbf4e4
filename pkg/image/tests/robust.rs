//! Transient failures are retried; permanent ones have their own messages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use std::{io, net::TcpListener, os::unix::fs::PermissionsExt as _, time::Duration};

use common::{Fixture, Host, Image, answer, cause, gzip, sha256};
use olm_image::{Error, Filter, Puller, RegistryError, UnpackError};

/// Starts a host and returns its reference for tag `v1`, reached by plain HTTP.
fn plain(host: &Host) -> (Fixture, String) {
    let name = host.address().to_string();
    let fixture = Fixture::plain(&[&name]);
    (fixture, format!("{name}/a/b:v1"))
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_failures_are_retried() {
    let image = Image::of(b"1");
    let host = Host::start(None, move |asked| match asked.before {
        0 => answer(429, &[("retry-after", "0")], ""),
        1 => answer(503, &[], ""),
        _ => image.serve(asked),
    });
    let (fixture, reference) = plain(&host);
    fixture.pull(&reference).await.unwrap();
    assert_eq!(host.requests_for("/manifests/v1").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_has_an_end() {
    for (status, wait, asked) in [
        (429, "0", 5),
        (429, "3600", 1),
        (502, "0", 5),
        (500, "later", 5),
        (404, "0", 1),
    ] {
        let host = Host::start(None, move |_| answer(status, &[("retry-after", wait)], ""));
        let (fixture, reference) = plain(&host);
        let error = cause(fixture.pull(&reference).await.unwrap_err());
        let right = match status {
            429 => matches!(error, RegistryError::TooManyRequests { .. }),
            404 => matches!(error, RegistryError::NotFound { .. }),
            _ => matches!(error, RegistryError::Unavailable { .. }),
        };
        assert!(right, "{status}: {error}");
        assert_eq!(host.requests().len(), asked, "{status} {wait}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_content_is_refused() {
    let image = Image::of(b"right");
    let wrong = Image::of(b"wrong").layer;
    let serving = image.clone();
    let host = Host::start(None, move |asked| {
        if asked.path.contains(&serving.layer_path()) {
            return answer(200, &[], wrong.clone());
        }
        serving.serve(asked)
    });
    let (fixture, reference) = plain(&host);
    let error = cause(fixture.pull(&reference).await.unwrap_err());
    assert!(matches!(error, RegistryError::Digest { .. }), "{error}");

    // A manifest that does not match its digest.
    let by_digest = format!("{}/a/b@sha256:{}", host.address(), "0".repeat(64));
    let error = cause(fixture.pull(&by_digest).await.unwrap_err());
    assert!(matches!(error, RegistryError::Digest { .. }), "{error}");

    // More bytes than the manifest states, and fewer.
    for (bytes, long) in [(vec![0; image.layer.len() + 1], true), (vec![0; 10], false)] {
        let serving = image.clone();
        let host = Host::start(None, move |asked| {
            if asked.path.contains(&serving.layer_path()) {
                return answer(200, &[], bytes.clone());
            }
            serving.serve(asked)
        });
        let (fixture, reference) = plain(&host);
        let error = cause(fixture.pull(&reference).await.unwrap_err());
        let right = match error {
            RegistryError::TooLarge { .. } => long,
            RegistryError::Truncated { .. } => !long,
            _ => false,
        };
        assert!(right, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let mut fixture = Fixture::plain(&[&name]);
    fixture.config.limits.read = Duration::from_millis(50);
    let error = cause(fixture.pull(&format!("{name}/a/b:v1")).await.unwrap_err());
    assert!(matches!(error, RegistryError::Timeout { .. }), "{error}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok());
    assert!(listener.accept().is_err(), "not at once again");
    drop(listener);
    let error = cause(fixture.pull(&format!("{name}/a/b:v1")).await.unwrap_err());
    assert!(matches!(error, RegistryError::Refused { .. }), "{error}");
}

/// Returns a layer of empty entries with these names.
fn entries(names: impl Iterator<Item = String>, kind: tar::EntryType) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_mode(0o6777);
        let bytes = name.as_bytes();
        header.as_gnu_mut().unwrap().name[..bytes.len()].copy_from_slice(bytes);
        header.set_cksum();
        tar.append(&header, io::empty()).unwrap();
    }
    tar.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_image_harms_no_other() {
    let regular = tar::EntryType::Regular;
    let deep = "d/".repeat(45) + "f";
    let zeros = Image::of(&vec![0; 1 << 19]).layer;
    let bomb = gzip(&zeros[..zeros.len() - 1024].repeat(4));
    let good = Image::of(b"good");
    let cases = [
        (
            "climbing",
            Image::of_layer(entries(["../../escaped".to_owned()].into_iter(), regular)),
        ),
        (
            "device",
            Image::of_layer(entries(["null".to_owned()].into_iter(), tar::EntryType::Char)),
        ),
        ("deep", Image::of_layer(entries([deep].into_iter(), regular))),
        (
            "many",
            Image::of_layer(entries((0..200).map(|number| format!("f{number}")), regular)),
        ),
        ("large", Image::of(&vec![1; 1 << 20])),
        ("bomb", Image::of_layer(bomb)),
        (
            "set-uid",
            Image::of_layer(entries(["s".to_owned()].into_iter(), regular)),
        ),
        ("good", good),
    ];
    let serving = cases.clone();
    let host = Host::start(None, move |asked| {
        let found = serving
            .iter()
            .find(|(name, _)| asked.path.contains(&format!("/{name}/")));
        found.unwrap().1.serve(asked)
    });
    let (mut fixture, _) = plain(&host);
    let limits = &mut fixture.config.limits;
    (limits.depth, limits.entries, limits.file) = (40, 100, 1 << 19);
    (limits.ratio, limits.ratio_floor) = (10, 1 << 20);
    let puller = fixture.puller();
    let fetch = async |puller: &Puller, name: &str| {
        let reference = format!("{}/x/{name}:v1", host.address()).parse().unwrap();
        let canonical = puller.resolve(&reference).await?;
        puller.fetch(name, &canonical, Filter::All).await
    };
    let kept = fetch(&puller, "good").await.unwrap();
    for (name, _) in &cases {
        let refused = match fetch(&puller, name).await {
            Ok(unpacked) => {
                assert!(["good", "set-uid"].contains(name), "{name}");
                let file = if *name == "good" { "a" } else { "s" };
                let mode = std::fs::metadata(unpacked.root.join(file))
                    .unwrap()
                    .permissions()
                    .mode();
                assert_eq!(mode & 0o7077, 0, "{name}");
                continue;
            }
            Err(Error::Unpack { source, .. }) => source,
            Err(error) => panic!("{name}: {}", error.message()),
        };
        let right = match *name {
            "climbing" => matches!(refused, UnpackError::Name { .. }),
            "device" => matches!(refused, UnpackError::Special { .. }),
            "deep" => matches!(refused, UnpackError::TooDeep { limit: 40, .. }),
            "many" => matches!(refused, UnpackError::TooManyEntries { limit: 100 }),
            "large" => matches!(refused, UnpackError::FileTooLarge { .. }),
            "bomb" => matches!(refused, UnpackError::Ratio { limit: 10 }),
            _ => false,
        };
        assert!(right, "{name}: {refused}");
        // No part of it remains, and other owners' content does.
        let left = std::fs::read_dir(fixture.config.cache_dir.join("unpack").join(name));
        assert_eq!(left.unwrap().count(), 0, "{name}");
        assert_eq!(std::fs::read(kept.root.join("a")).unwrap(), b"good");
    }
    let escaped = walk(fixture.folder.path())
        .into_iter()
        .filter(|path| path.ends_with("escaped"));
    assert_eq!(escaped.count(), 0);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_verified() {
    let layers = |count: usize| {
        let layer = serde_json::json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": sha256(b"x"), "size": 1});
        serde_json::json!({
            "schemaVersion": 2,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(b"{}"), "size": 2},
            "layers": vec![layer; count],
        })
    };
    let other = serde_json::json!({"schemaVersion": 2, "manifests": [
        {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": sha256(b"x"), "size": 1,
         "platform": {"os": "windows", "architecture": "amd64"}},
        {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": sha256(b"x"), "size": 1},
    ]});
    let nested = serde_json::json!({"schemaVersion": 2, "manifests": [
        {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "sha256:../../etc/passwd", "size": 1,
         "platform": {"os": "linux", "architecture": "amd64"}}]});
    for (text, expected) in [
        (layers(300).to_string(), "300 layers"),
        (other.to_string(), "no image found in manifest list"),
        (nested.to_string(), "is malformed"),
        (r#"{"schemaVersion":1}"#.to_owned(), "schema 1"),
        (r#"{"schemaVersion":2}"#.to_owned(), "without layers"),
        (format!("{}1", "[".repeat(100_000)), "is malformed"),
        (" ".repeat(5 << 20), "larger than the limit of 4194304"),
    ] {
        let body = text.clone();
        let host = Host::start(None, move |_| answer(200, &[], body.clone()));
        let (fixture, _) = plain(&host);
        let by_digest = format!("{}/a/b@{}", host.address(), sha256(text.as_bytes()));
        let error = fixture.pull(&by_digest).await.unwrap_err().message();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
