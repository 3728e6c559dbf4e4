//! The world of the tests: a control plane, the controller, and what is put into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use http::{Method, Request, Response};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::PostParams;
use kube::client::{Body, ClientBuilder};
use kube::{Api, Client};
use olm_api::{ClusterExtension, ClusterObjectSet, CustomResourcePolicy, keys};
use olm_applier::plan;
use olm_applier::watch::WatchTiming;
use olm_harness::{ControlPlane, PodStandIn, eventually, install_crds};
use olm_operator_controller::ServiceAccountPolicy;
use olm_operator_controller::cluster_object_set::{self, Options};
use olm_runtime::metrics::{ReconcileMetrics, Registry};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::BoxError;
use tower::filter::FilterLayer;

pub(crate) const LIMIT: Duration = Duration::from_mins(1);
pub(crate) const NAMESPACE: &str = "workload";
/// A fault of a watch is said after a second, and objects are read every two: the tests do not wait for the default times.
const PACE: WatchTiming = WatchTiming {
    patience: Duration::from_secs(1),
    settle: Duration::from_millis(500),
    interval: Duration::from_secs(2),
    reads_per_second: 100,
};

/// Answers that the controller's client gives in place of the API server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lies {
    /// Answers lists and watches of a path with this end with this code.
    pub(crate) lists: Option<(&'static str, u16)>,
    /// Panics at a read of a path with this end.
    pub(crate) trap: Option<&'static str>,
}

/// A control plane with the controller, which reaches the API server through a client that can be told to lie.
pub(crate) struct World {
    pub(crate) client: Client,
    /// The controller cannot read Secrets while this is set.
    pub(crate) secrets_fail: Arc<AtomicBool>,
    pub(crate) pods: PodStandIn,
    /// Lies of the controller's client.
    pub(crate) lies: Arc<Mutex<Lies>>,
    /// Metrics of the controller.
    pub(crate) registry: Registry,
    shutdown: CancellationToken,
    _plane: ControlPlane,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        Self::start_with(ServiceAccountPolicy::Impersonate).await
    }

    pub(crate) async fn start_with(accounts: ServiceAccountPolicy) -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let plane = ControlPlane::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        let pods = PodStandIn::start(client.clone());
        let shutdown = CancellationToken::new();
        for name in ["olmv1-system", NAMESPACE] {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
            Api::<Namespace>::all(client.clone())
                .create(&PostParams::default(), &namespace)
                .await?;
        }
        let registry = Registry::new();
        let options = Options {
            system_namespace: "olmv1-system".to_owned(),
            concurrency: 4,
            accounts,
            custom_resources: CustomResourcePolicy::Keep,
            reconciles: ReconcileMetrics::register(&registry),
            timing: PACE,
        };
        let secrets_fail = Arc::new(AtomicBool::new(false));
        let lies = Arc::new(Mutex::new(Lies::default()));
        let runner = lying(faulty(&plane, secrets_fail.clone())?, lies.clone());
        let token = shutdown.clone();
        tokio::spawn(async move { cluster_object_set::run(runner, options, token).await });
        Ok(Self {
            client,
            secrets_fail,
            lies,
            registry,
            pods,
            shutdown,
            _plane: plane,
        })
    }

    pub(crate) fn sets(&self) -> Api<ClusterObjectSet> {
        Api::all(self.client.clone())
    }

    pub(crate) fn extensions(&self) -> Api<ClusterExtension> {
        Api::all(self.client.clone())
    }

    /// Creates a `ClusterExtension` with these finalizers, for revisions with its owner label.
    pub(crate) async fn create_extension(&self, name: &str, finalizers: &[&str]) -> Result<()> {
        let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"namespace": NAMESPACE, "source": {"sourceType": "Catalog", "catalog": {"packageName": name}}}});
        self.extensions()
            .create(&PostParams::default(), &serde_json::from_value(extension)?)
            .await?;
        Ok(())
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create(&self, owner: &str, revision: i64, objects: Vec<Value>) -> Result<String> {
        let name = format!("{owner}-{revision}");
        let phases = plan::phases(objects, &plan::CommonMetadata::default());
        let packed = plan::pack(&name, "olmv1-system", owner, phases)?;
        for secret in &packed.secrets {
            let api: Api<Secret> = Api::namespaced(self.client.clone(), "olmv1-system");
            api.create(&PostParams::default(), secret).await?;
        }
        let set = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": name, "labels": {keys::OWNER_NAME_LABEL: owner},
                "annotations": {keys::BUNDLE_VERSION_ANNOTATION: format!("{revision}.0.0")}},
            "spec": {"lifecycleState": "Active", "revision": revision, "collisionProtection": "Prevent",
                "phases": packed.phases, "progressionProbes": plan::default_probes()}});
        self.sets()
            .create(&PostParams::default(), &serde_json::from_value(set)?)
            .await?;
        Ok(name)
    }

    pub(crate) async fn until(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
        text: &str,
    ) -> Result<()> {
        let what = format!("{name}: {type_} {status} {reason} {text}");
        eventually(LIMIT, &what, async || {
            let set = self.sets().get(name).await?;
            let conditions = set.status.and_then(|s| s.conditions).unwrap_or_default();
            let told = conditions.iter().find(|c| c.type_ == type_);
            match told {
                Some(c) if c.status == status && c.reason == reason && c.message.contains(text) => Ok(()),
                _ => bail!("{conditions:#?}"),
            }
        })
        .await
    }

    pub(crate) async fn gone(&self, name: &str) -> Result<()> {
        eventually(LIMIT, &format!("{name} is gone"), async || {
            match self.sets().get_opt(name).await? {
                None => Ok(()),
                Some(set) => bail!("{:#?}", set.status),
            }
        })
        .await
    }
}

