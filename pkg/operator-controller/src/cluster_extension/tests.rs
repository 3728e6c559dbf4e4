//! Reconciles on a mocked API server, catalogd and registry.

use std::sync::Arc;
use std::time::SystemTime;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use olm_api::{ClusterObjectSet, CustomResourcePolicy, keys};
use olm_catalog_client::{CatalogRef, Catalogs, ClientError, PackageAnswer};
use olm_decide::extension::{CertificateProvider, History, RenderInputs};
use olm_image::{CanonicalRef, Error, Filter, Images, Reference, Unpacked};
use olm_runtime::FeatureGates;
use olm_runtime::metrics::{ReconcileMetrics, Registry};
use olm_text::name::{CatalogName, PackageName};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Context;
use super::controller::one;
use crate::ServiceAccountPolicy;
use crate::cluster_catalog::Listing;
use crate::inventory::Inventory;
use crate::metrics::Metrics;
use crate::shared::Shared;

const BUNDLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/testdata/bundles");
/// Image of the bundle `gauge`, which has webhooks and API services.
const IMAGE: &str =
    "registry.example/gauge@sha256:1111111111111111111111111111111111111111111111111111111111111111";

/// The catalogs and the registry: no catalog answers, and every image is the bundle `gauge`.
struct Outside;

fn no_content(catalog: &CatalogRef) -> ClientError {
    ClientError::NoContent {
        catalog: catalog.name.clone(),
    }
}

impl Catalogs for Outside {
    fn package<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        _: &'a PackageName,
    ) -> BoxFuture<'a, Result<PackageAnswer, ClientError>> {
        async { Err(no_content(catalog)) }.boxed()
    }

    fn package_names<'a>(
        &'a self,
        catalog: &'a CatalogRef,
    ) -> BoxFuture<'a, Result<Arc<[PackageName]>, ClientError>> {
        async { Err(no_content(catalog)) }.boxed()
    }

    fn providers<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        _: [&'a str; 3],
    ) -> BoxFuture<'a, Result<Vec<PackageName>, ClientError>> {
        async { Err(no_content(catalog)) }.boxed()
    }

    fn forget(&self, _: &CatalogName) {}
}

impl Images for Outside {
    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<CanonicalRef, Error>> {
        async { Err(Error::Owner(reference.to_string())) }.boxed()
    }

    fn fetch_as<'a>(
        &'a self,
        _: &'a str,
        _: &'a Reference,
        reference: &'a CanonicalRef,
        _: Filter,
    ) -> BoxFuture<'a, Result<Unpacked, Error>> {
        async {
            Ok(Unpacked {
                root: format!("{BUNDLES}/gauge").into(),
                labels: [(olm_bundle::FORMAT_LABEL.to_owned(), "registry+v1".to_owned())].into(),
                reference: reference.clone(),
                unpacked_at: SystemTime::UNIX_EPOCH,
                verified: None,
            })
        }
        .boxed()
    }

    fn forget<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }

    fn warning(&self) -> Option<&'static str> {
        None
    }
}

/// Requests so far: method, path and query, and the body.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;
/// Answers of the API server that differ from the usual ones.
type Answers = fn(&Method, &str) -> Option<u16>;

/// A controller with one extension.
struct World {
    context: Context,
    requests: Requests,
    name: String,
}

