//! The ClusterObjectSet controller: one revision of an extension, applied and kept as it is, archived, or taken down.
//!
//! gather (the objects, from the revision or its Secrets) → decide (pure) → act (apply, archive, take down) → report (the status, when it
//! differs). The owner is cluster-scoped and its objects are not, so triggers come from our own watches, which name the owner without
//! a namespace; kube's `owns` would let one revision be reconciled twice at once.

mod act;
mod decide;
mod gather;
mod gone;
mod unwatched;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _, future, stream};
use kube::api::{Api, Patch, PatchParams};
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use olm_api::{ClusterObjectSet, ClusterObjectSetStatus, ObservedPhase};
use olm_applier::engine::{Engine, Reads, chain};
use olm_applier::watch::{Pace, Watches};
use olm_runtime::backoff::Backoff;
use olm_runtime::client::is_absent;
use olm_runtime::events::Events;
use olm_runtime::guard::{Panicked, guard};
use olm_runtime::metrics::{self, Ended, Reconciles};
use olm_runtime::shutdown;
use olm_status::cluster_object_set as status;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ServiceAccountPolicy;
use crate::inventory::Inventory;
use crate::metrics::{Metrics, Step};
use crate::present::Present;
use act::Next;
use gather::Contents;
use gone::Gone;

/// Name of the controller among the metrics.
const CONTROLLER: &str = "cluster-extension-revision";
/// Limit of a call of the controller itself.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// How soon a revision that changed while it was reconciled is looked at again, should its event be lost.
const CONFLICT_RETRY: Duration = Duration::from_secs(1);

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where Secrets with objects are kept.
    pub system_namespace: String,
    /// How many revisions are reconciled at the same time.
    pub concurrency: u16,
    /// Policy for the rights with which a revision is applied and deleted: its service account's, or the controller's own.
    pub accounts: ServiceAccountPolicy,
    /// Counts what is done.
    pub reconciles: Reconciles,
    /// Times and rates of the watches of managed objects.
    pub pace: Pace,
}

/// What fails in a reconcile outside the engine. All of it is retried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the API server failed.
    #[error("{step} ClusterObjectSet {name:?}")]
    Call {
        /// What was being done.
        step: &'static str,
        /// Name of the revision.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A call to the API server took too long.
    #[error("{step} ClusterObjectSet {name:?}: the API server did not answer within 30 seconds")]
    Timeout {
        /// What was being done.
        step: &'static str,
        /// Name of the revision.
        name: String,
    },
}

impl Error {
    /// Returns the API server's message, bounded.
    fn why(&self) -> String {
        match self {
            Self::Call { source, .. } => chain(source.as_ref()),
            other @ Self::Timeout { .. } => other.to_string(),
        }
    }

    /// Returns true if the object changed or vanished between read and write. Such a conflict is expected.
    fn overtaken(&self) -> bool {
        matches!(self, Self::Call { source, .. } if is_stale(source))
    }
}

struct Context {
    client: Client,
    engine: Engine,
    watches: Arc<Watches>,
    store: Store<ClusterObjectSet>,
    backoff: Backoff<String>,
    events: Events,
    system_namespace: String,
    accounts: ServiceAccountPolicy,
    contents: Contents,
    released: Released,
    gone: Gone,
    metrics: metrics::Controller,
    observed: Option<Observed>,
}

/// The revisions whose finalizer was taken off lately, as they were when their objects had gone: the events of those objects
/// come before that of the revision, and there is nothing left to do for them.
#[derive(Default)]
struct Released(Mutex<VecDeque<(Option<String>, Option<String>)>>);

impl Released {
    /// More than can be under way at once.
    const KEPT: usize = 64;

    fn note(&self, set: &ClusterObjectSet) {
        let mut released = self.0.lock();
        if released.len() >= Self::KEPT {
            released.pop_front();
        }
        released.push_back((set.uid(), set.resource_version()));
    }

    fn has(&self, set: &ClusterObjectSet) -> bool {
        let this = (set.uid(), set.resource_version());
        self.0.lock().contains(&this)
    }
}

