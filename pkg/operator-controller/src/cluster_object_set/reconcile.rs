//! One reconcile of a revision: gather (reads), decide (pure), act (writes), report (the status).

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::runtime::controller::Action;
use olm_api::ClusterObjectSet;
use olm_decide::object_set::{self as decide, Goal};
use olm_runtime::clock;
use olm_runtime::guard::{Panicked, guard};
use olm_status::cluster_object_set as status;

use super::act::Done;
use super::action::{self, Next};
use super::context::Context;
use super::error::Error;
use super::report::{FAILURE_WORDING, ROLLOUT_WORDING, Reported};
use crate::metrics::Step;

/// Delay before a revision that changed during its reconcile is looked at again, in case its event is lost.
const CONFLICT_RETRY: Duration = Duration::from_secs(1);

/// Reconciles the revision and returns when to reconcile it again.
pub(super) async fn reconcile(set: Arc<ClusterObjectSet>, context: Arc<Context>) -> Result<Action, Error> {
    let name = set.name_any();
    context.sweep(&name);
    tracing::info!("reconcile starting");
    let done = context.pass(&set, &name).await;
    tracing::info!("reconcile ending");
    done
}

impl Context {
    async fn pass(&self, set: &ClusterObjectSet, name: &str) -> Result<Action, Error> {
        if let Some(wait) = self.written.wait(set) {
            // The event of the write triggers the next reconcile.
            return Ok(Action::requeue(wait));
        }
        let now = clock::now();
        let Done {
            outcome,
            observed_phases,
            next,
        } = match &self.recorder {
            Some(recorder) => recorder.metrics.measure(Step::Apply, self.run(set, name)).await?,
            None => self.run(set, name).await?,
        };
        let (outcome, next) = match decide::soak_end(set, now) {
            Some(end) if outcome == Some(status::Outcome::RolledOut) => {
                let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
                (Some(status::Outcome::Soaking(Time(end))), Next::After(left))
            }
            _ => (outcome, next),
        };
        if let Some(recorder) = &self.recorder {
            recorder.record(set);
        }
        let pace = match (&outcome, &next) {
            (_, Next::Backoff | Next::BackoffUpTo(_)) => FAILURE_WORDING,
            (Some(status::Outcome::NotReady { .. }), _) => ROLLOUT_WORDING,
            _ => Duration::ZERO,
        };
        let reported = match &outcome {
            Some(outcome) => {
                self.report(set, name, outcome, observed_phases, now, pace)
                    .await?
            }
            None => Reported::Done,
        };
        match (reported, next) {
            // The retry, which is not sooner for a text, reports the failure again.
            (Reported::Later(_), next @ (Next::Backoff | Next::BackoffUpTo(_))) => {
                self.requeue(set, name, next, now).await
            }
            (Reported::Done, next) => self.requeue(set, name, next, now).await,
            // The change of the revision triggers the next reconcile.
            (Reported::Overtaken, _) => Ok(Action::requeue(CONFLICT_RETRY)),
            (Reported::Later(left), Next::After(delay)) => Ok(Action::requeue(left.min(delay))),
            (Reported::Later(left), _) => Ok(Action::requeue(left)),
        }
    }

    /// Gathers, decides and acts.
    async fn run(&self, set: &ClusterObjectSet, name: &str) -> Result<Done, Error> {
        let goal = decide::goal_with(set, || self.watches.shows_object_of(name));
        if goal == Goal::Reached {
            return Ok(Done::silent(self.part_with(set)));
        }
        let gathered = self.gather(set, goal).await;
        let family = self.family(set);
        let identity = decide::identity(set, family.iter().map(AsRef::as_ref));
        let decision = action::decide(set, goal, gathered, identity, self.policies);
        self.act(set, name, decision).await
    }

    /// Writes a panic to the status and retries after the backoff for failures.
    pub(super) async fn panicked(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        panicked: &Panicked,
    ) -> Result<Action, Error> {
        let outcome = match decide::goal(set) {
            Goal::Applied => status::Outcome::Retrying(panicked.to_string()),
            _ => status::Outcome::Removing(panicked.to_string()),
        };
        let report = self.report(set, name, &outcome, None, clock::now(), FAILURE_WORDING);
        let reported = guard(report).await;
        if let Ok(Err(error)) = reported {
            tracing::warn!(%error, "a panic is missing from the status");
        }
        Ok(Action::requeue(self.backoff.failed(name.to_owned())))
    }

