//! Engine and watches against a mocked API server that stores objects, with the runtime's clock paused.

use std::collections::BTreeMap;

use futures::{Stream, StreamExt as _};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::runtime::reflector::ObjectRef;
use olm_api::{ClusterObjectSet, CollisionProtection};
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
    /// True if it serves `ConfigMap` as a cluster-scoped kind.
    cluster_scoped: bool,
    /// Number of discoveries of the kind so far.
    discoveries: usize,
}

impl Server {
    /// Reads or applies one object.
    fn object(&mut self, method: &Method, name: &str, body: &[u8]) -> (u16, Value) {
        self.requests.push(format!("{method} {name}"));
        if *method == Method::PATCH {
            let version = self.requests.len().to_string();
            let mut object: Value = serde_json::from_slice(body).unwrap();
            object["metadata"]["uid"] = json!(format!("{name}-{version}"));
            object["metadata"]["resourceVersion"] = json!(version);
            self.objects.insert(name.to_owned(), object);
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
        server.lock().object(&parts.method, name, &body)
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
    let server = Arc::<Mutex<Server>>::default();
    let listing = watch::Sender::new(false);
    let (shared, gate) = (server.clone(), listing.subscribe());
    let service = tower::service_fn(move |request| {
        let (server, listing) = (shared.clone(), gate.clone());
        async move { Ok::<_, std::io::Error>(answer(server, listing, request).await) }
    });
    let client = Client::new(service, "n");
    let (watches, triggers) = Watches::new(client.clone(), WatchTiming::default());
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
        (None, vec!["GET a", "PATCH a"]),
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
