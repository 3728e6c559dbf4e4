use std::{
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{Router, middleware, routing::get};
use http::HeaderValue;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::{BoxError, ServiceExt as _};

use super::*;

/// Duration of one review.
const REVIEW: Duration = Duration::from_millis(50);
/// Maximum duration of an authorization during a flood: less than half the time that its bogus tokens take one by
/// one.
const MAX_WAIT: Duration = Duration::from_millis(1500);

#[test]
fn only_bearer_tokens_count() {
    let headers = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    };
    assert_eq!(bearer_token(&headers("Bearer abc")), Some("abc"));
    assert_eq!(bearer_token(&headers("bearer abc")), Some("abc"));
    assert_eq!(bearer_token(&headers("Basic abc")), None);
    assert_eq!(bearer_token(&headers("Bearer ")), None);
    assert_eq!(bearer_token(&HeaderMap::new()), None);
}

/// Returns an API server that accepts tokens beginning with `good`, and counts token reviews.
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

/// Authorizes a token for a path; returns the result and its duration.
async fn authorize(
    access: &Access,
    peer: Peer,
    token: &str,
    path: &str,
) -> (Result<Decision, AccessError>, Duration) {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::AUTHORIZATION,
        HeaderValue::from_str(&format!("Bearer {token}")).unwrap(),
    );
    let start = Instant::now();
    let decision = access.authorize(Some(peer), &headers, "get", path).await;
    (decision, start.elapsed())
}

/// Sends bogus tokens, several hundred at a time, until it is dropped.
fn flood(access: &Access, peer: Peer) -> tokio::task::JoinSet<()> {
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..300 {
        let access = access.clone();
        flood.spawn(async move {
            for round in 0.. {
                let token = format!("bogus-{number}-{round}");
                if authorize(&access, peer, &token, "/").await.0.is_err() {
                    sleep(REVIEW / 10).await;
                }
            }
        });
    }
    flood
}

#[tokio::test]
async fn a_refusal_names_the_scheme_of_authentication() {
    let check = middleware::from_fn_with_state(Access::new(api(Arc::default())), check);
    let router = Router::new().route("/", get(async || "")).route_layer(check);
    let request = http::Request::get("/").body(axum::body::Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
}

#[tokio::test]
async fn bogus_tokens_do_not_delay_other_clients() {
    let access = Access::new(api(Arc::default()));
    let _flood = flood(&access, client(1));
    sleep(REVIEW * 4).await;
    for round in 0..5 {
        let (decision, took) = authorize(&access, client(2), &format!("good-{round}"), "/").await;
        assert_eq!(decision.unwrap(), Decision::Allowed);
        assert!(took < MAX_WAIT, "round {round} took {took:?}");
    }
}

#[tokio::test]
async fn a_valid_token_does_not_wait_for_bogus_ones_of_its_address() {
    let access = Access::new(api(Arc::default()));
    assert_eq!(
        authorize(&access, client(1), "good", "/").await.0.unwrap(),
        Decision::Allowed
    );
    let _flood = flood(&access, client(1));
    sleep(REVIEW * 4).await;
    for path in ["/a", "/b", "/c"] {
        let (decision, took) = authorize(&access, client(1), "good", path).await;
        assert_eq!(decision.unwrap(), Decision::Allowed);
        assert!(took < MAX_WAIT, "took {took:?}");
    }
}

#[tokio::test]
async fn an_unknown_token_is_reviewed_once() {
    let reviews = Arc::new(AtomicUsize::new(0));
    let access = Access::new(api(reviews.clone()));
    let paths = ["/a", "/b", "/c", "/a"].map(|path| authorize(&access, client(1), "bogus", path));
    for (decision, _) in futures::future::join_all(paths).await {
        assert_eq!(decision.unwrap(), Decision::Unauthenticated);
    }
    // Two reviews may start before the first one ends.
    assert!(reviews.load(Ordering::Relaxed) <= 2, "{reviews:?}");
    let before = reviews.load(Ordering::Relaxed);
    let (decision, _) = authorize(&access, client(2), "bogus", "/d").await;
    assert_eq!(decision.unwrap(), Decision::Unauthenticated);
    assert_eq!(reviews.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn a_client_with_too_many_tokens_is_refused() {
    let access = Access::new(api(Arc::default()));
    let tokens: Vec<String> = (0..100).map(|number| format!("bogus-{number}")).collect();
    let asked = tokens
        .iter()
        .map(|token| authorize(&access, client(1), token, "/"));
    let refused = futures::future::join_all(asked)
        .await
        .into_iter()
        .filter_map(|(decision, _)| decision.err())
        .filter(|error| error.refusal() == Some((StatusCode::TOO_MANY_REQUESTS, "1")))
        .count();
    assert_eq!(refused, 100 - 32);
}

#[tokio::test]
async fn a_token_is_authenticated_anew_each_time_and_a_refused_one_is_remembered() {
    let reviews = Arc::new(AtomicUsize::new(0));
    let access = Access::new(api(reviews.clone()));
    for round in 1..=2 {
        let user = access.authenticate(Some(client(1)), "good").await.unwrap();
        let user = user.expect("a user");
        assert_eq!(user.username.as_deref(), Some("reader"));
        assert!(access.may(&user, "get", "/a").await.unwrap());
        assert_eq!(reviews.load(Ordering::Relaxed), round);
    }
    for _ in 0..2 {
        let user = access.authenticate(Some(client(1)), "bogus").await.unwrap();
        assert!(user.is_none());
        assert_eq!(reviews.load(Ordering::Relaxed), 3);
    }
}
