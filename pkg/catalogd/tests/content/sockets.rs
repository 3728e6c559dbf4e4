//! HTTP/1.1 and HTTP/2 over TLS, and responses larger than one chunk.

use std::{io::Read, time::Duration};

use axum::Router;
use http::Version;
use olm_catalogd::server::{Metrics, app};
use olm_harness::eventually;
use olm_runtime::serve::Limits;
use prometheus_client::{encoding::text::encode, registry::Registry};

use super::served::{Server, bundles};

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_by_alpn() {
    let server = Server::start();
    let (one, two) = (
        server.client().http1_only().build().unwrap(),
        server.client().build().unwrap(),
    );
    let whole = bundles();
    for (client, version) in [(one, Version::HTTP_11), (two, Version::HTTP_2)] {
        let url = format!("{}/catalogs/large/api/v1", server.url);
        let answer = client.get(format!("{url}/all")).send().await.unwrap();
        assert_eq!(answer.version(), version);
        let tag = answer.headers()["etag"].clone();
        assert_eq!(answer.content_length(), Some(whole.len() as u64));
        assert_eq!(answer.text().await.unwrap(), whole);

        // A client resumes an aborted download.
        let rest = client
            .get(format!("{url}/all"))
            .header("range", "bytes=1000000-")
            .header("if-range", &tag)
            .send()
            .await
            .unwrap();
        assert_eq!(rest.status(), 206);
        assert_eq!(rest.text().await.unwrap(), whole[1_000_000..]);

        let same = client
            .get(format!("{url}/all"))
            .header("if-none-match", &tag)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (same.status().as_u16(), same.bytes().await.unwrap().len()),
            (304, 0)
        );

        let selected: String = whole
            .split_inclusive('\n')
            .filter(|line| line.contains("\"package\":\"p1\""))
            .collect();
        for coding in ["identity", "gzip", "zstd"] {
            for (query, expected) in [
                ("package=p1", selected.clone()),
                ("package=p1&exclude=image", without_images(&selected)),
                ("exclude=image", without_images(&whole)),
            ] {
                let answer = client
                    .get(format!("{url}/metas?{query}"))
                    .header("accept-encoding", coding)
                    .send()
                    .await
                    .unwrap();
                let encoded = answer
                    .headers()
                    .get("content-encoding")
                    .map(|value| value.to_str().unwrap().to_owned());
                assert_eq!(
                    encoded.as_deref(),
                    Some(coding).filter(|coding| *coding != "identity")
                );
                let bytes = answer.bytes().await.unwrap();
                let text = decoded(encoded.as_deref(), &bytes);
                assert!(text == expected, "{query} as {coding}: {} bytes", text.len());
                if coding != "identity" {
                    assert!(bytes.len() < expected.len());
                }
            }
        }
        let head = client
            .head(format!("{url}/metas?package=p1"))
            .send()
            .await
            .unwrap();
        assert_eq!(head.headers()["content-length"], selected.len().to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_answers_are_kept_and_the_same_again() {
    let server = Server::start();
    let client = server.client().build().unwrap();
    for (query, coding) in [
        ("name=b7", "gzip"),
        ("package=p1&fields=name", "identity"),
        ("package=p1&fields=name", "zstd"),
    ] {
        let mut seen = Vec::new();
        for _ in 0..2 {
            let answer = client
                .get(format!("{}/catalogs/large/api/v1/metas?{query}", server.url))
                .header("accept-encoding", coding)
                .send()
                .await
                .unwrap();
            let mut headers = answer.headers().clone();
            headers.remove("date");
            seen.push((headers, answer.bytes().await.unwrap()));
        }
        assert_eq!(seen[0], seen[1], "{query}");
        // Too short to be worth compressing.
        assert_eq!(
            seen[0].0.contains_key("content-encoding"),
            coding == "zstd",
            "{query}"
        );
    }
}

fn without_images(lines: &str) -> String {
    lines
        .split_inclusive('\n')
        .map(|line| format!("{{{}", line.split_once(',').unwrap().1))
        .collect()
}

fn decoded(coding: Option<&str>, bytes: &[u8]) -> String {
    let mut text = String::new();
    match coding {
        Some("gzip") => flate2::read::GzDecoder::new(bytes)
            .read_to_string(&mut text)
            .unwrap(),
        Some("zstd") => zstd::Decoder::new(bytes)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap(),
        _ => return String::from_utf8(bytes.to_vec()).unwrap(),
    };
    text
}

/// The alert `CatalogContentErrors` reads these metrics.
#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_limit_count_as_errors() {
    let mut registry = Registry::default();
    let app = app(Router::new(), Metrics::register(&mut registry));
    let limits = Limits {
        requests: 0,
        ..Limits::DEFAULT
    };
    let server = Server::of(app, limits, tempfile::tempdir().unwrap());
    let client = server.client().build().unwrap();
    let answer = client
        .get(format!("{}/catalogs", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(answer.text().await.unwrap(), "Too many requests under way\n");
    let counted = "catalogd_http_request_duration_seconds_count{code=\"503\"} 1";
    // The client may have the response before the server has dropped it.
    eventually(Duration::from_secs(30), counted, async || {
        let mut text = String::new();
        encode(&mut text, &registry)?;
        anyhow::ensure!(text.contains(counted), "{text}");
        Ok(())
    })
    .await
    .unwrap();
}
