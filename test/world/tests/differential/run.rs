//! Both servers, and runs of sequences on them.

use anyhow::{Context as _, Result};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use olm_proof::Actor;
use olm_world::{Answer, Options, Request, World};
use serde_json::{Value, json};

use crate::compare::{Answered, Names, comparable, differences};
use crate::kinds::KINDS;
use crate::step::{Seen, Step};
use crate::watch::Watch;

/// Agent of all requests; its first word is the default field manager.
const AGENT: &str = "tester/1";
const NAMES: [&str; 5] = ["a", "b", "c", "z", "end"];

/// Namespace and prefix of a worker, and both servers.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) namespace: String,
    pub(crate) prefix: String,
}

/// First difference of a run.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// Index of the request.
    pub(crate) at: usize,
    pub(crate) lines: Vec<String>,
}

impl Pair {
    /// Runs a sequence on both servers and returns the first difference.
    pub(crate) async fn run(&self, steps: &[Step], watch: Option<&Watch>) -> Result<Option<Difference>> {
        let mut comparison = self.comparison();
        let result = self.compared(&mut comparison, steps, watch).await;
        self.clean(&comparison.world, steps, watch, result).await
    }

    async fn compared(
        &self,
        comparison: &mut Comparison,
        steps: &[Step],
        watch: Option<&Watch>,
    ) -> Result<Option<Difference>> {
        let last = watch.map(Watch::last);
        let starts = match watch {
            Some(watch) => Some(self.start(watch).await?),
            None => None,
        };
        for (at, step) in steps.iter().chain(&last).enumerate() {
            if let Some(lines) = comparison.step(self, step).await? {
                return Ok(Some(Difference { at, lines }));
            }
        }
        let (Some(watch), Some((start_world, start_real))) = (watch, starts) else {
            return Ok(None);
        };
        let watched = self.seen().fill(&watch.kind.list());
        let ours = watch.of_world(&mut comparison.world, &watched, &start_world)?;
        let name = watch.kind.name("end").replace("{w}", &self.prefix);
        let theirs = watch.of_real(&self.client, &watched, &start_real, &name).await?;
        let left = crate::watch::comparable(&ours, &mut comparison.names_world);
        let right = crate::watch::comparable(&theirs, &mut comparison.names_real);
        let mut lines = differences(&left, &right);
        if lines.is_empty() {
            return Ok(None);
        }
        lines.insert(0, format!("{watch:?}"));
        Ok(Some(Difference {
            at: steps.len(),
            lines,
        }))
    }

    /// Returns the resource versions of both servers before a sequence.
    async fn start(&self, watch: &Watch) -> Result<(String, String)> {
        let step = Step::new("GET", watch.kind.list()).query("limit", "1");
        let listed = ask_real(&self.client, &step, &self.seen()).await?;
        let version = listed
            .body
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        let version = version.context("a list has no resource version")?;
        Ok((self.world.revision().to_string(), version.to_owned()))
    }