/// Returns a client that lies, and asks `client` for all else.
fn lying(client: Client, lies: Arc<Mutex<Lies>>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, lies) = (client.clone(), *lies.lock());
        let (get, path) = (request.method() == Method::GET, request.uri().path().to_owned());
        async move {
            let read = |end: &str| get && path.ends_with(end);
            assert!(
                !lies.trap.is_some_and(|end| path.ends_with(end)),
                "the trap is sprung"
            );
            match lies.lists {
                Some((end, code)) if read(end) => {
                    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure",
                        "message": format!("no {end} today"), "reason": "Lie", "code": code});
                    let answer = Response::builder().status(code);
                    Ok(answer.body(Body::from(status.to_string().into_bytes()))?)
                }
                _ => client.send(request).await.map_err(BoxError::from),
            }
        }
    });
    Client::new(service, "default")
}

/// Returns a client whose reads of single Secrets fail while `fail` is set.
fn faulty(plane: &ControlPlane, fail: Arc<AtomicBool>) -> Result<Client> {
    let filter = move |request: Request<Body>| -> Result<Request<Body>, BoxError> {
        let secret = request.method() == Method::GET && request.uri().path().contains("/secrets/");
        if secret && fail.load(Ordering::Relaxed) {
            return Err("the API server is away".into());
        }
        Ok(request)
    };
    let builder = ClientBuilder::try_from(plane.config())?;
    Ok(builder.with_layer(&FilterLayer::new(filter)).build())
}

/// A `ConfigMap`.
pub(crate) fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": {"key": value}})
}

/// A revision with everything said: protection, probes, account and the objects inline.
pub(crate) async fn create_with(world: &World, name: &str, spec: Value, objects: &[Value]) -> Result<()> {
    let mut set = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": name, "labels": {keys::OWNER_NAME_LABEL: name.trim_end_matches("-1")},
            "annotations": {keys::BUNDLE_VERSION_ANNOTATION: "1.0.0"}},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "phases": [{"name": "deploy", "objects": objects.iter().map(|o| json!({"object": o})).collect::<Vec<_>>()}]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        set["spec"][key] = value.clone();
    }
    world
        .sets()
        .create(&PostParams::default(), &serde_json::from_value(set)?)
        .await?;
    Ok(())
}