/// Where it is told what the controller does.
pub(crate) struct Observed {
    pub(crate) inventory: Inventory,
    pub(crate) metrics: Metrics,
}

/// Runs the controller until `shutdown`.
///
/// # Errors
/// None yet.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    run_observed(client, options, None, shutdown).await
}

/// As [`run`], telling what it does.
pub(crate) async fn run_observed(
    client: Client,
    options: Options,
    observed: Option<Observed>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (watches, triggers) = Watches::new(client.clone(), options.pace);
    let watches = Arc::new(watches);
    if let Some(observed) = &observed {
        observed.metrics.show_watches(&watches);
    }
    let (reader, writer) = reflector::store();
    let store = reader.clone();
    let context = Arc::new(Context {
        engine: Engine::new(client.clone(), watches.clone()).reading(match options.accounts {
            ServiceAccountPolicy::Require => Reads::AsAccount,
            ServiceAccountPolicy::Impersonate | ServiceAccountPolicy::Ignore => Reads::AsController,
        }),
        watches,
        store: store.clone(),
        backoff: Backoff::default(),
        events: Events::new(client.clone(), "clusterobjectset-controller"),
        system_namespace: options.system_namespace,
        accounts: options.accounts,
        contents: Contents::default(),
        released: Released::default(),
        gone: Gone::default(),
        metrics: options.reconciles.controller(CONTROLLER, options.concurrency),
        observed,
        client: client.clone(),
    });
    let (vanished, mut gone) = mpsc::unbounded_channel();
    let (noting, mut present) = (context.clone(), Present::default());
    let sets = sets(client)
        .reflect(writer)
        .inspect_ok(move |event| noting.note_gone(&mut present, event, &vanished))
        .touched_objects();
    let controller = Controller::for_stream(sets, reader)
        .with_config(controller::Config::default().concurrency(options.concurrency.max(1)))
        .reconcile_on(triggers)
        .reconcile_on(stream::poll_fn(move |cx| gone.poll_recv(cx)))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned());
    let work = controller
        .run(measured, retry, context.clone())
        .for_each(|result| async {
            match result {
                Ok(_) => {}
                Err(controller::Error::ObjectNotFound(object)) => context.sweep(&object.name),
                Err(error) => tracing::warn!(%error, "reconciling a ClusterObjectSet failed"),
            }
        });
    shutdown::drive(work, store.wait_until_ready(), shutdown.cancelled()).await;
    Ok(())
}

/// The watch of revisions. One that cannot be read is passed over: it must not stop the others.
fn sets(
    client: Client,
) -> impl Stream<Item = Result<watcher::Event<ClusterObjectSet>, watcher::Error>> + Send + 'static {
    let api: Api<DeserializeGuard<ClusterObjectSet>> = Api::all(client);
    let events = watcher(api, watcher::Config::default()).default_backoff();
    events.filter_map(|event| future::ready(event.map(readable).transpose()))
}

fn readable(
    event: watcher::Event<DeserializeGuard<ClusterObjectSet>>,
) -> Option<watcher::Event<ClusterObjectSet>> {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    let read = |guarded: DeserializeGuard<ClusterObjectSet>| {
        guarded
            .0
            .inspect_err(|invalid| {
                let name = invalid.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(name, error = %invalid.error, "a ClusterObjectSet cannot be read and is passed over");
            })
            .ok()
            .map(slim)
    };
    Some(match event {
        Apply(set) => Apply(read(set)?),
        Delete(set) => Delete(read(set)?),
        InitApply(set) => InitApply(read(set)?),
        Init => Init,
        InitDone => InitDone,
    })
}

fn slim(mut set: ClusterObjectSet) -> ClusterObjectSet {
    set.metadata.managed_fields = None;
    set
}

