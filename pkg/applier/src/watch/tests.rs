//! Watches against a mocked API server, with the runtime's clock paused: the times are exact.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use kube::client::Body;
use kube::core::GroupVersionKind;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::*;

/// Answer of the API server to lists. Watches never report a change.
#[derive(Clone, Copy, PartialEq)]
enum Lists {
    Answered,
    Failing,
    Silent,
}

async fn answer(lists: watch::Receiver<Lists>, request: Request<Body>) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default();
    assert!(
        query.contains("labelSelector=olm.operatorframework.io%2Fowner-name"),
        "only managed objects are watched: {query}"
    );
    let now = *lists.borrow();
    let (code, body) = match now {
        Lists::Failing => {
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 500, "message": "boom"});
            (500, status)
        }
        Lists::Answered if !query.contains("watch=true") => {
            assert!(query.contains("limit=100"), "{query}");
            let items =
                json!([{"metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "4"}}]);
            let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                "metadata": {"resourceVersion": "5"}, "items": items});
            (200, list)
        }
        Lists::Answered => {
            // The watch ends when the API server starts to fail.
            let mut lists = lists;
            let _ = lists.wait_for(|lists| *lists != Lists::Answered).await;
            (200, json!(null))
        }
        Lists::Silent => std::future::pending().await,
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    Response::builder().status(code).body(Body::from(body)).unwrap()
}

/// Watches one kind on behalf of revision `r`.
fn watches(
    lists: &watch::Sender<Lists>,
) -> (
    Watches,
    Kind,
    impl Stream<Item = ObjectRef<ClusterObjectSet>> + Unpin,
) {
    let lists = lists.subscribe();
    let service = tower::service_fn(move |request| {
        let lists = lists.clone();
        async move { Ok::<_, std::io::Error>(answer(lists, request).await) }
    });
    let (watches, triggers) = Watches::new(Client::new(service, "n"), WatchTiming::default());
    let kind = (String::new(), "v1".to_owned(), "ConfigMap".to_owned());
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    watches.need(&revision(), &kind, &resource);
    (watches, kind, Box::pin(triggers))
}

fn revision() -> Identity {
    Identity {
        name: "r".to_owned(),
        uid: "1".to_owned(),
        number: 1,
        owner_name: "e".to_owned(),
        siblings: Vec::new(),
    }
}

