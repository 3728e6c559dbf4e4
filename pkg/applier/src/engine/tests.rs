//! Engine and watches against a mocked API server that stores objects, with the runtime's clock paused.

use std::collections::BTreeMap;

use futures::{Stream, StreamExt as _};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::runtime::reflector::ObjectRef;
use olm_api::{ClusterObjectSet, CollisionProtection, keys};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::watch::WatchTiming;

/// The API server: `ConfigMap`s of namespace `n` by name, and the requests so far.
#[derive(Default)]
struct Server {
    objects: BTreeMap<String, Value>,
    requests: Vec<String>,
    /// Number of writes so far.
    writes: usize,
    /// True if it serves `ConfigMap` as a cluster-scoped kind.
    cluster_scoped: bool,
    /// Number of discoveries of the kind so far.
    discoveries: usize,
    /// True if it has the extension `x`, which is not being deleted.
    extension: bool,
    /// True if the revision is being deleted.
    revision_deleted: bool,
}

impl Server {
    /// Reads, applies, changes or deletes one object. As on a real API server, an apply that changes nothing keeps the resource version.
    fn object(&mut self, method: &Method, name: &str, body: &[u8], merge: bool) -> (u16, Value) {
        self.requests.push(format!(
            "{} {name}",
            if merge { "MERGE" } else { method.as_str() }
        ));
        if *method == Method::PATCH {
            self.writes += 1;
            let version = self.writes.to_string();
            let mut body: Value = serde_json::from_slice(body).unwrap();
            for key in ["uid", "resourceVersion"] {
                body["metadata"].as_object_mut().unwrap().remove(key);
            }
            let before = self.objects.get(name).cloned();
            let mut object = before
                .clone()
                .unwrap_or_else(|| json!({"metadata": {"uid": format!("{name}-{version}")}}));
            add(&mut object, body);
            if before.as_ref() != Some(&object) {
                object["metadata"]["resourceVersion"] = json!(version);
            }
            self.objects.insert(name.to_owned(), object);
        }
        if *method == Method::DELETE
            && let Some(object) = self.objects.remove(name)
        {
            return (200, object);
        }
        if let Some(object) = self.objects.get(name) {
            return (200, object.clone());
        }
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "not found"});
        (404, status)
    }

    fn list(&self) -> Value {
        let metadata = |object: &Value| json!({ "metadata": object["metadata"] });
        let items: Vec<Value> = self.objects.values().map(metadata).collect();
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": {"resourceVersion": "100"}, "items": items})
    }
}

/// Adds the fields of `more`; lists are replaced.
fn add(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                add(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

/// A world with one revision, whose watches list once `listing` is true.
struct World {
    server: Arc<Mutex<Server>>,
    listing: watch::Sender<bool>,
    engine: Engine,
}

async fn answer(
    server: Arc<Mutex<Server>>,
    mut listing: watch::Receiver<bool>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let (code, answer) = if path == "/api/v1" {
        let mut server = server.lock();
        server.discoveries += 1;
        let verbs = ["get", "list", "patch", "watch"];
        let kind = json!({"name": "configmaps", "singularName": "configmap", "namespaced": !server.cluster_scoped,
            "kind": "ConfigMap", "verbs": verbs});
        (
            200,
            json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [kind]}),
        )
    } else if let Some(name) = path.strip_prefix("/api/v1/namespaces/n/configmaps/") {
        let kind = parts.headers.get(http::header::CONTENT_TYPE);
        let merge = kind.is_some_and(|kind| kind == "application/merge-patch+json");
        server.lock().object(&parts.method, name, &body, merge)
    } else if path == "/apis/olm.operatorframework.io/v1/clusterobjectsets/x-2" {
        let deleted = server.lock().revision_deleted.then_some("2026-01-01T00:00:00Z");
        let metadata = json!({"name": "x-2", "uid": "us", "deletionTimestamp": deleted});
        (200, json!({ "metadata": metadata }))
    } else if path == "/apis/olm.operatorframework.io/v1/clusterextensions/x" {
        let code = if server.lock().extension { 200 } else { 404 };
        let reason = if code == 404 { "NotFound" } else { "" };
        (
            code,
            json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "metadata": {"name": "x"}}),
        )
    } else if query.contains("watch=true") {
        std::future::pending().await
    } else {
        let _ = listing.wait_for(|listing| *listing).await;
        (200, server.lock().list())
    };
    let body = Body::from(answer.to_string().into_bytes());
    Response::builder().status(code).body(body).unwrap()
}

