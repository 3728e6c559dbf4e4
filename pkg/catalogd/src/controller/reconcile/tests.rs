use std::convert::Infallible;

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::controller::{
    context,
    judged::{Judged, REQUESTED, name},
};
use crate::storage::Origin;

/// Returns a catalog of this source that is ready to be pulled.
fn catalog(source: &Value, annotations: &Value) -> Arc<Guarded> {
    let catalog = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {
            "name": "c", "generation": 2, "annotations": annotations,
            "labels": {olm_api::keys::METADATA_NAME_LABEL: "c"},
            "finalizers": [olm_api::keys::CATALOG_FINALIZER],
        },
        "spec": {"source": source},
    });
    Arc::new(serde_json::from_value(catalog).unwrap())
}

fn image(reference: &str) -> Value {
    json!({"type": "Image", "image": {"ref": reference}})
}

/// API server that has one catalog, sets its metadata and keeps a list of the writes.
struct Server {
    writes: Arc<Mutex<Vec<String>>>,
    client: Client,
}

impl Server {
    /// Answers a patch with the catalog after `change`, or refuses it with `None`.
    fn new(change: impl Fn(&mut Value, &Value) -> Option<()> + Clone + Send + Sync + 'static) -> Self {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let noted = writes.clone();
        let serve = tower::service_fn(move |request: Request<Body>| {
            let (noted, change) = (noted.clone(), change.clone());
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                if path.contains("clustercatalogs") {
                    noted.lock().push(format!("{method} {path}"));
                }
                let body = request.into_body().collect_bytes().await.unwrap();
                let (status, body) = match method {
                    Method::PUT => (StatusCode::OK, body.to_vec()),
                    Method::PATCH => {
                        let wanted = serde_json::from_slice(&body).unwrap();
                        let mut object = unprepared();
                        match change(&mut object, &wanted) {
                            Some(()) => (StatusCode::OK, object.to_string().into_bytes()),
                            None => (StatusCode::CONFLICT, Vec::new()),
                        }
                    }
                    _ => (StatusCode::FORBIDDEN, Vec::new()),
                };
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = status;
                Ok::<_, Infallible>(response)
            }
        });
        let client = Client::new(serve, "default");
        Self { writes, client }
    }

    /// Reconciles the catalog, which has no finalizer yet; returns the writes and whether a pull was attempted.
    async fn reconcile(self) -> (Vec<String>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let mut context = context::testing::context(folder.path());
        Arc::get_mut(&mut context).unwrap().client = self.client;
        let catalog = Arc::new(serde_json::from_value(unprepared()).unwrap());
        let prepared = OnceLock::new();
        let _ = reconcile(catalog, context.clone(), &prepared).await;
        // A panic would be reported with the resource version that the object has after the patch.
        let version = prepared.get().map(ResourceExt::resource_version);
        let writes = std::mem::take(&mut *self.writes.lock());
        let is_written = writes.iter().any(|write| write.starts_with("PUT"));
        assert_eq!(
            version.is_some_and(|version| version.as_deref() == Some("2")),
            is_written
        );
        (writes, context.history_of(&name()).check.is_some())
    }
}

fn unprepared() -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": "c", "generation": 1, "resourceVersion": "1"},
        "spec": {"source": image("127.0.0.1:1/c:v1")},
    })
}

#[tokio::test]
async fn one_pass_sets_the_finalizer_and_then_pulls() {
    let server = Server::new(|object, patch| {
        for key in ["labels", "finalizers"] {
            object["metadata"][key] = patch["metadata"][key].clone();
        }
        object["metadata"]["resourceVersion"] = json!("2");
        Some(())
    });
    let (writes, pulled) = server.reconcile().await;
    let path = "/apis/olm.operatorframework.io/v1/clustercatalogs/c";
    assert_eq!(writes, [format!("PATCH {path}"), format!("PUT {path}/status")]);
    assert!(pulled);
}

#[tokio::test]
async fn nothing_is_pulled_before_the_finalizer_is_on_the_object() {
    let refused = Server::new(|_, _| None);
    let without = Server::new(|object, patch| {
        object["metadata"]["labels"] = patch["metadata"]["labels"].clone();
        Some(())
    });
    let deleted = Server::new(|object, _| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        Some(())
    });
    for server in [refused, without, deleted] {
        let (writes, pulled) = server.reconcile().await;
        assert_eq!(writes.len(), 1, "{writes:?}");
        assert!(!pulled);
    }
}

/// Sources whose image cannot be pulled: at once or ever, no image, an unknown version of the cluster, and no source at all.
fn catalogs() -> Vec<Arc<Guarded>> {
    let template = |text: &str| json!({ olm_api::keys::CATALOG_IMAGE_TEMPLATE_ANNOTATION: text });
    vec![
        catalog(&image("127.0.0.1:1/other:v2"), &json!({})),
        catalog(&image("127.0.0.1:1/NOT A REFERENCE"), &json!({})),
        catalog(&json!({"type": "Image"}), &json!({})),
        catalog(
            &image(REQUESTED),
            &template("127.0.0.1:1/other:v{kube_minor_version}"),
        ),
        catalog(&image(REQUESTED), &template("127.0.0.1:1/other:v{")),
        catalog(&json!(1), &json!({})),
    ]
}

