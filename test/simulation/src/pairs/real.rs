//! A walk over pairs of specs on a real control plane. The controllers run in this process; catalogs and images are the stand-ins
//! of the simulation.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use olm_harness::{ControlPlane, PodStandIn, install_crds};
use olm_operator_controller::Parts;
use olm_proof::Report;
use olm_world::Request;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::managed;
use super::ways::{Ways, state};
use crate::check::Expected;
use crate::content::{FULL, OLD};
use crate::rng::Rng;
use crate::run::settings;
use crate::scenario::{CONTROLLER, setup};
use crate::seams::Outside;
use crate::simulate::Stage;
use crate::specs::specs;
use crate::user::{self, Action};

/// Maximum time of a transition from one spec to the next.
const LIMIT: Duration = Duration::from_mins(2);
/// Time without a change after which the controllers count as done with a spec.
const QUIET: Duration = Duration::from_millis(400);
/// Pause between two reads of the cluster.
const PAUSE: Duration = Duration::from_millis(100);

/// Paths of the lists that contain the extension, its revisions and its objects.
const LISTS: [&str; 11] = [
    "/apis/olm.operatorframework.io/v1/clusterextensions",
    "/apis/olm.operatorframework.io/v1/clusterobjectsets",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?labelSelector=olm.operatorframework.io/owner-name",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=olm.operatorframework.io/owner-name",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=olm.operatorframework.io/owner-name",
    "/apis/rbac.authorization.k8s.io/v1/roles?labelSelector=olm.operatorframework.io/owner-name",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings?labelSelector=olm.operatorframework.io/owner-name",
    "/apis/apps/v1/deployments?labelSelector=olm.operatorframework.io/owner-name",
    "/api/v1/configmaps?labelSelector=olm.operatorframework.io/owner-name",
    "/api/v1/services?labelSelector=olm.operatorframework.io/owner-name",
    "/api/v1/serviceaccounts?labelSelector=olm.operatorframework.io/owner-name",
];

/// Walks `count` pairs of specs and logs the progress.
///
/// # Errors
/// The control plane does not start, or fails. A cluster that does not reach the goal of a spec is no error but a violation in
/// the report.
pub async fn pairs(stage: &Stage, seed: u64, count: usize) -> anyhow::Result<Report> {
    let cluster = Cluster::start(stage).await?;
    let specs = specs(&stage.world);
    let mut ways = Ways::new(specs.len());
    let mut rng = Rng::new(seed);
    let mut expected = Expected::new(Arc::clone(&stage.content));
    let mut trail: Vec<usize> = Vec::new();
    let begin = Instant::now();
    while ways.len() < count && ways.violations.is_empty() {
        let to = ways.next(&trail, &mut rng);
        let spec = specs.get(to).context("there are no specs")?;
        let status = cluster.send(&user::request(&Action::Apply(spec.clone()))).await?;
        if (400..500).contains(&status) {
            ways.refuse(&trail, to);
            continue;
        }
        ensure!(status < 400, "the API server answers {status} to a spec");
        trail.push(to);
        let (extension, goal) = expected.only(spec)?;
        let place = format!(
            "real-pairs seed={seed}: {:?} of {}",
            trail.iter().rev().take(3).collect::<Vec<_>>(),
            trail.len()
        );
        ways.walk(&trail);
        match cluster
            .settled(|objects| expected.differences_to(&extension, &goal, objects))
            .await?
        {
            Err(problems) => ways.differ(&problems, spec, &place),
            Ok(objects) => {
                if let Some(bundle) = goal.complete_bundle() {
                    let reached = state(managed(&objects, "alpha"));
                    ways.compare(to, spec, bundle, reached, place);
                }
            }
        }
        if ways.len().is_multiple_of(25) {
            tracing::info!(pairs = ways.len(), seconds = begin.elapsed().as_secs(), "walked");
        }
    }
    cluster.task.abort();
    Ok(Report {
        title: "Pairs of specs on a real API server".to_owned(),
        about:
            "The same walk and the same checks as in simulation, with the same catalogs and images, on a real control plane with the \
                rights of the installation manifests."
                .to_owned(),
        figures: ways.figures(),
        violations: ways.violations,
        not_covered: vec!["Pods are stand-ins, as in all tests on this control plane.".to_owned()],
        ..Report::default()
    })
}

/// A real control plane with the objects of the small world, and the controllers on it.
struct Cluster {
    client: Client,
    /// Task of the controllers.
    task: JoinHandle<anyhow::Result<()>>,
    _pods: PodStandIn,
    _plane: ControlPlane,
}