fn world() -> (World, impl Stream<Item = ObjectRef<ClusterObjectSet>> + Unpin) {
    world_with(WatchTiming::default())
}

fn world_with(timing: WatchTiming) -> (World, impl Stream<Item = ObjectRef<ClusterObjectSet>> + Unpin) {
    let server = Arc::<Mutex<Server>>::default();
    let listing = watch::Sender::new(false);
    let (shared, gate) = (server.clone(), listing.subscribe());
    let service = tower::service_fn(move |request| {
        let (server, listing) = (shared.clone(), gate.clone());
        async move { Ok::<_, std::io::Error>(answer(server, listing, request).await) }
    });
    let client = Client::new(service, "n");
    let (watches, triggers) = Watches::new(client.clone(), timing);
    let engine = Engine::new(client, Arc::new(watches));
    let world = World {
        server,
        listing,
        engine,
    };
    (world, Box::pin(triggers))
}

/// Returns a revision of one object.
pub(super) fn revision() -> Revision {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
    let prepared = PreparedObject::new(object, CollisionProtection::Prevent, "x", 2);
    Revision {
        identity: Identity::second(),
        state: 1,
        phases: Arc::new(vec![RevisionPhase {
            name: "configuration".to_owned(),
            objects: vec![prepared],
        }]),
        prober: Prober::default(),
        account: None,
        custom_resources: CustomResourcePolicy::Keep,
        observe: false,
    }
}

async fn is_triggered(triggers: &mut (impl Stream<Item = ObjectRef<ClusterObjectSet>> + Unpin)) -> bool {
    timeout(Duration::from_mins(1), triggers.next()).await.is_ok()
}

impl World {
    async fn apply(&self) -> Vec<String> {
        let applied = self.engine.apply(&revision()).await.unwrap();
        assert!(applied.complete, "{applied:?}");
        std::mem::take(&mut self.server.lock().requests)
    }

    fn is_idle(&self) -> bool {
        let revision = revision();
        self.engine.idle(&revision.identity.uid, revision.state)
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_before_the_first_list_is_restored() {
    let (world, mut triggers) = world();
    assert_eq!(world.apply().await, ["GET a", "PATCH a"]);
    world.server.lock().objects.clear();
    world.listing.send_replace(true);
    assert!(is_triggered(&mut triggers).await, "no event reports the deletion");
    assert!(!world.is_idle());
    assert_eq!(world.apply().await, ["PATCH a"], "the watch does not show it");
}

#[tokio::test(start_paused = true)]
async fn a_first_list_with_all_objects_causes_no_request() {
    let (world, mut triggers) = world();
    assert_eq!(world.apply().await, ["GET a", "PATCH a"]);
    world.listing.send_replace(true);
    assert!(is_triggered(&mut triggers).await, "the list shows the object");
    assert!(world.is_idle());
    assert!(world.apply().await.is_empty());
    assert!(!is_triggered(&mut triggers).await, "only once");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_deletion_that_no_watch_shows_is_looked_for() {
    let (world, _triggers) = world();
    let going = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "9",
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/slow"]}});
    world.server.lock().objects.insert("a".to_owned(), going);
    let error = world.engine.apply(&revision()).await.unwrap_err();
    let text = "v1, Kind=ConfigMap n/a: the object is being deleted; it is created again when it is gone";
    assert!(chain(&error).ends_with(text), "{}", chain(&error));
    let most = error.max_delay();
    assert_eq!(most, Some(Duration::from_secs(10)));
    let refused = EngineError::invalid(&Id::of(&json!({})), "no".to_owned());
    assert_eq!(refused.max_delay(), None);
    assert_eq!(EngineError::Multiple(vec![refused, error]).max_delay(), most);

    world.server.lock().objects.clear();
    assert_eq!(world.apply().await.last().unwrap(), "PATCH a");
}

#[tokio::test(start_paused = true)]
async fn a_shared_object_under_deletion_keeps_its_owners() {
    for (deleted, requests) in [
        (None, vec!["GET a", "MERGE a"]),
        (Some("2026-01-01T00:00:00Z"), vec!["GET a"]),
    ] {
        let (world, _triggers) = world();
        let owner = |uid: &str, controller: bool| {
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "name": uid, "uid": uid,
                "controller": controller})
        };
        let shared = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "9",
            "deletionTimestamp": deleted, "finalizers": ["example.com/slow"],
            "ownerReferences": [owner("new", true), owner("us", false)]}});
        world.server.lock().objects.insert("a".to_owned(), shared);
        let pass = world.engine.teardown(&revision(), false).await;
        let complete = Teardown::Complete { skipped: Vec::new() };
        assert_eq!(pass.progress.unwrap(), complete, "{deleted:?}");
        assert_eq!(world.server.lock().requests, requests);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_created_again_with_another_scope_is_discovered_again() {
    let (world, _triggers) = world();
    world.server.lock().cluster_scoped = true;
    for discoveries in 1..3 {
        let error = world.engine.apply(&revision()).await.unwrap_err();
        let text = "v1, Kind=ConfigMap n/a: the object is cluster-scoped and must not have a namespace";
        assert!(chain(&error).ends_with(text), "{}", chain(&error));
        assert_eq!(world.server.lock().discoveries, discoveries, "once for each pass");
    }
    world.server.lock().cluster_scoped = false;
    assert_eq!(world.apply().await.last().unwrap(), "PATCH a");
    assert_eq!(
        world.server.lock().discoveries,
        3,
        "the scope that fits is cached"
    );
}

