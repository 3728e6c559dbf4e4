//! The content API without a socket.

#![expect(
    clippy::unwrap_used,
    clippy::format_collect,
    reason = "a test stops at the first surprise"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use futures::FutureExt as _;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use olm_catalogd::{
    server::{Metrics, router},
    storage::{Origin, Store, ValidCatalogName},
};
use tempfile::TempDir;
use tower::ServiceExt;

const ALL: &str = "/catalogs/c/api/v1/all";

struct Api {
    router: Router,
    registry: prometheus_client::registry::Registry,
    _folder: TempDir,
}

impl Api {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        std::fs::create_dir(&source).unwrap();
        let text: String = (0..5000)
            .map(|n| {
                format!(
                    "{{\"schema\":\"olm.bundle\",\"package\":\"p{}\",\"name\":\"b{n}\"}}\n",
                    n % 3
                )
            })
            .collect();
        std::fs::write(source.join("catalog.json"), text).unwrap();
        let store = Store::open(folder.path().join("catalogs")).unwrap();
        let origin = Origin {
            requested: "r".to_owned(),
            resolved: "r@sha256:a".to_owned(),
            unpacked_at: 0,
            verified: None,
        };
        store
            .store(
                &ValidCatalogName::new("c").unwrap(),
                &source,
                origin,
                1_767_323_045,
                &|| false,
            )
            .unwrap();
        let mut registry = prometheus_client::registry::Registry::default();
        let router = router(Arc::new(store), Metrics::register(&mut registry));
        Self {
            router,
            registry,
            _folder: folder,
        }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        assert_eq!(parts.headers["vary"], "Accept-Encoding");
        (
            parts.status,
            parts.headers,
            body.collect().await.unwrap().to_bytes().to_vec(),
        )
    }
}