/// Writing the status or a finalizer failed: the object changed meanwhile, or the API server is away.
#[expect(clippy::needless_pass_by_value, reason = "the signature is the runtime's")]
fn retry(set: Arc<ClusterObjectSet>, error: &Error, context: Arc<Context>) -> Action {
    if error.overtaken() {
        tracing::debug!(name = set.name_any(), %error, "a ClusterObjectSet is tried again");
    } else {
        // The status says how far the objects are; this is about the revision itself.
        let note = format!("{}; trying again", chain(error));
        let object = set.object_ref(&());
        context
            .events
            .warning(object, "ReconcileFailed", "Reconcile", &note);
    }
    Action::requeue(context.backoff.failed(set.name_any()))
}

async fn measured(set: Arc<ClusterObjectSet>, context: Arc<Context>) -> Result<Action, Error> {
    let name = set.name_any();
    let guarded = context.clone();
    let work = async {
        let work = Box::pin(reconcile(set.clone(), guarded.clone()));
        match guarded.metrics.guard("ClusterObjectSet", &name, work).await {
            Ok(done) => done,
            Err(panicked) => Box::pin(guarded.panicked(&set, &name, &panicked)).await,
        }
    };
    let ended = |done: &Result<Action, Error>| match done {
        Ok(action) => Ended::of(action, context.backoff.failures(&name) > 0),
        Err(_) => Ended::Error,
    };
    Box::pin(context.metrics.measure(work, ended)).await
}

async fn reconcile(set: Arc<ClusterObjectSet>, context: Arc<Context>) -> Result<Action, Error> {
    let name = set.name_any();
    context.sweep(&name);
    tracing::info!(name, "reconcile starting");
    let done = context.step(&set, &name).await;
    tracing::info!(name, "reconcile ending");
    done
}

impl Observed {
    /// Notes how many objects the revision keeps up.
    fn note(&self, set: &ClusterObjectSet) {
        if decide::course(set) == decide::Course::Keep && !decide::owner_name(set).is_empty() {
            let count = set
                .spec
                .phases
                .iter()
                .flatten()
                .map(|phase| phase.objects.len())
                .sum();
            self.inventory
                .note_objects(decide::owner_name(set), set.spec.revision, count);
        }
    }
}

impl Context {
    /// Drops all that is kept for the revision with this uid.
    fn forget(&self, uid: &str) {
        self.engine.forget(uid);
        self.contents.drop(uid);
    }

    async fn step(&self, set: &ClusterObjectSet, name: &str) -> Result<Action, Error> {
        if self.released.has(set) {
            return Ok(Action::await_change());
        }
        let now = jiff::Timestamp::now();
        let act::Done {
            outcome,
            observed_phases,
            next,
        } = match &self.observed {
            Some(observed) => observed.metrics.measure(Step::Apply, self.act(set, name)).await?,
            None => self.act(set, name).await?,
        };
        if let Some(observed) = &self.observed {
            observed.note(set);
        }
        if let Some(outcome) = outcome
            && !self.report(set, name, &outcome, observed_phases, now).await?
        {
            // It was changed meanwhile; the change brings us back.
            return Ok(Action::requeue(CONFLICT_RETRY));
        }
        self.requeue(set, name, next, now).await
    }

    /// Shows a panic in the status; comes back after the delay for failures.
    async fn panicked(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        panicked: &Panicked,
    ) -> Result<Action, Error> {
        let outcome = match decide::course(set) {
            decide::Course::Keep => status::Outcome::Retrying(panicked.to_string()),
            _ => status::Outcome::Removing(panicked.to_string()),
        };
        let told = guard(self.report(set, name, &outcome, None, jiff::Timestamp::now())).await;
        if let Ok(Err(error)) = told {
            tracing::warn!(name, %error, "a panic is not shown in the status");
        }
        Ok(Action::requeue(self.backoff.failed(name.to_owned())))
    }