/// Waits for a trigger of revision `r`; returns the seconds since `start`.
async fn triggered(
    triggers: &mut (impl Stream<Item = ObjectRef<ClusterObjectSet>> + Unpin),
    start: Instant,
) -> u64 {
    let revision = timeout(Duration::from_hours(1), triggers.next())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(revision.name, "r");
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_reported_after_the_patience_and_until_it_settles() {
    let lists = watch::Sender::new(Lists::Failing);
    let start = Instant::now();
    let (watches, kind, mut triggers) = watches(&lists);
    let WatchTiming {
        patience,
        settle,
        interval,
        ..
    } = WatchTiming::default();
    assert_eq!(triggered(&mut triggers, start).await, patience.as_secs());
    let [(_, fault)] = watches.failing(Some("1")).try_into().unwrap();
    assert_eq!(
        (fault.cause, fault.text.contains("boom")),
        (Cause::Unavailable, true)
    );
    assert!(!watches.is_reliable(&kind) && watches.failing(Some("2")).is_empty());

    // The next list comes within the interval; the report ends after the watch has worked for a while.
    let recovery = Instant::now();
    lists.send_replace(Lists::Answered);
    let took = Duration::from_secs(triggered(&mut triggers, recovery).await);
    assert!((settle..=settle + interval).contains(&took), "{took:?}");
    assert!(watches.is_reliable(&kind) && watches.failing(None).is_empty());
    assert!(matches!(watches.state(&kind, "n", "a"), WatchState::Present(_)));
    assert!(matches!(watches.state(&kind, "n", "b"), WatchState::NeverSeen(_)));

    watches.release("1");
    assert_eq!(watches.state(&kind, "n", "a"), WatchState::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_is_a_failure() {
    let lists = watch::Sender::new(Lists::Silent);
    let start = Instant::now();
    let (watches, kind, mut triggers) = watches(&lists);
    assert_eq!(watches.state(&kind, "n", "a"), WatchState::Unknown);
    assert_eq!(
        triggered(&mut triggers, start).await,
        WatchTiming::default().patience.as_secs()
    );
    assert_eq!(watches.failing(None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_short_fault_is_not_reported() {
    let lists = watch::Sender::new(Lists::Answered);
    let (watches, kind, mut triggers) = watches(&lists);
    while !watches.is_reliable(&kind) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    lists.send_replace(Lists::Failing);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(watches.is_reliable(&kind), "the cache stays in use");
    let recovery = Instant::now();
    lists.send_replace(Lists::Answered);
    // The new list does not show what was created and deleted in between, so the revision is looked at.
    let relisted = triggered(&mut triggers, recovery).await;
    assert!(relisted < WatchTiming::default().patience.as_secs(), "{relisted}");
    assert!(watches.is_reliable(&kind) && watches.failing(None).is_empty());
}

/// Returns true if nothing is triggered any more.
async fn is_quiet(triggers: &mut (impl Stream<Item = ObjectRef<ClusterObjectSet>> + Unpin)) -> bool {
    timeout(Duration::from_hours(1), triggers.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn what_the_first_list_lacks_of_a_revision_was_deleted() {
    let lists = watch::Sender::new(Lists::Answered);
    let (watches, kind, mut triggers) = watches(&lists);
    // The list starts when this test waits for the first time.
    watches.expect(&revision(), &kind, "n", "a");
    watches.expect(&revision(), &kind, "n", "b");
    let start = Instant::now();
    let settle = WatchTiming::default().settle.as_secs();
    assert_eq!(triggered(&mut triggers, start).await, settle);
    assert!(matches!(watches.state(&kind, "n", "a"), WatchState::Present(_)));
    assert_eq!(watches.state(&kind, "n", "b"), WatchState::Deleted);
    watches.expect(&revision(), &kind, "n", "c");
    assert!(is_quiet(&mut triggers).await, "later deletions have events");
}

#[tokio::test(start_paused = true)]
async fn a_first_list_with_all_objects_triggers_nobody() {
    let lists = watch::Sender::new(Lists::Answered);
    let (watches, kind, mut triggers) = watches(&lists);
    watches.expect(&revision(), &kind, "n", "a");
    assert!(is_quiet(&mut triggers).await);
    assert!(watches.is_reliable(&kind));
}

#[tokio::test(start_paused = true)]
async fn a_released_revision_expects_nothing() {
    let lists = watch::Sender::new(Lists::Answered);
    let (watches, kind, mut triggers) = watches(&lists);
    let other = Identity {
        name: "s".to_owned(),
        uid: "2".to_owned(),
        ..revision()
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    watches.need(&other, &kind, &resource);
    watches.expect(&other, &kind, "n", "b");
    watches.release("2");
    assert!(is_quiet(&mut triggers).await);
}

#[test]
fn an_object_counts_for_the_revision_that_controls_it() {
    let object = |name: &str, owners: &[(&str, bool)]| {
        let owners: Vec<_> = owners
            .iter()
            .map(|(name, controller)| {
                json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "name": name, "uid": name,
                    "controller": controller})
            })
            .collect();
        let meta = json!({"name": name, "ownerReferences": owners});
        serde_json::from_value::<ObjectMeta>(meta).unwrap()
    };
    let cache = Mutex::new(Cache::default());
    let counts = || {
        let mut counts: Vec<_> = cache.lock().controlled.clone().into_iter().collect();
        counts.sort();
        counts
    };
    let count = |name: &str, count: usize| (name.to_owned(), count);
    let config_map = (String::new(), "v1".to_owned(), "ConfigMap".to_owned());
    let record = |object: &ObjectMeta| record(&cache, &config_map, object);
    let (_, triggered) = record(&object("a", &[("e-1", false), ("e-2", true)]));
    assert_eq!(triggered, ["e-2", "e-1"]);
    record(&object("b", &[("e-2", true)]));
    record(&object("c", &[("e-1", false)]));
    assert_eq!(counts(), [count("e-2", 2)]);
    record(&object("b", &[("e-2", false), ("e-3", true)]));
    assert_eq!(counts(), [count("e-2", 1), count("e-3", 1)]);
    let gone = cache.lock().remove(&key_of(&object("a", &[])));
    assert_eq!(gone, ["e-2", "e-1"]);
    assert_eq!(counts(), [count("e-3", 1)]);
    // A list without the others.
    cache.lock().finish_list(&HashSet::new());
    assert_eq!(counts(), []);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_deletion_is_no_creation_whose_event_is_to_come() {
    let key = |name: &str| ("n".to_owned(), name.to_owned());
    let mut cache = Cache {
        synced: Some(now()),
        ..Cache::default()
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let written = now();
    cache.record_deleted(key("a"));
    for other in 1..=MAX_DELETED {
        assert!(cache.synced < Some(written) && cache.deleted.contains(&key("a")));
        cache.record_deleted(key(&other.to_string()));
    }
    assert!(!cache.deleted.contains(&key("a")));
    assert!(
        cache.synced >= Some(written),
        "the object counts as never seen since"
    );

    cache.synced = None;
    for other in 0..=MAX_DELETED {
        cache.record_deleted(key(&other.to_string()));
    }
    assert_eq!(cache.synced, None, "no list is complete");
}

#[test]
fn fingerprints_follow_the_version_where_the_generation_does_not_change() {
    let follows = |group: &str, kind: &str| {
        let kind = (group.to_owned(), "v1".to_owned(), kind.to_owned());
        let fingerprint = |version: &str| {
            let meta = ObjectMeta {
                generation: Some(1),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            };
            object_version(&kind, &meta).fingerprint
        };
        fingerprint("1") != fingerprint("2")
    };
    assert!(follows("scheduling.k8s.io", "PriorityClass"));
    assert!(!follows("apps", "Deployment"));
    assert!(!follows("example.com", "PriorityClass"));
}
