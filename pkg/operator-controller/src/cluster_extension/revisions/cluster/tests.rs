//! Revisions on a mocked API server.

use http::{Method, Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;

const SYSTEM: &str = "system";
/// An API server: method, path and body of a request in, status code and body of the answer out.
type Answers = fn(&Method, &str, &Value) -> (u16, Value);
/// Requests so far, as method and path.
type Requests = Arc<Mutex<Vec<String>>>;

/// Returns a store whose watch shows no revision, and the requests to it.
fn store(answers: Answers) -> (ClusterRevisions, Requests) {
    let requests = Requests::default();
    let asked = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = Arc::clone(&asked);
        async move {
            let (head, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
            let path = head.uri.path();
            asked.lock().push(format!("{} {path}", head.method));
            let (code, answer) = answers(&head.method, path, &body);
            let answer = Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, tower::BoxError>(answer?)
        }
    });
    (of(Client::new(service, "default")), requests)
}

/// Returns a store of this client whose watch shows no revision.
fn of(client: Client) -> ClusterRevisions {
    let (stores, mut writers) = Stores::new();
    for event in [Event::Init, Event::InitDone] {
        writers.revisions.apply_watcher_event(&event);
        stores.follow_revision(&event);
    }
    let secrets = SystemSecrets::new(client.clone(), SYSTEM);
    ClusterRevisions::new(client, SYSTEM.into(), secrets, Arc::new(stores))
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code}),
    )
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": name, "uid": uid})
}

fn revision() -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": "x-1", "labels": {keys::OWNER_NAME_LABEL: "x"}, "ownerReferences": [owner("ClusterExtension", "x", "2")]},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
    })
}

#[tokio::test]
async fn a_revision_that_exists_stays_and_is_listed() {
    let (store, requests) = store(|method, _, body| {
        if *method == Method::GET {
            return (
                200,
                json!({"metadata": {"resourceVersion": "9"}, "items": [revision()]}),
            );
        }
        assert_eq!(
            body["metadata"]["resourceVersion"], "1",
            "an apply changes what exists"
        );
        failure(409, "Conflict")
    });
    assert_eq!(store.list(Some("x")).await.unwrap(), []);
    assert_eq!(requests.lock().len(), 0, "the watch answers");
    let created = store
        .create("creating x-1".to_owned(), revision(), Vec::new())
        .await;
    assert!(
        matches!(&created, Err(CallError::Exists { what }) if what == "creating x-1"),
        "{created:?}"
    );
    let listed = store.list(Some("x")).await.unwrap();
    assert_eq!(listed.len(), 1, "the watch is behind: {:?}", requests.lock());
}

#[tokio::test]
async fn a_late_process_spares_the_secret_of_a_newer_extension() {
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "x-1-aa"}})).unwrap();
    // The Secret belongs to an extension with another uid; the extension of the pass exists, or is gone.
    for (answers, deletes) in [(former as Answers, true), (newer as Answers, false)] {
        let (store, requests) = store(answers);
        let created = store
            .create("creating x-1".to_owned(), revision(), vec![secret.clone()])
            .await;
        assert!(created.is_err());
        let deleted = requests
            .lock()
            .iter()
            .any(|request| request.starts_with("DELETE"));
        assert_eq!(deleted, deletes, "{:?}", requests.lock());
    }
}

fn former(method: &Method, path: &str, body: &Value) -> (u16, Value) {
    among("2", method, path, body)
}

fn newer(method: &Method, path: &str, body: &Value) -> (u16, Value) {
    among("3", method, path, body)
}

/// Answers for an extension with this uid, and a Secret of another one.
fn among(extension: &str, method: &Method, path: &str, _: &Value) -> (u16, Value) {
    match *method {
        Method::POST => failure(409, "AlreadyExists"),
        Method::GET if path.contains("/secrets/") => (
            200,
            json!({"metadata": {"name": "x-1-aa", "uid": "s", "resourceVersion": "5",
                "ownerReferences": [owner("ClusterExtension", "x", if extension == "2" { "1" } else { "3" })]}}),
        ),
        Method::GET => (200, json!({"metadata": {"name": "x", "uid": extension}})),
        _ => (200, json!({"kind": "Status", "status": "Success"})),
    }
}

#[test]
fn a_secret_of_another_extension_is_told_by_the_uid_of_its_owner() {
    let metadata = |owners: &[Value]| json!({"metadata": {"name": "x-1-aa", "ownerReferences": owners}});
    let wanted: Secret = serde_json::from_value(metadata(&[owner("ClusterExtension", "x", "2")])).unwrap();
    let another =
        |owners: &[Value]| belongs_to_another(&wanted, &serde_json::from_value(metadata(owners)).unwrap());
    assert!(another(&[owner("ClusterExtension", "x", "1")]));
    assert!(
        !another(&[owner("ClusterExtension", "x", "2")]),
        "an interrupted attempt"
    );
    assert!(
        !another(&[owner("ClusterObjectSet", "x-1", "3")]),
        "the revision owns it"
    );
    assert!(!another(&[]), "an earlier release of the controller set no owner");
}