#[tokio::test(start_paused = true)]
async fn a_teardown_skips_an_object_whose_metadata_is_no_object() {
    let (world, _triggers) = world();
    let mut revision = revision();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"});
    revision.phases = Arc::new(vec![RevisionPhase {
        name: "configuration".to_owned(),
        objects: vec![PreparedObject::new(object, CollisionProtection::Prevent, "x", 2)],
    }]);
    let pass = world.engine.teardown(&revision, false).await;
    let Teardown::Complete { skipped } = pass.progress.unwrap() else {
        panic!("the object cannot exist");
    };
    assert!(skipped[0].starts_with("ConfigMap.v1 /"), "{skipped:?}");
}

/// Returns the `ConfigMap` with these owners, each as uid, the first of them as the controller.
fn owned(owners: &[&str]) -> Value {
    let owners: Vec<Value> = owners
        .iter()
        .enumerate()
        .map(|(index, uid)| {
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "name": uid, "uid": uid,
                "controller": index == 0})
        })
        .collect();
    json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "9", "ownerReferences": owners}})
}

#[tokio::test(start_paused = true)]
async fn an_older_active_owner_gets_its_object_back() {
    for (extension, owners, requests) in [
        (true, vec!["us", "old"], vec!["GET a", "MERGE a"]),
        (false, vec!["us", "old"], vec!["GET a", "DELETE a"]),
        (true, vec!["us"], vec!["GET a", "DELETE a"]),
    ] {
        for orphan in [false, true] {
            let (world, _triggers) = world();
            world.server.lock().extension = extension;
            world.server.lock().objects.insert("a".to_owned(), owned(&owners));
            let pass = world.engine.teardown(&revision(), orphan).await;
            let complete = Teardown::Complete { skipped: Vec::new() };
            assert_eq!(pass.progress.unwrap(), complete, "{owners:?}");
            let server = world.server.lock();
            if requests.contains(&"MERGE a") {
                let left = &server.objects["a"]["metadata"]["ownerReferences"];
                assert_eq!(left, &owned(&["old"])["metadata"]["ownerReferences"]);
            } else if orphan {
                assert_eq!(server.requests, ["GET a"], "it has no marks of the revision");
                continue;
            }
            assert_eq!(server.requests, requests, "{extension} {owners:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_back_is_read_first() {
    let (world, mut triggers) = world();
    world.server.lock().extension = true;
    world
        .server
        .lock()
        .objects
        .insert("a".to_owned(), owned(&["old"]));
    assert_eq!(world.apply().await, ["GET a", "PATCH a"]);
    world.listing.send_replace(true);
    assert!(is_triggered(&mut triggers).await, "the list shows the object");
    let pass = world.engine.teardown(&revision(), false).await;
    assert!(pass.progress.is_ok());
    assert_eq!(world.server.lock().requests, ["GET a", "MERGE a"]);
}

/// Timing with which objects without a watch are read every second.
fn quick() -> WatchTiming {
    WatchTiming {
        interval: Duration::from_secs(1),
        ..WatchTiming::default()
    }
}

#[tokio::test(start_paused = true)]
async fn repairs_without_a_conflict_are_limited() {
    type Meddle = fn(&mut Value);
    let meddles: [(Meddle, bool); 3] = [
        (|object| *object = Value::Null, true),
        (|object| object["metadata"]["labels"] = json!({}), true),
        (
            |object| object["metadata"]["annotations"]["of"] = json!("others"),
            false,
        ),
    ];
    for (meddle, is_repair) in meddles {
        let (world, _triggers) = world_with(quick());
        world.apply().await;
        let mut failures = 0;
        for round in 1..=60 {
            tokio::time::advance(Duration::from_secs(1)).await;
            {
                let mut server = world.server.lock();
                if let Some(object) = server.objects.get_mut("a") {
                    meddle(object);
                    // Every round changes the object.
                    object["metadata"]["annotations"]["round"] = json!(round.to_string());
                }
                server
                    .objects
                    .retain(|_, object| object["metadata"]["labels"].is_object());
            }
            match world.engine.apply(&revision()).await {
                Ok(applied) => assert_eq!(!applied.repaired.is_empty(), is_repair, "{round}"),
                Err(error) => {
                    assert!(
                        chain(&error).contains("another client keeps changing or deleting"),
                        "{error}"
                    );
                    failures += 1;
                }
            }
        }
        assert_eq!(failures, if is_repair { 55 } else { 0 });
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(
            world.engine.apply(&revision()).await.is_ok(),
            "repairs go on later"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_newer_revision_hands_back_is_no_repair() {
    let (world, _triggers) = world_with(quick());
    world.apply().await;
    {
        let mut server = world.server.lock();
        let object = server.objects.get_mut("a").unwrap();
        object["metadata"]["annotations"][keys::REVISION_ANNOTATION] = json!("3");
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    let applied = world.engine.apply(&revision()).await.unwrap();
    assert!(applied.repaired.is_empty() && applied.complete, "{applied:?}");
    let annotations = &world.server.lock().objects["a"]["metadata"]["annotations"];
    assert_eq!(annotations[keys::REVISION_ANNOTATION], "2");
}

#[tokio::test(start_paused = true)]
async fn probes_select_by_labels_of_others() {
    let (world, _triggers) = world();
    let probe = json!({"selector": {"type": "Label", "label": {"matchLabels": {"of": "others"}}},
        "assertions": [{"type": "FieldValue", "fieldValue": {"fieldPath": "status.phase", "value": "Bound"}}]});
    let mut revision = revision();
    revision.prober = Prober::new(&[serde_json::from_value(probe).unwrap()]).unwrap();
    for labelled in [false, true] {
        let metadata =
            json!({"name": "a", "namespace": "n", "labels": {"of": if labelled { "others" } else { "us" }}});
        let mut object = owned(&["us"]);
        add(
            &mut object,
            json!({"metadata": metadata, "status": {"phase": "Bound"}}),
        );
        world.server.lock().objects.insert("a".to_owned(), object);
        world.engine.forget("us");
        assert!(world.engine.apply(&revision).await.unwrap().complete);
        let id = Id::of(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
        assert_eq!(world.engine.applied_object("us", &id).unwrap().probed, labelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_deleted_takes_nothing_over() {
    let (world, _triggers) = world();
    world
        .server
        .lock()
        .objects
        .insert("a".to_owned(), owned(&["old"]));
    world.server.lock().revision_deleted = true;
    let error = world.engine.apply(&revision()).await.unwrap_err();
    assert!(chain(&error).ends_with(r#"ClusterObjectSet "x-2" is deleted, so it does not adopt the object"#));
    assert_eq!(world.server.lock().requests, ["GET a"]);
}