    async fn requeue(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        next: Next,
        now: jiff::Timestamp,
    ) -> Result<Action, Error> {
        if matches!(next, Next::Release) {
            // Before the backoff is cleared: a refused write is a failure like any other.
            self.release(set, name).await?;
        }
        let remaining = decide::remaining(set, now).filter(|left| !left.is_zero());
        // Kinds whose watch fails are read on an interval.
        let recheck = self.engine.recheck(&set.uid().unwrap_or_default());
        let on_change = |at_latest: Option<Duration>| {
            let soonest = recheck.into_iter().chain(at_latest).min();
            soonest.map_or_else(Action::await_change, Action::requeue)
        };
        if matches!(next, Next::ArchiveOlder) {
            self.archive_superseded(set).await?;
        }
        if !matches!(next, Next::Backoff | Next::BackoffUpTo(_)) {
            self.backoff.clear(&name.to_owned());
        }
        Ok(match next {
            Next::Settled | Next::ArchiveOlder => on_change(None),
            Next::Deadline => on_change(remaining),
            Next::After(delay) => on_change(Some(delay)),
            Next::Backoff => self.retry(name, remaining),
            Next::BackoffUpTo(most) => self.retry(name, remaining.into_iter().chain([most]).min()),
            Next::Release => {
                let parted = self.part_with(set);
                match parted {
                    Next::After(delay) => Action::requeue(delay),
                    _ => Action::await_change(),
                }
            }
        })
    }

    /// Repeats a failed reconcile after the growing delay, or after `at_most` if that is less.
    fn retry(&self, name: &str, at_most: Option<Duration>) -> Action {
        let delay = self.backoff.failed(name.to_owned());
        Action::requeue(at_most.map_or(delay, |most| delay.min(most)))
    }