    /// Starts a comparison with an empty history.
    pub(crate) fn comparison(&self) -> Comparison {
        Comparison {
            world: self.world.clone(),
            seen_world: self.seen(),
            seen_real: self.seen(),
            names_world: Names::of_run(&self.prefix),
            names_real: Names::of_run(&self.prefix),
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen::of(&self.namespace, &self.prefix)
    }

    /// Removes the objects of a run from the real server, and returns the result of the run. Without a difference the
    /// real server has the objects of the world.
    pub(crate) async fn clean(
        &self,
        world: &World,
        steps: &[Step],
        watch: Option<&Watch>,
        result: Result<Option<Difference>>,
    ) -> Result<Option<Difference>> {
        if !matches!(result, Ok(None)) {
            self.sweep(steps, watch).await?;
            return result;
        }
        for (path, object) in self.objects(world) {
            let metadata = &object["metadata"];
            let held = metadata["finalizers"]
                .as_array()
                .is_some_and(|names| !names.is_empty());
            let mut statuses = Vec::new();
            if held {
                statuses.push(self.release(&path).await?.status);
            }
            if !held || !metadata["deletionTimestamp"].is_string() {
                statuses.push(self.delete(&path).await?.status);
            }
            if statuses.iter().any(|status| *status != 200) {
                self.sweep(steps, watch).await?;
                let lines = vec![format!(
                    "{path} cannot be deleted after the sequence: {statuses:?}, {object}"
                )];
                return Ok(Some(Difference {
                    at: steps.len(),
                    lines,
                }));
            }
        }
        Ok(None)
    }

    /// Returns the objects of the run in a world, with their paths.
    fn objects<'a>(&self, world: &'a World) -> Vec<(String, &'a Value)> {
        let prefix = format!("{}-", self.prefix);
        let mut out = Vec::new();
        for (key, object) in world.objects() {
            let ours = if key.namespace.is_empty() {
                key.name.starts_with(&prefix)
            } else {
                key.namespace == self.namespace && key.name.starts_with("t-")
            };
            let kind = KINDS
                .iter()
                .find(|kind| kind.group == key.group && kind.plural == key.plural);
            if let (true, Some(kind)) = (ours, kind) {
                out.push((format!("{}/{}", kind.list(), key.name), &**object));
            }
        }
        out
    }

    /// Removes all objects that a run can have left on the real server.
    async fn sweep(&self, steps: &[Step], watch: Option<&Watch>) -> Result<()> {
        for kind in KINDS {
            let list = kind.list();
            let watched = watch.is_some_and(|watch| watch.kind == *kind);
            if !watched && !steps.iter().any(|step| step.path.starts_with(&list)) {
                continue;
            }
            for name in NAMES {
                let path = kind.path(name);
                if self.delete(&path).await?.status != 404 {
                    self.release(&path).await?;
                }
            }
        }
        Ok(())
    }

    /// Deletes an object of the real server.
    pub(crate) async fn delete(&self, path: &str) -> Result<Answered> {
        let step = Step::new("DELETE", path).body(json!({"propagationPolicy": "Background"}));
        ask_real(&self.client, &step, &self.seen()).await
    }

    /// Takes the finalizers from an object of the real server.
    pub(crate) async fn release(&self, path: &str) -> Result<Answered> {
        let mut step = Step::new("PATCH", path).body(json!({"metadata": {"finalizers": null}}));
        step.content_type = "application/merge-patch+json";
        ask_real(&self.client, &step, &self.seen()).await
    }
}

/// A sequence on its way: the world, and what both servers have answered so far.
pub(crate) struct Comparison {
    pub(crate) world: World,
    pub(crate) seen_world: Seen,
    seen_real: Seen,
    names_world: Names,
    names_real: Names,
}

impl Comparison {
    /// Sends a step to both servers and returns the differences of the answers, if there are any.
    pub(crate) async fn step(&mut self, pair: &Pair, step: &Step) -> Result<Option<Vec<String>>> {
        let ours = ask_world(&mut self.world, step, &self.seen_world);
        let theirs = ask_real(&pair.client, step, &self.seen_real).await?;
        self.seen_world.record(&ours.body);
        self.seen_real.record(&theirs.body);
        let left = comparable(&ours, &mut self.names_world);
        let right = comparable(&theirs, &mut self.names_real);
        let mut lines = differences(&left, &right);
        if lines.is_empty() {
            return Ok(None);
        }
        for (who, answer) in [("world", &ours), ("kube-apiserver", &theirs)] {
            if let Some(message) = answer.body["message"].as_str() {
                lines.push(format!("{who}: {message}"));
            }
        }
        Ok(Some(lines))
    }
}