fn secret_named(name: &str) -> Secret {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn a_secret_of_a_revision_that_is_gone_is_replaced() {
    // The Secret belongs to a revision that is gone, to one that exists, or the garbage collector deletes it just now.
    for (answers, expected) in [
        (of_gone as Answers, vec!["DELETE", "POST"]),
        (of_present as Answers, vec!["PATCH"]),
        (collected as Answers, vec!["POST"]),
    ] {
        let (store, requests) = store(answers);
        let secrets = vec![secret_named("x-1-aa")];
        let _ = store.create("creating x-1".to_owned(), revision(), secrets).await;
        let requests = requests.lock();
        let writes: Vec<&str> = requests
            .iter()
            .filter_map(|request| request.split(' ').next())
            .filter(|method| *method != "GET")
            .collect();
        assert_eq!(writes[0], "POST");
        assert_eq!(writes[1..], expected, "{requests:?}");
    }
}

fn of_gone(method: &Method, path: &str, body: &Value) -> (u16, Value) {
    of_revision("gone", method, path, body)
}

fn of_present(method: &Method, path: &str, body: &Value) -> (u16, Value) {
    of_revision("present", method, path, body)
}

fn collected(method: &Method, path: &str, body: &Value) -> (u16, Value) {
    match *method {
        Method::GET => failure(404, "NotFound"),
        _ => of_revision("gone", method, path, body),
    }
}

/// Answers for a Secret of the revision with this uid; the revision of its name has the uid `present`.
fn of_revision(uid: &str, method: &Method, path: &str, body: &Value) -> (u16, Value) {
    match *method {
        Method::POST => failure(409, "AlreadyExists"),
        Method::GET if path.contains("/secrets/") => (
            200,
            json!({"metadata": {"name": "x-1-aa", "uid": "s", "resourceVersion": "5",
                "ownerReferences": [owner("ClusterObjectSet", "x-1", uid)]}}),
        ),
        Method::GET if path.contains("/clusterextensions/") => {
            (200, json!({"metadata": {"name": "x", "uid": "2"}}))
        }
        Method::GET => (200, json!({"metadata": {"name": "x-1", "uid": "present"}})),
        Method::PATCH => (200, body.clone()),
        _ => (200, json!({"kind": "Status", "status": "Success"})),
    }
}

#[tokio::test]
async fn no_secret_is_left_to_the_garbage_collector() {
    let (store, requests) = store(|method, path, _| {
        let secret =
            |name: &str, owners: &[Value]| json!({"metadata": {"name": name, "ownerReferences": owners}});
        let items = [
            secret("of-revision", &[owner("ClusterObjectSet", "x-1", "1")]),
            secret("of-extension", &[owner("ClusterExtension", "x", "2")]),
            secret("of-earlier-release", &[]),
        ];
        match *method {
            Method::GET if path.contains("/clusterextensions/") => {
                (200, json!({"metadata": {"name": "x", "uid": "2"}}))
            }
            Method::GET => (200, json!({"metadata": {"resourceVersion": "9"}, "items": items})),
            _ => (200, json!({"kind": "Status", "status": "Success"})),
        }
    });
    store.clean("x", Some("2")).await.unwrap();
    let secrets = format!("/api/v1/namespaces/{SYSTEM}/secrets");
    let reads = [
        format!("GET {secrets}"),
        "GET /apis/olm.operatorframework.io/v1/clusterextensions/x".to_owned(),
    ];
    let deleted = ["of-revision", "of-extension", "of-earlier-release"];
    let deletions = deleted.map(|name| format!("DELETE {secrets}/{name}"));
    assert_eq!(*requests.lock(), [&reads[..], &deletions].concat());

    // A late process has removed a former extension, and the Secrets may be those of the new one.
    requests.lock().clear();
    store.clean("x", Some("1")).await.unwrap();
    assert_eq!(*requests.lock(), reads);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_the_watch_does_not_show_yet_is_not_repeated() {
    let (store, requests) = store(|_, _, _| (200, json!({"kind": "Status", "status": "Success"})));
    let delete = async |uid: Option<&str>| {
        let uid = uid.map(ToOwned::to_owned);
        store.delete("deleting x-1".to_owned(), "x-1", uid).await.unwrap();
        requests.lock().len()
    };
    assert_eq!(delete(Some("1")).await, 1);
    assert_eq!(delete(Some("1")).await, 1);
    assert_eq!(delete(Some("2")).await, 2, "a new revision of this name");
    assert_eq!(delete(None).await, 3);
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!(delete(Some("1")).await, 4, "the API server was restored");
}

#[tokio::test]
async fn a_deletion_that_fails_is_repeated() {
    let (store, requests) = store(|_, _, _| failure(500, "InternalError"));
    for sent in 1..=2 {
        let uid = Some("1".to_owned());
        assert!(store.delete("deleting x-1".to_owned(), "x-1", uid).await.is_err());
        assert_eq!(requests.lock().len(), sent);
    }
}

#[tokio::test]
async fn secrets_are_created_side_by_side_and_before_their_revision() {
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let requests = Requests::default();
    let (asked, barrier) = (Arc::clone(&requests), Arc::clone(&both));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (asked, barrier) = (Arc::clone(&asked), Arc::clone(&barrier));
        async move {
            let (head, body) = request.into_parts();
            if head.method == Method::POST {
                barrier.wait().await;
            }
            asked.lock().push(head.method.to_string());
            let answer = Response::builder().body(Body::from(body.collect_bytes().await?));
            Ok::<_, tower::BoxError>(answer?)
        }
    });
    let store = of(Client::new(service, "default"));
    let secrets = vec![secret_named("x-1-aa"), secret_named("x-1-bb")];
    store
        .create("creating x-1".to_owned(), revision(), secrets)
        .await
        .unwrap();
    assert_eq!(*requests.lock(), ["POST", "POST", "PATCH"]);
}