    /// Drops the state of a revision that is at its goal, except the watches of one that was archived just now.
    fn part_with(&self, set: &ClusterObjectSet) -> Next {
        let uid = set.uid().unwrap_or_default();
        if let Some(left) = decide::watched_for(set, clock::now()) {
            self.contents.remove(&uid);
            return Next::After(left);
        }
        self.forget(&uid);
        Next::Settled
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::watcher::Event;
    use olm_api::{CustomResourcePolicy, keys};
    use olm_applier::engine::Engine;
    use olm_applier::plan;
    use olm_applier::watch::{WatchTiming, Watches};
    use olm_runtime::backoff::Backoff;
    use olm_runtime::events::Events;
    use olm_runtime::metrics::{ReconcileMetrics, Registry};
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::ServiceAccountPolicy;
    use crate::cluster_object_set::content::ContentCache;
    use crate::cluster_object_set::context::Policies;
    use crate::cluster_object_set::gone::GoneRevisions;
    use crate::cluster_object_set::written::Written;
    use crate::groups::Groups;
    use crate::present::Present;
    use crate::watched::WatchedRevision;

    /// Returns the context of a controller whose API server answers every request with `code`.
    fn context(code: u16) -> Context {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let patch: serde_json::Value =
                serde_json::from_slice(&request.into_body().collect_bytes().await?).unwrap_or_default();
            let body = match code {
                200 => json!({"metadata": patch["metadata"]}),
                code => {
                    json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "Invalid", "code": code})
                }
            };
            let answer = Response::builder().status(code);
            Ok::<_, tower::BoxError>(answer.body(Body::from(body.to_string().into_bytes()))?)
        });
        context_of(Client::new(service, "default"))
    }

    fn context_of(client: Client) -> Context {
        let (watches, _) = Watches::new(client.clone(), WatchTiming::default());
        let watches = Arc::new(watches);
        Context {
            engine: Engine::new(client.clone(), watches.clone()),
            watches,
            store: Writer::new(()).as_reader(),
            by_extension: Groups::default(),
            backoff: Backoff::default(),
            events: Events::new(client.clone(), "clusterobjectset-controller"),
            system_namespace: "system".to_owned(),
            policies: Policies {
                accounts: ServiceAccountPolicy::Impersonate,
                custom_resources: CustomResourcePolicy::Keep,
            },
            contents: ContentCache::default(),
            written: Written::default(),
            gone: GoneRevisions::default(),
            metrics: ReconcileMetrics::register(&Registry::new()).controller("revisions", 1),
            recorder: None,
            client,
        }
    }

    #[tokio::test]
    async fn content_that_is_restored_ends_the_block() {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"},
            "stringData": {"key": "right"}});
        let phases = plan::phases(vec![object], &plan::CommonMetadata::default());
        let observed = decide::digests(&phases);
        let packed = plan::pack("x-1", "system", "x", phases).unwrap();
        let right = serde_json::to_value(&packed.secrets[0]).unwrap();
        let mut wrong = packed.secrets[0].clone();
        for content in wrong.data.iter_mut().flat_map(|data| data.values_mut()) {
            content.0 = String::from_utf8_lossy(&content.0)
                .replace("right", "wrong")
                .into_bytes();
        }
        let stored = Arc::new(Mutex::new(serde_json::to_value(&wrong).unwrap()));
        let secret = stored.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let read = request.method() == http::Method::GET && request.uri().path().contains("/secrets/");
            let body = if read {
                secret.lock().clone()
            } else {
                json!({"metadata": {}})
            };
            let answer = Response::new(Body::from(body.to_string().into_bytes()));
            async move { Ok::<_, tower::BoxError>(answer) }
        });
        let context = context_of(Client::new(service, "default"));
        let set: ClusterObjectSet = serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "resourceVersion": "1", "generation": 1},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "phases": packed.phases},
            "status": {"observedPhases": observed},
        }))
        .unwrap();
        let outcome = async || context.run(&set, "x-1").await.unwrap().outcome;
        let blocked = outcome().await;
        assert!(
            matches!(&blocked, Some(status::Outcome::Blocked(text)) if text.contains("has changed")),
            "{blocked:?}"
        );
        *stored.lock() = right;
        assert_eq!(outcome().await, None, "the finalizer is set before the objects");
        assert!(context.contents.get("u", decide::state(&set)).is_some());
    }

    #[tokio::test]
    async fn a_finalizer_that_cannot_be_removed_keeps_the_failures() {
        let set: ClusterObjectSet = serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "resourceVersion": "1", "finalizers": [keys::TEARDOWN_FINALIZER],
                "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        }))
        .unwrap();
        for (code, left) in [(422, 1), (200, 0)] {
            let context = context(code);
            context.backoff.failed("x-1".to_owned());
            let done = context.requeue(&set, "x-1", Next::Release, clock::now()).await;
            assert_eq!(done.is_err(), code == 422, "{done:?}");
            assert_eq!(context.backoff.failures(&"x-1".to_owned()), left, "{code}");
        }
    }

    /// Returns a revision whose only phase has `references` references to the key `k` of the Secret `s`.
    fn referring(references: usize) -> serde_json::Value {
        let reference = json!({"ref": {"name": "s", "key": "k"}});
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "resourceVersion": "1", "generation": 1},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
                "phases": [{"name": "deploy", "objects": vec![reference; references]}]},
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_varies_in_wording_is_not_written_each_time() {
        // The revision as stored; every read of a Secret fails with another text.
        let stored = Arc::new(Mutex::new(referring(1)));
        let requests = Arc::new(Mutex::new((0, 0)));
        let (server, count) = (stored.clone(), requests.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, count) = (server.clone(), count.clone());
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect_bytes().await?;
                let (code, answer) = if path.contains("/secrets/") {
                    let mut count = count.lock();
                    count.0 += 1;
                    let message = format!("read tcp 10.0.0.1:{}: connection reset", 50_000 + count.0);
                    (
                        400,
                        json!({"kind": "Status", "status": "Failure", "message": message, "reason": "R", "code": 400}),
                    )
                } else if path.ends_with("/status") {
                    let sent: serde_json::Value = serde_json::from_slice(&body)?;
                    let mut count = count.lock();
                    count.1 += 1;
                    let mut stored = server.lock();
                    stored["status"] = sent["status"].clone();
                    stored["metadata"]["resourceVersion"] = json!((count.1 + 1).to_string());
                    (200, stored.clone())
                } else {
                    (200, json!({"metadata": {}}))
                };
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        let context = context_of(Client::new(service, "default"));
        let pass = async || {
            let set: ClusterObjectSet = serde_json::from_value(stored.lock().clone()).unwrap();
            context.pass(&set, "x-1").await.unwrap();
        };
        for passes in 1..=10 {
            pass().await;
            assert_eq!(*requests.lock(), (passes, 1), "one status says enough");
            let failures = context.backoff.failures(&"x-1".to_owned());
            assert_eq!(failures, u32::try_from(passes).unwrap());
        }
        tokio::time::advance(FAILURE_WORDING).await;
        pass().await;
        assert_eq!(*requests.lock(), (11, 2), "the status does not stay old");
    }

    #[tokio::test]
    async fn a_revision_without_bounds_is_not_decoded() {
        let text = json!({"kind": "ConfigMap", "data": {"a": "x".repeat(10 * 1024 * 1024 - 50)}}).to_string();
        let secret = json!({"metadata": {"name": "s"}, "immutable": true,
            "data": {"k": k8s_openapi::ByteString(text.into_bytes())}});
        let secret = secret.to_string().into_bytes();
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = Response::new(Body::from(secret.clone()));
            async move { Ok::<_, tower::BoxError>(answer) }
        });
        let context = context_of(Client::new(service, "default"));
        let set: ClusterObjectSet = serde_json::from_value(referring(13)).unwrap();
        let outcome = context.run(&set, "x-1").await.unwrap().outcome;
        let expected = "resolving ref in phase \"deploy\": the objects of the revision exceed their maximum total size (134217728 bytes)";
        assert_eq!(outcome, Some(status::Outcome::Retrying(expected.to_owned())));
    }

    #[tokio::test]
    async fn a_revision_that_is_gone_leaves_no_failures() {
        let context = context(200);
        let watched = || -> WatchedRevision { serde_json::from_str(&referring(1).to_string()).unwrap() };
        let (triggers, _receiver) = tokio::sync::mpsc::unbounded_channel();
        let mut present = Present::default();
        for event in [Event::Apply(watched()), Event::Delete(watched())] {
            context.gone.follow(&mut present, &event, &triggers);
        }
        context.backoff.failed("x-1".to_owned());
        context.sweep("x-2");
        assert_eq!(context.backoff.failures(&"x-1".to_owned()), 1);
        context.sweep("x-1");
        assert_eq!(context.backoff.failures(&"x-1".to_owned()), 0);
    }
}
