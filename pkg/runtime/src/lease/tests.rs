use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::*;

/// API server with one lease. Lists answer `403` unless `watchable`; a watch never reports a change.
#[derive(Clone)]
struct FakeApi {
    lease: Arc<Mutex<Value>>,
    reads: Arc<AtomicUsize>,
    watchable: bool,
}

impl FakeApi {
    fn held_by(holder: &str, watchable: bool) -> Self {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "lock", "namespace": "n", "uid": "u", "resourceVersion": "1"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1}});
        Self {
            lease: Arc::new(Mutex::new(lease)),
            reads: Arc::default(),
            watchable,
        }
    }

    fn set_holder(&self, holder: &str, version: &str) {
        let mut lease = self.lease.lock();
        lease["spec"]["holderIdentity"] = json!(holder);
        lease["metadata"]["resourceVersion"] = json!(version);
    }

    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let single = request.uri().path().ends_with("/lock");
        let forbidden = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": "no"});
        let (code, body) = match (request.method().as_str(), single) {
            ("GET", true) => {
                self.reads.fetch_add(1, Ordering::SeqCst);
                (200, self.lease.lock().clone())
            }
            ("GET", false) if self.watchable && query.contains("watch=true") => std::future::pending().await,
            ("GET", false) if self.watchable => {
                let list = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList",
                    "metadata": {"resourceVersion": "1"}, "items": [self.lease.lock().clone()]});
                (200, list)
            }
            ("PUT", true) => {
                let sent = request.into_body().collect_bytes().await.unwrap();
                let sent: Value = serde_json::from_slice(&sent).unwrap();
                let mut lease = self.lease.lock();
                assert_eq!(
                    sent["metadata"]["resourceVersion"],
                    lease["metadata"]["resourceVersion"]
                );
                *lease = sent;
                lease["metadata"]["resourceVersion"] = json!("9");
                (200, lease.clone())
            }
            // Lists, unless watchable, and events.
            _ => (403, forbidden),
        };
        let response = http::Response::builder().status(code);
        response.body(Body::from(body.to_string().into_bytes())).unwrap()
    }

    /// Waits for the lease; returns the time that it took.
    async fn acquire(&self) -> Duration {
        let api = self.clone();
        let service = tower::service_fn(move |request| {
            let api = api.clone();
            async move { Ok::<_, std::io::Error>(api.answer(request).await) }
        });
        let (client, start) = (Client::new(service, "n"), Instant::now());
        let led = run_when_leader(
            client,
            Some(LeaseConfig {
                lease_duration: Duration::from_secs(1),
                retry_period: Duration::from_millis(50),
                ..LeaseConfig::new("n", "lock")
            }),
            CancellationToken::new(),
            async |_| start.elapsed(),
        );
        led.await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_succeeded_when_the_lease_expires_and_not_before() {
    let api = FakeApi::held_by("dead", true);
    let took = api.acquire().await;
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert_eq!(
        api.reads.load(Ordering::SeqCst),
        2,
        "a watched lease is not polled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_watched_is_polled() {
    let api = FakeApi::held_by("leader", false);
    let release = async {
        for version in 2..10 {
            sleep(Duration::from_millis(200)).await;
            api.set_holder("leader", &version.to_string());
        }
        let held = api.reads.load(Ordering::SeqCst);
        api.set_holder("", "10");
        held
    };
    let (took, held) = tokio::join!(api.acquire(), release);
    assert!(
        took >= Duration::from_millis(1600),
        "a renewed lease was taken after {took:?}"
    );
    assert!(held > 3, "{held} reads");
}

#[test]
fn identities_differ_and_look_like_upstreams() {
    let (a, b) = (identity(), identity());
    assert_ne!(a, b);
    let uuid = a.rsplit_once('_').unwrap().1;
    assert_eq!(uuid.len(), 36);
    assert_eq!(uuid.as_bytes()[14], b'4');
    assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
}