/// Sends a step to the world.
pub(crate) fn ask_world(world: &mut World, step: &Step, seen: &Seen) -> Answered {
    let target = format!("{}?{}", seen.fill(&step.path), seen.fill(&step.query));
    let mut request = Request::new(Actor::Controller(0), step.method, &target);
    step.content_type.clone_into(&mut request.content_type);
    step.accept.clone_into(&mut request.accept);
    AGENT.clone_into(&mut request.user_agent);
    request.impersonate_user = step.impersonate.as_ref().map(|user| seen.fill(user));
    if let Some(body) = &step.body {
        request.body = seen.fill_value(body).to_string().into_bytes();
    }
    match world.handle(&request, Timestamp::now()) {
        Answer::Response { status, body, .. } => Answered {
            status,
            body: parsed(&body),
        },
        Answer::Watch(_) => Answered {
            status: 200,
            body: Value::Null,
        },
    }
}

/// Sends a step to the real server.
pub(crate) async fn ask_real(client: &Client, step: &Step, seen: &Seen) -> Result<Answered> {
    let uri = format!("{}?{}", seen.fill(&step.path), seen.fill(&step.query));
    let mut builder = http::Request::builder()
        .method(step.method)
        .uri(uri)
        .header("content-type", step.content_type)
        .header("accept", step.accept)
        .header("user-agent", AGENT);
    if let Some(user) = &step.impersonate {
        builder = builder.header("impersonate-user", seen.fill(user));
    }
    let body = step.body.as_ref().map(|body| seen.fill_value(body).to_string());
    let request = builder.body(Body::from(body.unwrap_or_default().into_bytes()))?;
    let response = client
        .send(request)
        .await
        .context("kube-apiserver does not answer")?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok(Answered {
        status,
        body: parsed(&body),
    })
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).trim().to_owned()))
}

/// Returns a world with the namespaces of the workers and the CRDs.
pub(crate) fn base_world(namespaces: &[String], crds: &[Value]) -> World {
    let now = Timestamp::now();
    let mut all = Options::default().namespaces;
    all.extend(namespaces.iter().cloned());
    let mut world = World::new(&Options { namespaces: all, now });
    world.install_olm_crds(now);
    for namespace in namespaces {
        for (kind, path, name) in [
            ("ConfigMap", "configmaps", "kube-root-ca.crt"),
            ("ServiceAccount", "serviceaccounts", "default"),
        ] {
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
            let path = format!("/api/v1/namespaces/{namespace}/{path}");
            world.handle(
                &Request::new(Actor::Other("setup".into()), "POST", &path).with_body(&object),
                now,
            );
        }
    }
    for crd in crds {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        world.handle(
            &Request::new(Actor::Other("setup".into()), "POST", path).with_body(crd),
            now,
        );
    }
    world.settle(now, 5);
    world
}

/// Creates the namespaces of the workers and the CRDs on the real server.
pub(crate) async fn prepare_real(client: &Client, namespaces: &[String], crds: &[Value]) -> Result<()> {
    olm_harness::install_crds(client).await?;
    let seen = Seen::default();
    for crd in crds {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let step = Step::new("POST", path).body(crd.clone());
        let answer = ask_real(client, &step, &seen).await?;
        anyhow::ensure!(answer.status == 201, "{}", answer.body);
    }
    for name in namespaces {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        ask_real(
            client,
            &Step::new("POST", "/api/v1/namespaces").body(namespace),
            &seen,
        )
        .await?;
    }
    let limit = std::time::Duration::from_mins(1);
    for plural in ["things", "plains"] {
        let path = format!("/apis/world.test/v1/{plural}");
        olm_harness::eventually(limit, "the CRDs of the sequences are served", async || {
            let answer = ask_real(client, &Step::new("GET", &path), &seen).await?;
            anyhow::ensure!(answer.status == 200, "{}", answer.body);
            Ok(())
        })
        .await?;
    }
    for namespace in namespaces {
        for path in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
            let path = format!("/api/v1/namespaces/{namespace}/{path}");
            olm_harness::eventually(limit, "the namespace has its first objects", async || {
                let answer = ask_real(client, &Step::new("GET", &path), &seen).await?;
                anyhow::ensure!(answer.status == 200, "{}", answer.body);
                Ok(())
            })
            .await?;
        }
    }
    Ok(())
}