impl Cluster {
    /// Starts a control plane, creates the objects of the small world, and starts the controllers with the rights of their
    /// manifests.
    async fn start(stage: &Stage) -> anyhow::Result<Self> {
        let plane = ControlPlane::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        for object in setup()? {
            let path = format!("{}?fieldManager=setup&force=true", user::path_of(&object));
            let request = user::apply(&path, &object);
            let status = send(&client, &request).await?;
            ensure!(
                status < 400,
                "the API server answers {status} to PATCH {}",
                request.path
            );
        }
        for (name, digest) in [("first", FULL), ("second", OLD)] {
            let status = send(&client, &user::request(&Action::Serve(name, digest))).await?;
            ensure!(
                status < 400,
                "the API server answers {status} to the status of catalog {name}"
            );
        }
        let outside = Arc::new(Outside {
            net: None,
            process: 0,
            content: Arc::clone(&stage.content),
        });
        let controllers = plane
            .client_for(CONTROLLER, Some("system:serviceaccounts"))
            .await?;
        let parts = Parts::new(controllers, outside.clone(), outside);
        let task = tokio::spawn(parts.run(settings(), CancellationToken::new()));
        Ok(Self {
            _pods: PodStandIn::start(client.clone()),
            client,
            task,
            _plane: plane,
        })
    }

    /// Sends a request of a user and returns the status code. Fails if the controllers have ended.
    async fn send(&self, request: &Request) -> anyhow::Result<u16> {
        ensure!(!self.task.is_finished(), "the controllers ended by themselves");
        send(&self.client, request).await
    }

    /// Waits until `differences` finds none and nothing has changed for [`QUIET`]. Returns the objects, or the differences after
    /// [`LIMIT`].
    async fn settled(
        &self,
        differences: impl Fn(&[Arc<Value>]) -> Vec<String>,
    ) -> anyhow::Result<Result<Vec<Arc<Value>>, Vec<String>>> {
        let end = Instant::now() + LIMIT;
        let mut last: (Vec<String>, Instant) = (Vec::new(), Instant::now());
        loop {
            let objects = self.objects().await?;
            let versions = versions(&objects);
            if versions != last.0 {
                last = (versions, Instant::now());
            }
            let mut problems = differences(&objects);
            problems.extend(lag(&objects));
            if problems.is_empty() && last.1.elapsed() >= QUIET {
                return Ok(Ok(objects));
            }
            if Instant::now() >= end {
                if problems.is_empty() {
                    problems.push("the cluster does not come to rest".to_owned());
                }
                return Ok(Err(problems));
            }
            sleep(PAUSE).await;
        }
    }

    /// Reads all objects of [`LISTS`]. Items of lists lack kind and version, so these are set.
    async fn objects(&self) -> anyhow::Result<Vec<Arc<Value>>> {
        let mut out = Vec::new();
        for path in LISTS {
            let request = http::Request::get(path).body(Vec::new())?;
            let mut list: Value = self.client.request(request).await?;
            let kind = list["kind"]
                .as_str()
                .unwrap_or_default()
                .trim_end_matches("List")
                .to_owned();
            let version = list["apiVersion"].clone();
            for item in list["items"].as_array_mut().into_iter().flatten() {
                item["kind"] = kind.as_str().into();
                item["apiVersion"] = version.clone();
                out.push(Arc::new(item.take()));
            }
        }
        Ok(out)
    }
}

/// Sends a request of the simulation to the real API server and returns the status code.
async fn send(client: &Client, request: &Request) -> anyhow::Result<u16> {
    let uri = if request.query.is_empty() {
        request.path.clone()
    } else {
        format!("{}?{}", request.path, request.query)
    };
    let built = http::Request::builder()
        .method(request.method.as_str())
        .uri(uri)
        .header("content-type", request.content_type.as_str())
        .body(Body::from(request.body.clone()))?;
    let answer = client.send(built).await?;
    let status = answer.status().as_u16();
    // The body is read to its end, so that the connection can be reused.
    answer.into_body().collect().await?;
    Ok(status)
}

fn versions(objects: &[Arc<Value>]) -> Vec<String> {
    objects
        .iter()
        .map(|object| object["metadata"]["resourceVersion"].to_string())
        .collect()
}

/// Returns a sentence for each extension with a condition of an older generation.
fn lag(objects: &[Arc<Value>]) -> Vec<String> {
    let extensions = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterExtension");
    extensions
        .filter(|extension| {
            let conditions = extension["status"]["conditions"].as_array();
            let current =
                |condition: &Value| condition["observedGeneration"] == extension["metadata"]["generation"];
            !conditions.is_some_and(|conditions| conditions.iter().all(current))
        })
        .map(|extension| format!("the status of {} is old", extension["metadata"]["name"]))
        .collect()
}
