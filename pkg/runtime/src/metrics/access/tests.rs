use std::{
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

use http::HeaderValue;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::BoxError;

use super::*;

/// The time that one review takes.
const REVIEW: Duration = Duration::from_millis(50);
/// The time that an answer may take during a flood: less than half of what its bogus tokens take one after the other.
const SOON: Duration = Duration::from_millis(1500);

#[test]
fn only_bearer_tokens_count() {
    let headers = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    };
    assert_eq!(bearer(&headers("Bearer abc")), Some("abc"));
    assert_eq!(bearer(&headers("bearer abc")), Some("abc"));
    assert_eq!(bearer(&headers("Basic abc")), None);
    assert_eq!(bearer(&headers("Bearer ")), None);
    assert_eq!(bearer(&HeaderMap::new()), None);
}

/// An API server that knows tokens that begin with `good`, and counts reviews of tokens.
fn api(reviews: Arc<AtomicUsize>) -> Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let reviews = reviews.clone();
        async move {
            let body = request.into_body().collect_bytes().await?;
            let mut review: Value = serde_json::from_slice(&body)?;
            sleep(REVIEW).await;
            if let Some(token) = review["spec"]["token"].as_str() {
                reviews.fetch_add(1, Ordering::Relaxed);
                let good = token.starts_with("good");
                review["status"] = json!({"authenticated": good, "user": {"username": "reader"}});
            } else {
                review["status"] = json!({"allowed": true});
            }
            Ok::<_, BoxError>(http::Response::new(Body::from(serde_json::to_vec(&review)?)))
        }
    });
    Client::new(service, "default")
}

fn client(last: u8) -> Peer {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)).into()
}

/// Asks for a path with a token; returns the verdict and the time it took.
async fn ask(
    access: &Access,
    peer: Peer,
    token: &str,
    path: &str,
) -> (Result<Verdict, AccessError>, Duration) {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::AUTHORIZATION,
        HeaderValue::from_str(&format!("Bearer {token}")).unwrap(),
    );
    let began = Instant::now();
    let verdict = access.verdict(Some(peer), &headers, "get", path).await;
    (verdict, began.elapsed())
}

/// Brings bogus tokens, several hundred at any time, until it is dropped.
fn flood(access: &Access, peer: Peer) -> tokio::task::JoinSet<()> {
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..300 {
        let access = access.clone();
        flood.spawn(async move {
            for round in 0.. {
                let token = format!("bogus-{number}-{round}");
                if ask(&access, peer, &token, "/").await.0.is_err() {
                    sleep(REVIEW / 10).await;
                }
            }
        });
    }
    flood
}

#[tokio::test]
async fn bogus_tokens_of_a_client_keep_no_other_client_waiting() {
    let access = Access::new(api(Arc::default()));
    let _flood = flood(&access, client(1));
    sleep(REVIEW * 4).await;
    for round in 0..5 {
        let (verdict, took) = ask(&access, client(2), &format!("good-{round}"), "/").await;
        assert_eq!(verdict.unwrap(), Verdict::Allowed);
        assert!(took < SOON, "round {round} took {took:?}");
    }
}

#[tokio::test]
async fn a_token_that_was_good_waits_for_no_bogus_one_of_its_own_address() {
    let access = Access::new(api(Arc::default()));
    assert_eq!(
        ask(&access, client(1), "good", "/").await.0.unwrap(),
        Verdict::Allowed
    );
    let _flood = flood(&access, client(1));
    sleep(REVIEW * 4).await;
    for path in ["/a", "/b", "/c"] {
        let (verdict, took) = ask(&access, client(1), "good", path).await;
        assert_eq!(verdict.unwrap(), Verdict::Allowed);
        assert!(took < SOON, "took {took:?}");
    }
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_asked_for_once() {
    let reviews = Arc::new(AtomicUsize::new(0));
    let access = Access::new(api(reviews.clone()));
    let paths = ["/a", "/b", "/c", "/a"].map(|path| ask(&access, client(1), "bogus", path));
    for (verdict, _) in futures::future::join_all(paths).await {
        assert_eq!(verdict.unwrap(), Verdict::Unauthenticated);
    }
    // Two may begin before the first is answered.
    assert!(reviews.load(Ordering::Relaxed) <= 2, "{reviews:?}");
    let before = reviews.load(Ordering::Relaxed);
    let (verdict, _) = ask(&access, client(2), "bogus", "/d").await;
    assert_eq!(verdict.unwrap(), Verdict::Unauthenticated);
    assert_eq!(reviews.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn a_client_with_too_many_tokens_is_told_to_come_back() {
    let access = Access::new(api(Arc::default()));
    let tokens: Vec<String> = (0..100).map(|number| format!("bogus-{number}")).collect();
    let asked = tokens.iter().map(|token| ask(&access, client(1), token, "/"));
    let refused = futures::future::join_all(asked)
        .await
        .into_iter()
        .filter_map(|(verdict, _)| verdict.err())
        .filter(|error| error.refusal() == Some((StatusCode::TOO_MANY_REQUESTS, "1")))
        .count();
    assert_eq!(refused, 100 - 32);
}