#[tokio::test]
async fn tags_are_strong_and_of_one_form() {
    let api = Api::new();
    let (status, headers, whole) = api.send("GET", ALL, &[]).await;
    assert_eq!(status, StatusCode::OK);
    let tag = headers["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.len() == 66, "{tag}");
    assert_eq!(headers["content-length"], whole.len().to_string());

    let (status, headers, body) = api.send("GET", ALL, &[("if-none-match", &tag)]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(headers["etag"], tag);
    assert!(!headers.contains_key("content-type"));
    assert_eq!(
        api.send("GET", ALL, &[("if-match", &tag)]).await.0,
        StatusCode::OK
    );

    for coding in ["gzip", "zstd"] {
        let (_, headers, body) = api.send("GET", ALL, &[("accept-encoding", coding)]).await;
        assert_eq!(headers["content-encoding"], coding);
        assert_ne!(headers["etag"], tag);
        assert!(body.len() < whole.len());
        // A copy in one encoding is no valid copy in another.
        let other = api
            .send(
                "GET",
                ALL,
                &[("accept-encoding", coding), ("if-none-match", &tag)],
            )
            .await;
        assert_eq!(other.0, StatusCode::OK);
    }
    let (_, a, _) = api.send("GET", "/catalogs/c/api/v1/metas?package=p1", &[]).await;
    let (_, b, _) = api.send("GET", "/catalogs/c/api/v1/metas?name=p1", &[]).await;
    assert_ne!(a["etag"], b["etag"]);
}

#[tokio::test]
async fn ranges_resume_a_download() {
    let api = Api::new();
    let (_, headers, whole) = api.send("GET", ALL, &[]).await;
    let tag = headers["etag"].to_str().unwrap().to_owned();
    let (status, headers, part) = api
        .send(
            "GET",
            ALL,
            &[
                ("range", "bytes=100-"),
                ("if-range", &tag),
                ("accept-encoding", "gzip"),
            ],
        )
        .await;
    assert_eq!(status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(
        headers["content-range"],
        format!("bytes 100-{}/{}", whole.len() - 1, whole.len())
    );
    assert_eq!(part, whole[100..]);
    assert!(!headers.contains_key("content-encoding"));
    let (status, _, body) = api
        .send("GET", ALL, &[("range", "bytes=100-"), ("if-range", "\"other\"")])
        .await;
    assert_eq!((status, body.len()), (StatusCode::OK, whole.len()));
    let (status, headers, _) = api.send("GET", ALL, &[("range", "bytes=999999999-")]).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(headers["content-range"], format!("bytes */{}", whole.len()));
    // Neither other units nor other methods have ranges.
    for (method, range) in [("GET", "items=0-1"), ("HEAD", "bytes=0-1")] {
        let (status, headers, _) = api.send(method, ALL, &[("range", range)]).await;
        assert_eq!(status, StatusCode::OK, "{method} {range}");
        assert_eq!(headers["content-length"], whole.len().to_string());
        assert!(!headers.contains_key("content-range"));
    }
}

#[tokio::test]
async fn head_claims_no_encoding_that_get_does_not_have() {
    let api = Api::new();
    for query in ["name=b1", "name=b1&fields=name", "package=p1"] {
        let path = format!("/catalogs/c/api/v1/metas?{query}");
        let gzip = [("accept-encoding", "gzip")];
        let (_, head, _) = api.send("HEAD", &path, &gzip).await;
        let (_, get, _) = api.send("GET", &path, &gzip).await;
        assert!(!head.contains_key("content-encoding"), "{query}");
        assert_eq!(head["etag"], get["etag"]);
        assert_eq!(get.contains_key("content-encoding"), query == "package=p1");
    }
}

#[tokio::test]
async fn scattered_metas_come_whole_and_in_order() {
    let api = Api::new();
    let (status, headers, body) = api.send("GET", "/catalogs/c/api/v1/metas?package=p1", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-length"], body.len().to_string());
    let names: Vec<String> = String::from_utf8(body)
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected: Vec<String> = (0..5000)
        .filter(|n| n % 3 == 1)
        .map(|n| format!("b{n}"))
        .collect();
    assert_eq!(names, expected);
    let (_, headers, body) = api.send("HEAD", "/catalogs/c/api/v1/metas?package=p1", &[]).await;
    assert!(body.is_empty() && headers["content-length"] != "0");
}

#[tokio::test]
async fn refusals_and_the_histogram() {
    let api = Api::new();
    let (status, headers, body) = api.send("POST", ALL, &[]).await;
    assert_eq!(
        (status, body.as_slice()),
        (StatusCode::METHOD_NOT_ALLOWED, b"Method Not Allowed\n".as_slice())
    );
    assert_eq!(headers["allow"], "GET, HEAD");
    for path in [
        "/catalogs/%2e%2e/api/v1/all",
        "/catalogs/a%2fb/api/v1/all",
        "/catalogs/BAD_name/api/v1/metas",
    ] {
        let (status, _, body) = api.send("GET", path, &[]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        assert!(body.starts_with(b"invalid catalog name: "), "{path}");
    }
    assert_eq!(
        api.send("GET", "/catalogs/nope/api/v1/all", &[]).await.0,
        StatusCode::NOT_FOUND
    );
    // The route exists only with its feature gate.
    let graphql = api.send("POST", "/catalogs/c/api/v1/graphql", &[]).await;
    assert_eq!(graphql.0, StatusCode::NOT_FOUND);
    let (status, headers, _) = api.send("GET", "//catalogs/c/../c/api/v1/all?a=b", &[]).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(headers["location"], "/catalogs/c/api/v1/all?a=b");
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &api.registry).unwrap();
    assert!(
        text.contains("catalogd_http_request_duration_seconds_count{code=\"405\"} 1"),
        "{text}"
    );
    assert!(
        text.contains("catalogd_http_request_duration_seconds_count{code=\"400\"} 3"),
        "{text}"
    );
}

#[tokio::test]
async fn the_duration_of_a_request_has_its_transfer() {
    let api = Api::new();
    let is_counted = |count: u32| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &api.registry).unwrap();
        let line = format!("catalogd_http_request_duration_seconds_count{{code=\"200\"}} {count}");
        text.lines().any(|own| own == line)
    };
    let request = Request::get(ALL).body(Body::empty()).unwrap();
    let mut body = api.router.clone().oneshot(request).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert!(is_counted(0), "the client still reads");
    // The client leaves, which ends the request too.
    drop(body);
    assert!(is_counted(1));
}

#[tokio::test]
async fn bytes_count_as_they_are_sent() {
    let api = Api::new();
    let count = |encoding: &str| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &api.registry).unwrap();
        let line = format!("catalogd_http_response_bytes_total{{encoding=\"{encoding}\"}} ");
        let found = text.lines().find_map(|own| own.strip_prefix(&line));
        found.map(|number| number.parse::<usize>().unwrap())
    };
    let (_, _, plain) = api.send("GET", ALL, &[]).await;
    let (_, _, gzip) = api.send("GET", ALL, &[("accept-encoding", "gzip")]).await;
    api.send("HEAD", ALL, &[]).await;
    assert_eq!(count("identity"), Some(plain.len()));
    assert_eq!(count("gzip"), Some(gzip.len()));
    assert_eq!(count("zstd"), None);
}

/// Clients that reset their requests leave no work behind that others wait for.
#[tokio::test(flavor = "multi_thread")]
async fn abandoned_requests_delay_no_others() {
    let api = Api::new();
    let path = |field: &str| format!("/catalogs/c/api/v1/metas?schema=olm.bundle&fields={field}");
    let timed = async |field: &str| {
        let started = Instant::now();
        let (status, _, _) = api.send("GET", &path(field), &[]).await;
        assert_eq!(status, StatusCode::OK);
        started.elapsed()
    };
    let alone = timed("first").await;
    for number in 0..200 * std::thread::available_parallelism().unwrap().get() {
        let request = Request::get(path(&format!("x{number}"))).body(Body::empty());
        let abandoned = api.router.clone().oneshot(request.unwrap());
        assert!(abandoned.now_or_never().is_none());
    }
    let behind = timed("last").await;
    let limit = 50 * alone.max(Duration::from_millis(10));
    assert!(
        behind < limit,
        "{behind:?} behind abandoned requests, {alone:?} alone"
    );
}