impl World {
    fn new(extension: &Value, revisions: &[Value], answers: Answers) -> Self {
        let requests = Requests::default();
        let (asked, known) = (Arc::clone(&requests), (extension.clone(), revisions.to_vec()));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (asked, known) = (Arc::clone(&asked), known.clone());
            async move {
                let (head, body) = request.into_parts();
                let body: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                let (code, answer) = match answers(&head.method, head.uri.path()) {
                    Some(code) => (code, status(code)),
                    None => usual(&head.method, head.uri.path(), &body, &known.0, &known.1),
                };
                asked.lock().push((format!("{} {}", head.method, head.uri), body));
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        let registry = Registry::new();
        let shared = Shared {
            client: kube::Client::new(service, "default"),
            system_namespace: "system".into(),
            concurrency: 1,
            accounts: ServiceAccountPolicy::Impersonate,
            custom_resources: CustomResourcePolicy::Keep,
            crd_roles: false,
            reconciles: ReconcileMetrics::register(&registry),
            inventory: Inventory::default(),
            metrics: Metrics::new(&registry),
        };
        let (outside, listing) = (Arc::new(Outside), Arc::new(Listing::default()));
        let (context, mut writers) =
            Context::new(shared, outside.clone(), outside, listing, FeatureGates::default());
        let read = |object: &Value| serde_json::from_value(object.clone()).unwrap();
        for event in [Event::Init, Event::InitApply(read(extension)), Event::InitDone] {
            writers.extensions.apply_watcher_event(&event);
        }
        let listed = revisions
            .iter()
            .map(|revision| Event::InitApply(serde_json::from_value(revision.clone()).unwrap()));
        for event in [Event::Init].into_iter().chain(listed).chain([Event::InitDone]) {
            writers.revisions.apply_watcher_event(&event);
            context.stores.follow_revision(&event);
        }
        Self {
            context,
            requests,
            name: extension["metadata"]["name"].as_str().unwrap().to_owned(),
        }
    }

    async fn reconcile(&self) {
        one(&self.name, &self.context).await;
    }

    /// Returns the bodies of the requests with this method and a path with this part.
    fn sent(&self, method: &str, part: &str) -> Vec<Value> {
        let requests = self.requests.lock();
        let found = requests
            .iter()
            .filter(|(line, _)| line.starts_with(method) && line.contains(part));
        found.map(|(_, body)| body.clone()).collect()
    }
}

fn status(code: u16) -> Value {
    let reason = if code == 404 { "NotFound" } else { "Invalid" };
    json!({"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code})
}

fn usual(method: &Method, path: &str, body: &Value, extension: &Value, revisions: &[Value]) -> (u16, Value) {
    let lists = path.ends_with("/clusterobjectsets") || path.ends_with("/secrets");
    match *method {
        Method::PATCH if path.contains("/clusterextensions/") => {
            let mut changed = extension.clone();
            changed["status"] = body["status"].clone();
            changed["metadata"]["resourceVersion"] = json!("2");
            (200, changed)
        }
        Method::POST | Method::PATCH => (200, body.clone()),
        Method::GET if path.ends_with("/clusterobjectsets") => (
            200,
            json!({"metadata": {"resourceVersion": "1"}, "items": revisions}),
        ),
        Method::GET if lists => (200, json!({"metadata": {"resourceVersion": "1"}, "items": []})),
        Method::GET if path.contains("/clusterobjectsets/") => {
            let found = revisions
                .iter()
                .find(|revision| path.ends_with(revision["metadata"]["name"].as_str().unwrap()));
            found.map_or((404, status(404)), |found| (200, found.clone()))
        }
        Method::GET if path.ends_with("/clusterextensions/x") => (200, extension.clone()),
        Method::GET if path == "/api/v1/namespaces/ns" => (200, json!({"metadata": {"name": "ns"}})),
        _ => (404, status(404)),
    }
}

fn extension(name: &str, spec: &Value, deleted: bool) -> Value {
    let mut extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": name, "uid": "u", "resourceVersion": "1", "generation": 1,
            "finalizers": [keys::CLEANUP_UNPACK_FINALIZER, keys::CLEANUP_CONTENT_FINALIZER]},
        "spec": {"namespace": "ns", "source": {"sourceType": "Catalog", "catalog": {"packageName": "gauge"}}},
    });
    for (field, value) in spec.as_object().unwrap() {
        extension["spec"][field] = value.clone();
    }
    if deleted {
        extension["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    extension
}

#[tokio::test]
async fn a_refused_status_is_retried_later_and_later() {
    let paused = extension("x", &json!({"rollout": {"paused": true}}), false);
    let world = World::new(&paused, &[], |method, _| {
        (*method == Method::PATCH).then_some(422)
    });
    for failures in 1..4 {
        world.reconcile().await;
        assert_eq!(world.context.backoff.failures(&"x".to_owned()), failures);
    }
    assert_eq!(world.sent("PATCH", "/clusterextensions/x/status").len(), 3);
}

#[tokio::test]
async fn a_written_status_ends_the_failures() {
    let paused = extension("x", &json!({"rollout": {"paused": true}}), false);
    let world = World::new(&paused, &[], |_, _| None);
    world.context.backoff.failed("x".to_owned());
    world.reconcile().await;
    assert_eq!(world.context.backoff.failures(&"x".to_owned()), 0);
}

/// Returns a controller with an extension whose removal waits for its revision.
fn removing(answers: Answers) -> World {
    let mut going = due(&Value::Null);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["finalizers"] = json!([keys::TEARDOWN_FINALIZER]);
    World::new(&extension("x", &json!({}), true), &[going], answers)
}

#[tokio::test]
async fn a_removal_that_goes_on_ends_the_failures() {
    let world = removing(|_, _| None);
    world.context.backoff.failed("x".to_owned());
    world.reconcile().await;
    assert_eq!(world.context.backoff.failures(&"x".to_owned()), 0);
}

#[tokio::test]
async fn a_refused_status_of_a_removal_is_retried_later_and_later() {
    let world = removing(|_, path| path.ends_with("/status").then_some(422));
    for failures in 1..4 {
        world.reconcile().await;
        assert_eq!(world.context.backoff.failures(&"x".to_owned()), failures);
    }
}

#[tokio::test]
async fn an_extension_without_its_finalizers_holds_no_verdict_up() {
    let mut unheld = extension("x", &json!({}), false);
    unheld["metadata"]["finalizers"] = json!([]);
    let world = World::new(&unheld, &[], |method, _| {
        (*method == Method::PATCH).then_some(403)
    });
    world.reconcile().await;
    let inventory = &world.context.shared.inventory;
    let unread = inventory.read(|known| known["x"].unread.clone());
    assert!(unread.is_some_and(|cause| cause.contains("finalizer")));
}

/// Returns true if a list has the name of the extension in its selector; the API server refuses one with more than 63 characters.
fn selects_by_name(world: &World) -> bool {
    let requests = world.requests.lock();
    let selectors = requests
        .iter()
        .filter_map(|(line, _)| line.split_once("labelSelector"));
    selectors
        .into_iter()
        .any(|(_, selector)| selector.contains(&world.name))
}

#[tokio::test]
async fn a_name_that_no_label_holds_is_refused_before_anything_is_read() {
    let name = "x".repeat(64);
    let world = World::new(&extension(&name, &json!({}), false), &[], |_, _| None);
    world.reconcile().await;
    assert!(!selects_by_name(&world), "{:?}", world.requests.lock());
    let written = world.sent("PATCH", "/status");
    let conditions = written[0]["status"]["conditions"].as_array().unwrap();
    let progressing = conditions.iter().find(|c| c["type"] == "Progressing").unwrap();
    let message = progressing["message"].as_str().unwrap();
    assert_eq!(progressing["reason"], "Blocked", "{message}");
    assert!(message.contains("is too long"), "{message}");
    assert!(
        world
            .context
            .shared
            .inventory
            .read(|known| known[&name].unread.is_none())
    );
}

#[tokio::test]
async fn an_extension_with_a_name_that_no_label_holds_can_be_deleted() {
    let name = "x".repeat(253);
    let world = World::new(&extension(&name, &json!({}), true), &[], |_, _| None);
    world.reconcile().await;
    assert!(!selects_by_name(&world), "{:?}", world.requests.lock());
    let written = world.sent("PATCH", "/clusterextensions/");
    assert_eq!(written[0]["metadata"]["finalizers"], json!([]), "{written:?}");
}

/// The newest revision of `gauge`, whose certificates are due.
fn due(config: &Value) -> Value {
    let mut revision = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": "x-1", "uid": "r1", "resourceVersion": "1",
            "labels": {keys::OWNER_KIND_LABEL: keys::OWNER_KIND_CLUSTER_EXTENSION, keys::OWNER_NAME_LABEL: "x"},
            "annotations": {
                keys::BUNDLE_NAME_ANNOTATION: "gauge.v2.0.0", keys::BUNDLE_VERSION_ANNOTATION: "2.0.0",
                keys::PACKAGE_NAME_ANNOTATION: "gauge", keys::BUNDLE_REFERENCE_ANNOTATION: "registry.example/gauge:2.0.0",
                keys::RESOLVED_IMAGE_ANNOTATION: IMAGE, keys::WEBHOOK_CERTIFICATES_ANNOTATION: "own",
                keys::WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION: "2020-01-01T00:00:00Z",
                keys::ROLLOUT_ATTEMPT_ANNOTATION: json!({"spec": "s", "bundle": "gauge.v2.0.0", "version": "2.0.0"}).to_string(),
            }},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z"}]},
    });
    let object: ClusterObjectSet = serde_json::from_value(revision.clone()).unwrap();
    let bundle = History::read(&[object]).installed.unwrap().bundle;
    let identity = RenderInputs {
        bundle: &bundle,
        canonical_image: &IMAGE.parse().unwrap(),
        namespace: Some("ns"),
        config: Some(config).filter(|config| !config.is_null()),
        namespaces: None,
        provider: CertificateProvider::Own,
    }
    .identity();
    revision["metadata"]["annotations"][keys::REVISION_IDENTITY_ANNOTATION] = json!(identity);
    revision
}