#[tokio::test]
async fn content_of_a_former_spec_is_judged_by_its_own_reference() {
    for catalog in catalogs() {
        let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
        // The second reconcile may wait for a retry.
        for _ in 0..2 {
            let action = reconcile(catalog.clone(), judged.context.clone(), &OnceLock::new())
                .await
                .unwrap();
            assert_ne!(action, Action::await_change(), "the policy may change");
            assert!(judged.is_served());
        }
        judged.policy_of(&[("127.0.0.1:1/other", &json!({"type": "reject"}))]);
        reconcile(catalog.clone(), judged.context.clone(), &OnceLock::new())
            .await
            .unwrap();
        assert!(judged.is_served(), "the new image is rejected, not the content");
        judged.policy_of(&[("127.0.0.1:1/c", &json!({"type": "reject"}))]);
        reconcile(catalog, judged.context.clone(), &OnceLock::new())
            .await
            .unwrap();
        assert!(!judged.is_served());
    }
}

#[tokio::test]
async fn a_status_that_is_refused_for_ever_is_written_ever_more_rarely() {
    let mut judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    let refusing = tower::service_fn(async |_: Request<Body>| {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        Ok::<_, Infallible>(refused)
    });
    Arc::get_mut(&mut judged.context).unwrap().client = Client::new(refusing, "default");
    let catalog = catalog(&image(REQUESTED), &json!({}));
    for failures in 1..4 {
        let done = reconcile(catalog.clone(), judged.context.clone(), &OnceLock::new()).await;
        error_policy(catalog.clone(), &done.unwrap_err(), judged.context.clone());
        assert_eq!(judged.context.backoff.failures(&name()), failures);
        assert!(judged.is_served());
    }
}

/// A refusal of the current content is in the status although another failure waits for its retry.
#[tokio::test]
async fn a_rejection_does_not_wait_for_a_retry() {
    let judged = Judged::new(REQUESTED, &json!({"type": "reject"}));
    let failure = Failure {
        generation: 2,
        reference: REQUESTED.to_owned(),
        message: "no route".to_owned(),
        retry: Some(Timestamp::MAX),
    };
    let history = |context: &Context| context.history_of(&name());
    judged
        .context
        .update_history(&name(), |history| history.failure = Some(failure));
    let catalog = catalog(&image(REQUESTED), &json!({}));
    reconcile(catalog, judged.context.clone(), &OnceLock::new())
        .await
        .unwrap();
    assert!(!judged.is_served());
    let message = history(&judged.context).failure.unwrap().message;
    assert!(message.contains("is rejected by policy"), "{message}");
}

/// The registry of the content does not answer, which says nothing about its signatures.
#[tokio::test]
async fn signatures_of_a_former_spec_that_cannot_be_read_are_read_later() {
    for catalog in catalogs() {
        let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
        judged.policy(&judged.signed());
        let attempt = || judged.context.history_of(&name()).verification;
        reconcile(catalog.clone(), judged.context.clone(), &OnceLock::new())
            .await
            .unwrap();
        let first = attempt();
        assert!(first.is_some());
        let action = reconcile(catalog, judged.context.clone(), &OnceLock::new())
            .await
            .unwrap();
        assert_eq!(attempt(), first, "once per interval");
        assert_ne!(action, Action::await_change());
        assert!(judged.is_served());
    }
}

/// The last check for an interruption comes before the content is published.
#[tokio::test]
async fn an_interrupted_pull_ends_before_content_is_reported() {
    let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    let context = &judged.context;
    let publishing = context.store.lock(&name()).await;
    let catalog = catalog(&image(REQUESTED), &json!({}));
    let prepared = OnceLock::new();
    let mut reconciling = Box::pin(reconcile(catalog, context.clone(), &prepared));
    let early = tokio::time::timeout(Duration::from_millis(50), &mut reconciling).await;
    assert!(early.is_err(), "it reported content that was being replaced");
    let former = context.store.get(&name()).unwrap();
    let origin = Origin {
        requested: "127.0.0.1:1/c:v2".to_owned(),
        ..former.manifest().origin.clone()
    };
    context.store.set_origin(&name(), origin).unwrap();
    drop(publishing);
    reconciling.await.unwrap();
    let asked = context.history_of(&name()).check.map(|check| check.reference);
    assert_eq!(asked.as_deref(), Some(REQUESTED));
}

/// Otherwise the status would name the time of a retry that never runs.
#[tokio::test]
async fn current_content_ends_the_failure_of_another_spec() {
    let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    let failure = Failure {
        generation: 1,
        reference: "127.0.0.1:1/c:v2".to_owned(),
        message: "no route".to_owned(),
        retry: Some(Timestamp::MAX),
    };
    let context = &judged.context;
    context.update_history(&name(), |history| history.failure = Some(failure));
    let catalog = catalog(&image(REQUESTED), &json!({}));
    reconcile(catalog, context.clone(), &OnceLock::new())
        .await
        .unwrap();
    let history = context.history_of(&name());
    assert_eq!((history.failure, history.check), (None, None));
}
