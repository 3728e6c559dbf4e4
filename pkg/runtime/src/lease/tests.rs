use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::*;

/// API server with one lease. Lists answer `403` unless `watchable`; a watch never reports a change, and events are never
/// answered.
#[derive(Clone)]
struct FakeApi {
    lease: Arc<Mutex<Value>>,
    reads: Arc<AtomicUsize>,
    watchable: bool,
    /// Number of writes that succeed before all others fail.
    writable: Arc<AtomicUsize>,
    /// Time of the last successful write.
    written: Arc<Mutex<Option<Instant>>>,
    /// Time between a write and its answer.
    write_takes: Duration,
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
            writable: Arc::new(AtomicUsize::new(usize::MAX)),
            written: Arc::default(),
            write_takes: Duration::ZERO,
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
                let answer = self.write(serde_json::from_slice(&sent).unwrap());
                sleep(self.write_takes).await;
                answer
            }
            ("POST", _) => std::future::pending().await,
            // Lists, unless watchable.
            _ => (403, forbidden),
        };
        let response = http::Response::builder().status(code);
        response.body(Body::from(body.to_string().into_bytes())).unwrap()
    }

    /// Replaces the lease; returns the status and body of the answer.
    fn write(&self, sent: Value) -> (u16, Value) {
        let status = |code: u16, reason: &str| {
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
                "reason": reason, "message": "no"});
            (code, status)
        };
        let counted = self
            .writable
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if counted.is_err() {
            return status(500, "InternalError");
        }
        let mut lease = self.lease.lock();
        if sent["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
            return status(409, "Conflict");
        }
        let version: u64 = sent["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        *lease = sent;
        lease["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        *self.written.lock() = Some(Instant::now());
        (200, lease.clone())
    }

    fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request| {
            let api = api.clone();
            async move { Ok::<_, std::io::Error>(api.answer(request).await) }
        });
        Client::new(service, "n")
    }

    /// Waits for the lease; returns the time that it took.
    async fn acquire(&self) -> Duration {
        let start = Instant::now();
        let led = run_when_leader(
            self.client(),
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

    /// Leads with the default times, and with work that ignores its token, until the lease is lost. Returns the time of the
    /// last action of a task that the work spawned, like the reconciles of kube.
    async fn lead_until_lost(&self) -> Instant {
        let last = Arc::new(Mutex::new(Instant::now()));
        let led = run_when_leader(
            self.client(),
            Some(LeaseConfig::new("n", "lock")),
            CancellationToken::new(),
            async |_| {
                let last = last.clone();
                let _reconciles = AbortOnDropHandle::new(tokio::spawn(async move {
                    loop {
                        *last.lock() = Instant::now();
                        sleep(Duration::from_millis(10)).await;
                    }
                }));
                std::future::pending::<()>().await;
            },
        );
        assert!(matches!(led.await, Err(LeaseError::Lost { .. })));
        *last.lock()
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

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_does_nothing_once_others_may_lead() {
    // The answer of the acquiring write, and each failure, take their time: others count from the write.
    let api = FakeApi {
        writable: Arc::new(AtomicUsize::new(1)),
        write_takes: Duration::from_millis(3500),
        ..FakeApi::held_by("", true)
    };
    let last = api.lead_until_lost().await;
    let led = last - api.written.lock().unwrap();
    assert!(led <= LEASE_DURATION, "it acted {led:?} after the last renewal");
    assert!(led > RENEW_DEADLINE, "the work had {led:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_taken_stops_at_once() {
    let api = FakeApi::held_by("", true);
    let theft = async {
        sleep(Duration::from_secs(7)).await;
        api.set_holder("thief", "100");
        Instant::now()
    };
    let (last, stolen) = tokio::join!(api.lead_until_lost(), theft);
    assert!(
        last > stolen && last - stolen <= RETRY_PERIOD,
        "{:?}",
        last - stolen
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_acquires_the_lease_during_shutdown_is_released() {
    let api = FakeApi {
        write_takes: Duration::from_secs(2),
        ..FakeApi::held_by("", true)
    };
    let shutdown = CancellationToken::new();
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        assert_ne!(api.lease.lock()["spec"]["holderIdentity"], "");
        shutdown.cancel();
    };
    let config = Some(LeaseConfig::new("n", "lock"));
    let (led, ()) = tokio::join!(
        run_when_leader(api.client(), config, shutdown.clone(), async |_| ()),
        stop
    );
    assert!(led.unwrap().is_none(), "the work does not run");
    assert_eq!(api.lease.lock()["spec"]["holderIdentity"], "");
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
