//! Triggers and the queue of the controller.
//!
//! Extensions are cluster-scoped and their objects are not, so triggers come from our own watches, which name the revision without
//! a namespace; kube's `owns` would let one revision be reconciled twice at once.

use std::sync::Arc;

use futures::{Stream, StreamExt as _, TryStreamExt as _, future, stream};
use kube::api::Api;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use olm_api::event::Reason;
use olm_api::{CustomResourcePolicy, keys};
use olm_applier::engine::{Engine, Reads, chain};
use olm_applier::watch::{PAGE_SIZE, WatchTiming, Watches};
use olm_runtime::backoff::{Backoff, NoPause};
use olm_runtime::events::Events;
use olm_runtime::metrics::{ReconcileMetrics, ReconcileResult};
use olm_runtime::shutdown;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::content::ContentCache;
use super::context::{Context, Policies, Recorder, SharedWatch};
use super::error::Error;
use super::gone::GoneRevisions;
use super::reconcile::reconcile;
use super::written::Written;
use crate::ServiceAccountPolicy;
use crate::groups::Groups;
use crate::listed::touched_objects;
use crate::present::Present;
use crate::watched::WatchedRevision;

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
    run_recorded(client, options, None, SharedWatch::default(), shutdown).await
}

/// Runs the controller until `shutdown` and records facts about the revisions.
pub(crate) async fn run_recorded(
    client: Client,
    options: Options,
    recorder: Option<Recorder>,
    watch: SharedWatch,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (watches, triggers) = Watches::new(client.clone(), options.timing);
    let watches = Arc::new(watches);
    if let Some(recorder) = &recorder {
        recorder.metrics.show_watches(&watches);
    }
    let store = watch.writer.as_reader();
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
    let sets = sets(client, watch).inspect_ok(move |event| {
        noting.by_extension.follow(event, |set| {
            let owner = set.labels().get(keys::OWNER_NAME_LABEL);
            (set.name_any(), owner.filter(|owner| !owner.is_empty()).cloned())
        });
        noting.gone.follow(&mut present, event, &vanished);
    });
    let sets = touched_objects(sets);
    let controller = Controller::for_stream(sets, store.clone())
        .with_config(controller::Config::default().concurrency(options.concurrency.max(1)))
        .trigger_backoff(NoPause)
        .reconcile_on(triggers.map(|set| ObjectRef::new(&set.name)))
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
    SharedWatch { writer, mut follow }: SharedWatch,
) -> impl Stream<Item = Result<watcher::Event<WatchedRevision>, watcher::Error>> + Send + 'static {
    let api: Api<WatchedRevision> = Api::all(client);
    watcher(api, watcher::Config::default().page_size(PAGE_SIZE))
        .default_backoff()
        .reflect(writer)
        .inspect_ok(move |event| follow(event))
        .filter(|event| future::ready(event.as_ref().map_or(true, is_readable)))
}

fn is_readable(event: &watcher::Event<WatchedRevision>) -> bool {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    match event {
        Apply(set) | Delete(set) | InitApply(set) => set.decode().is_some(),
        Init | InitDone => true,
    }
}

/// Retries a reconcile whose write of the status or of a finalizer failed.
#[expect(clippy::needless_pass_by_value, reason = "the signature is the runtime's")]
fn retry(set: Arc<WatchedRevision>, error: &Error, context: Arc<Context>) -> Action {
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

async fn measured(set: Arc<WatchedRevision>, context: Arc<Context>) -> Result<Action, Error> {
    // The change that makes the revision readable triggers the next reconcile.
    let Some(set) = set.decode().map(Arc::new) else {
        return Ok(Action::await_change());
    };
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

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use kube::runtime::reflector::store::Writer;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;

    fn set(name: &str, revision: &Value) -> Value {
        json!({
            "metadata": {"name": name, "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"lifecycleState": "Active", "revision": revision, "collisionProtection": "Prevent", "phases": [
                {"name": "deploy", "objects": [{"object": {"apiVersion": "v1", "kind": "ConfigMap"}}]},
            ]},
        })
    }

    #[tokio::test]
    async fn the_list_comes_in_pages_of_one_time_and_unreadable_revisions_are_skipped() {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&requests);
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let (items, next) = if query.contains("continue=next") {
                (json!([set("b-1", &json!(2))]), None)
            } else {
                (
                    json!([set("a-1", &json!(1)), set("odd-1", &json!("one"))]),
                    Some("next"),
                )
            };
            recorded.lock().push(query);
            let list = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSetList",
                "metadata": {"resourceVersion": "5", "continue": next}, "items": items});
            async move {
                let body = Body::from(list.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(Response::builder().status(200).body(body).unwrap())
            }
        });
        let followed: Arc<Mutex<Vec<String>>> = Arc::default();
        let (following, writer) = (Arc::clone(&followed), Writer::new(()));
        let store = writer.as_reader();
        let follow = move |event: &watcher::Event<WatchedRevision>| {
            if let watcher::Event::InitApply(set) = event {
                following.lock().push(set.name_any());
            }
        };
        let watch = SharedWatch {
            writer,
            follow: Box::new(follow),
        };
        let mut events = Box::pin(sets(Client::new(service, "n"), watch));
        let mut listed = Vec::new();
        loop {
            match events.next().await.unwrap().unwrap() {
                watcher::Event::Init => {}
                watcher::Event::InitApply(set) => listed.push(set),
                watcher::Event::InitDone => break,
                other => panic!("{other:?}"),
            }
        }
        let numbers: Vec<i64> = listed.iter().map(WatchedRevision::number).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(*followed.lock(), ["a-1", "odd-1", "b-1"]);
        assert_eq!(
            store.state().len(),
            3,
            "others ask the API server for unreadable ones"
        );
        assert!(listed.iter().all(|set| set.metadata.managed_fields.is_none()));
        let read = listed[0].decode().unwrap();
        assert_eq!(read.spec.object_count(), 1);
        let requests = requests.lock();
        assert_eq!(requests.len(), 2, "{requests:?}");
        assert!(requests.iter().all(|query| query.contains("limit=100")));
        // Without a version the API server answers with the present state; the second page is of the same time.
        assert!(requests.iter().all(|query| !query.contains("resourceVersion")));
    }
}
