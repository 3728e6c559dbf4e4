//! Triggers and the queue of the controller.
//!
//! Extensions are cluster-scoped and their objects are not, so triggers come from our own watches, which name the revision without
//! a namespace; kube's `owns` would let one revision be reconciled twice at once.

use std::sync::Arc;

use futures::{Stream, StreamExt as _, TryStreamExt as _, future, stream};
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use olm_api::event::Reason;
use olm_api::{ClusterObjectSet, CustomResourcePolicy};
use olm_applier::engine::{Engine, Reads, chain};
use olm_applier::watch::{WatchTiming, Watches};
use olm_decide::object_set as decide;
use olm_runtime::backoff::{Backoff, NoPause};
use olm_runtime::events::Events;
use olm_runtime::metrics::{ReconcileMetrics, ReconcileResult};
use olm_runtime::shutdown;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::content::ContentCache;
use super::context::{Context, Policies, Recorder};
use super::error::Error;
use super::gone::GoneRevisions;
use super::reconcile::reconcile;
use super::written::Written;
use crate::ServiceAccountPolicy;
use crate::groups::Groups;
use crate::present::Present;

/// Name of the controller in metrics.
const CONTROLLER: &str = "cluster-extension-revision";

/// Options of the controller.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of the Secrets with objects.
    pub system_namespace: String,
    /// Number of revisions that are reconciled concurrently.
    pub concurrency: u16,
    /// Policy for the rights with which a revision is applied and deleted: its service account's, or the controller's own.
    pub accounts: ServiceAccountPolicy,
    /// Fate of CRDs that hold custom resources when a revision is removed, unless its extension names another.
    pub custom_resources: CustomResourcePolicy,
    /// Metrics of reconciles.
    pub reconciles: ReconcileMetrics,
    /// Times and rates of the watches of managed objects.
    pub timing: WatchTiming,
}

/// Runs the controller until `shutdown`.
///
/// # Errors
/// None yet.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    run_recorded(client, options, None, shutdown).await
}

/// Runs the controller until `shutdown` and records facts about the revisions.
pub(crate) async fn run_recorded(
    client: Client,
    options: Options,
    recorder: Option<Recorder>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (watches, triggers) = Watches::new(client.clone(), options.timing);
    let watches = Arc::new(watches);
    if let Some(recorder) = &recorder {
        recorder.metrics.show_watches(&watches);
    }
    let (reader, writer) = reflector::store();
    let store = reader.clone();
    let context = Arc::new(Context {
        engine: Engine::new(client.clone(), watches.clone()).with_reads(match options.accounts {
            ServiceAccountPolicy::Require => Reads::AsAccount,
            ServiceAccountPolicy::Impersonate | ServiceAccountPolicy::Ignore => Reads::AsController,
        }),
        watches,
        store: store.clone(),
        by_extension: Groups::default(),
        backoff: Backoff::default(),
        events: Events::new(client.clone(), "clusterobjectset-controller"),
        system_namespace: options.system_namespace,
        policies: Policies {
            accounts: options.accounts,
            custom_resources: options.custom_resources,
        },
        contents: ContentCache::default(),
        written: Written::default(),
        gone: GoneRevisions::default(),
        metrics: options.reconciles.controller(CONTROLLER, options.concurrency),
        recorder,
        client: client.clone(),
    });
    let (vanished, mut gone) = mpsc::unbounded_channel();
    let (noting, mut present) = (context.clone(), Present::default());
    let sets = sets(client)
        .reflect(writer)
        .inspect_ok(move |event| {
            noting.by_extension.follow(event, |set| {
                let owner = Some(decide::owner_name(set)).filter(|owner| !owner.is_empty());
                (set.name_any(), owner.map(ToOwned::to_owned))
            });
            noting.gone.follow(&mut present, event, &vanished);
        })
        .touched_objects();
    let controller = Controller::for_stream(sets, reader)
        .with_config(controller::Config::default().concurrency(options.concurrency.max(1)))
        .trigger_backoff(NoPause)
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

/// Watches the revisions. A revision that does not decode is skipped, so that the others continue.
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

/// Retries a reconcile whose write of the status or of a finalizer failed.
#[expect(clippy::needless_pass_by_value, reason = "the signature is the runtime's")]
fn retry(set: Arc<ClusterObjectSet>, error: &Error, context: Arc<Context>) -> Action {
    if error.overtaken() {
        tracing::debug!(name = set.name_any(), %error, "a ClusterObjectSet is tried again");
    } else {
        // The status covers the objects; the event covers the revision itself.
        let note = format!("{}; trying again", chain(error));
        let object = set.object_ref(&());
        context
            .events
            .warning(object, Reason::ReconcileFailed.as_str(), "Reconcile", &note);
    }
    Action::requeue(context.backoff.failed(set.name_any()))
}

async fn measured(set: Arc<ClusterObjectSet>, context: Arc<Context>) -> Result<Action, Error> {
    let name = set.name_any();
    let guarded = context.clone();
    let span = tracing::info_span!("revision", revision = name);
    let work = async {
        let work = Box::pin(reconcile(set.clone(), guarded.clone()));
        match guarded.metrics.guard("ClusterObjectSet", &name, work).await {
            Ok(done) => done,
            Err(panicked) => Box::pin(guarded.panicked(&set, &name, &panicked)).await,
        }
    };
    let ended = |done: &Result<Action, Error>| match done {
        Ok(action) => ReconcileResult::of(action, context.backoff.failures(&name) > 0),
        Err(_) => ReconcileResult::Error,
    };
    Box::pin(context.metrics.measure(work, ended))
        .instrument(span)
        .await
}
