//! Memory of responses that clients do not read. This test runs alone in its process, since the kernel's figures cover the whole
//! process.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod process;

use std::{fmt::Write as _, fs, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode},
};
use http_body_util::BodyExt;
use olm_catalogd::{
    server::{Metrics, Options, router_with},
    storage::{Origin, Store, ValidCatalogName},
};
use olm_runtime::memory::Jemalloc;
use process::kib;
use tower::ServiceExt;

/// The allocator of the program; libc's keeps more of the freed memory.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const MIB: usize = 1024 * 1024;
/// Maximum growth by one query with the largest answer, in KiB: its values and its text would be twice as much.
const ONE_QUERY: u64 = 48 * 1024;
/// Maximum growth by any number of queries, in KiB.
const ALL_QUERIES: u64 = 208 * 1024;
/// Number of responses of `/metas`.
const METAS: usize = 300;
/// Maximum growth by them, in KiB: less than a read of 64 KiB each.
const ALL_METAS: u64 = 16 * 1024;

/// Number of responses with a large projected object.
const LARGE_METAS: usize = 100;
/// Maximum growth by them, in KiB: all together take the memory of two of the largest objects.
const ALL_LARGE_METAS: u64 = 64 * 1024;

/// Lets the peak count anew, and returns the memory from which it grows.
fn begin() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kib("VmRSS")
}

fn growth(before: u64) -> u64 {
    kib("VmHWM").saturating_sub(before)
}

/// Returns the API of a catalog with an object of 1.9 MB and many small ones.
fn api(folder: &tempfile::TempDir) -> Router {
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let mut text = format!(
        "{{\"schema\":\"large\",\"name\":\"a\",\"text\":\"{}\"}}\n",
        "x".repeat(1_900_000)
    );
    for number in 0..3000 {
        let image = format!("{number:0300}");
        writeln!(
            text,
            "{{\"schema\":\"small\",\"name\":\"{number}\",\"image\":\"{image}\"}}"
        )
        .unwrap();
    }
    fs::write(source.join("catalog.json"), text).unwrap();
    let store = Store::open(folder.path().join("catalogs")).unwrap();
    let origin = Origin {
        requested: "registry.example/catalog:v1".to_owned(),
        resolved: "registry.example/catalog@sha256:aa".to_owned(),
        unpacked_at: 7,
        verified: None,
    };
    let name = ValidCatalogName::new("c").unwrap();
    store.store(&name, &source, origin, 7, &|| false).unwrap();
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let options = Options {
        graphql: true,
        access: None,
    };
    router_with(Arc::new(store), metrics, &options)
}

async fn query(router: &Router, query: &str) -> Response<Body> {
    let body = serde_json::json!({ "query": query }).to_string();
    let request = Request::post("/catalogs/c/api/v1/graphql")
        .body(Body::from(body))
        .unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn read(response: Response<Body>) -> usize {
    response.into_body().collect().await.unwrap().to_bytes().len()
}

/// The clock advances while queries wait, which takes 20 s.
#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_take_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let router = api(&folder);
    read(query(&router, "{ larges { name } }").await).await;
    // First, because memory that large answers have freed would hide what these responses take.
    unread_projections(&router).await;
    unread_large_projections(&router).await;
    unread_answers_of_queries(&router).await;
}

async fn unread_answers_of_queries(router: &Router) {
    let aliases: String = (0..15).fold(String::new(), |text, n| format!("{text}a{n}:text "));
    let large = format!("{{ larges {{ {aliases} }} }}");
    let before = begin();
    let mut held = vec![query(router, &large).await];
    let one = growth(before);
    let refused = loop {
        let response = query(router, &large).await;
        if response.status() != StatusCode::OK {
            break response;
        }
        held.push(response);
        assert!(held.len() < 10, "nothing limits the answers");
    };
    let all = growth(before);
    assert!(one < ONE_QUERY, "one query took {one} KiB");
    assert!(all < ALL_QUERIES, "{} answers took {all} KiB", held.len());
    assert!(held.len() >= 4, "as many queries run at once");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));

    // What a client has read is free again, before it has read all.
    let mut slow = held.pop().unwrap().into_body();
    for _ in 0..25 * MIB / (64 * 1024) {
        let frame = slow.frame().await.unwrap().unwrap();
        assert!(frame.data_ref().unwrap().len() <= 64 * 1024);
    }
    let next = query(router, &large).await;
    assert_eq!(next.status(), StatusCode::OK);
    assert!(read(next).await > 25 * MIB);
}

async fn unread_projections(router: &Router) {
    let mut held = Vec::new();
    let before = begin();
    for number in 0..METAS {
        // Different selections, which no cache has.
        let path = format!("/catalogs/c/api/v1/metas?schema=small&exclude=x{number}");
        let request = Request::get(path).body(Body::empty()).unwrap();
        let mut body = router.clone().oneshot(request).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        let frame = body.frame().await.unwrap().unwrap();
        held.push((frame, body));
    }
    let all = growth(before);
    assert!(all < ALL_METAS, "{METAS} responses took {all} KiB");
}

async fn unread_large_projections(router: &Router) {
    let mut held = Vec::new();
    let mut refused = 0;
    let before = begin();
    let get = async |query: &str| {
        let request = Request::get(format!("/catalogs/c/api/v1/metas?{query}"));
        let request = request.body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    for number in 0..LARGE_METAS {
        let response = get(&format!("schema=large&exclude=x{number}")).await;
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            assert!(response.headers().contains_key("retry-after"));
            refused += 1;
            continue;
        }
        let mut body = response.into_body();
        held.push((body.frame().await.unwrap().unwrap(), body));
    }
    let all = growth(before);
    assert!(all < ALL_LARGE_METAS, "{} responses took {all} KiB", held.len());
    assert!(held.len() >= 8 && refused > 0, "{} were sent", held.len());
    // Small objects do not wait, nor do large ones for which there is memory again.
    assert_eq!(get("schema=small&fields=name").await.status(), StatusCode::OK);
    held.truncate(4);
    assert!(read(get("schema=large&exclude=y").await).await > 1_900_000);
}