    /// Writes the status if it says something new; tells whether it is written for what `set` still is.
    async fn report(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        outcome: &status::Outcome,
        observed_phases: Option<Vec<ObservedPhase>>,
        now: jiff::Timestamp,
    ) -> Result<bool, Error> {
        let old = set.status.clone().unwrap_or_default();
        let remaining = decide::remaining(set, now);
        let facts = status::Facts {
            version: decide::version(set),
            overdue: match remaining {
                Some(left) if left.is_zero() => set.spec.progress_deadline_minutes,
                _ => None,
            },
            observed_phases,
            unwatched: unwatched::of(&self.watches, set),
            generation: set.metadata.generation.unwrap_or_default(),
        };
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now);
        let new = status::object_set(&old, outcome, &facts, &time);
        if !status::same(&old, &new) {
            if let status::Outcome::Retrying(_) | status::Outcome::Blocked(_) | status::Outcome::Removing(_) =
                outcome
            {
                // The whole text; the status has a part of a long one.
                tracing::warn!(name, ?outcome, "not progressing");
            }
            if !self.write_status(set, name, &new).await? {
                return Ok(false);
            }
            self.announce(set, &old, &new);
        }
        Ok(true)
    }

    async fn requeue(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        next: Next,
        now: jiff::Timestamp,
    ) -> Result<Action, Error> {
        let remaining = decide::remaining(set, now).filter(|left| !left.is_zero());
        // Where no watch tells of changes, the time does.
        let recheck = self.engine.recheck(&set.uid().unwrap_or_default());
        let on_change = |at_latest: Option<Duration>| {
            let soonest = recheck.into_iter().chain(at_latest).min();
            soonest.map_or_else(Action::await_change, Action::requeue)
        };
        if matches!(next, Next::ArchiveOlder) {
            self.archive_outdone(set).await?;
        }
        if !matches!(next, Next::Backoff) {
            self.backoff.clear(&name.to_owned());
        }
        Ok(match next {
            Next::Settled | Next::ArchiveOlder => on_change(None),
            Next::Deadline => on_change(remaining),
            Next::After(delay) => Action::requeue(delay),
            Next::Backoff => {
                let delay = self.backoff.failed(name.to_owned());
                Action::requeue(remaining.map_or(delay, |left| delay.min(left)))
            }
            Next::Release => {
                self.forget(&set.uid().unwrap_or_default());
                self.set_finalizer(set, name, false).await?;
                self.released.note(set);
                Action::await_change()
            }
        })
    }

    async fn write_status(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        new: &ClusterObjectSetStatus,
    ) -> Result<bool, Error> {
        // Bound to the state the status was computed from, so that a stale read never undoes a latched condition.
        let patch = json!({"metadata": {"resourceVersion": set.resource_version()}, "status": new});
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = sets.patch_status(name, &params, &patch);
        match limited("writing the status of", name, call).await {
            Err(Error::Call { source, .. }) if is_stale(&source) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// Tells in an event when the progress changed its reason, and when a watch begins to fail or is back.
    fn announce(&self, set: &ClusterObjectSet, old: &ClusterObjectSetStatus, new: &ClusterObjectSetStatus) {
        unwatched::announce(&self.events, set, old, new);
        let find = |status: &ClusterObjectSetStatus| {
            status
                .conditions
                .iter()
                .flatten()
                .find(|c| c.type_ == "Progressing")
                .cloned()
        };
        let Some(now) = find(new) else { return };
        if find(old).is_some_and(|before| before.reason == now.reason) {
            return;
        }
        let reference = set.object_ref(&());
        match now.reason.as_str() {
            "Blocked" | "Retrying" | "ProgressDeadlineExceeded" => {
                self.events
                    .warning(reference, &now.reason, "RollOut", &now.message);
            }
            _ => self
                .events
                .normal(reference, &now.reason, "RollOut", &now.message),
        }
    }
}

/// Whether what was written about has changed, or gone, since it was read.
fn is_stale(error: &kube::Error) -> bool {
    is_absent(error) || matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// A call of the controller itself, for at most [`CALL_LIMIT`].
async fn limited<T>(
    step: &'static str,
    name: &str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::Call {
            step,
            name: name.to_owned(),
            source: Box::new(source),
        }),
        Err(_) => Err(Error::Timeout {
            step,
            name: name.to_owned(),
        }),
    }
}