#[tokio::test]
async fn certificates_are_renewed_although_nothing_can_be_resolved() {
    let unresolved: Answers = |_, path| path.ends_with("/clustercatalogs").then_some(500);
    let extension = extension("x", &json!({}), false);
    let world = World::new(&extension, &[due(&Value::Null)], unresolved);
    world.reconcile().await;
    let created = world.sent("PATCH", "/clusterobjectsets/x-2");
    assert_eq!(created.len(), 1, "{:?}", world.requests.lock());
    let annotations = &created[0]["metadata"]["annotations"];
    let same = due(&Value::Null)["metadata"]["annotations"].clone();
    for key in [
        keys::BUNDLE_NAME_ANNOTATION,
        keys::RESOLVED_IMAGE_ANNOTATION,
        keys::REVISION_IDENTITY_ANNOTATION,
    ] {
        assert_eq!(annotations[key], same[key], "{key}");
    }
    let attempt = annotations[keys::ROLLOUT_ATTEMPT_ANNOTATION].as_str().unwrap();
    assert!(attempt.contains("gauge.v2.0.0"), "{attempt}");
    let due = annotations[keys::WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION]
        .as_str()
        .unwrap();
    assert!(due > "2026", "{due}");
    assert_eq!(
        world.sent("PATCH", "/status").len(),
        0,
        "the next pass reports, with the new revision"
    );
}

#[tokio::test]
async fn no_revision_is_written_for_an_extension_that_is_gone() {
    let gone: Answers = |_, path| match path {
        path if path.ends_with("/clustercatalogs") => Some(500),
        path if path.ends_with("/clusterextensions/x") => Some(404),
        _ => None,
    };
    let world = World::new(&extension("x", &json!({}), false), &[due(&Value::Null)], gone);
    world.reconcile().await;
    assert_eq!(world.sent("PATCH", "/clusterobjectsets").len(), 0);
    assert_eq!(world.sent("GET", "/clusterextensions/x").len(), 1);
}

#[tokio::test]
async fn a_renewal_applies_no_configuration_that_waits() {
    let unresolved: Answers = |_, path| path.ends_with("/clustercatalogs").then_some(500);
    let extension = extension("x", &json!({}), false);
    let world = World::new(&extension, &[due(&json!({"deploymentConfig": {}}))], unresolved);
    world.reconcile().await;
    assert_eq!(world.sent("PATCH", "/clusterobjectsets").len(), 0);
    assert_eq!(
        world.sent("PATCH", "/status").len(),
        1,
        "{:?}",
        world.requests.lock()
    );
}
