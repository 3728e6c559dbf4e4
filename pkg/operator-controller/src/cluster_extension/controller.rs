//! Triggers and the queue of the controller.
//!
//! Extensions are watched untyped, so that one that cannot be read does not stop the watch of all, and kept without what is not needed (see
//! [`stores`](super::gather::stores)). The watch of revisions is that of their own controller. Of catalogs only what matters to a resolution is compared (see
//! [`cluster_catalog`](crate::cluster_catalog)). Children are mapped by label here: kube's `owns` would queue a
//! cluster-scoped owner a second time, under the child's namespace.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{Controller, Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use olm_api::keys;
use olm_applier::watch::{PAGE_SIZE, SlimMeta};
use olm_runtime::backoff::NoPause;
use olm_runtime::guard::guard;
use olm_runtime::metrics::ReconcileResult;
use olm_runtime::shutdown;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::Context;
use super::call::chain;
use super::foreign_status;
use super::gather::stores::{Stores, owner};
use super::reconcile::{reconcile, report_panic};
use crate::listed::{UntilListed, touched_objects};
use crate::present::Present;
use crate::watched::{WatchedExtension, WatchedRevision};

/// Time within which events are joined into one reconcile.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// Limit of one reconcile. It includes the wait for a turn to pull, and the pull of a large image over a slow line.
const RECONCILE_LIMIT: Duration = Duration::from_mins(40);

/// Returns a function that follows the watch of revisions, after its store, and the extensions that its events concern.
pub(crate) fn follow_revisions(
    context: Arc<Context>,
) -> (
    impl FnMut(&watcher::Event<WatchedRevision>) + Send + 'static,
    impl Stream<Item = ObjectRef<WatchedExtension>> + Send + 'static,
) {
    follow(context.stores(), move || context.dependency_waiters.all())
}

fn follow(
    stores: Arc<Stores>,
    waiting: impl Fn() -> Vec<String> + Send + 'static,
) -> (
    impl FnMut(&watcher::Event<WatchedRevision>) + Send + 'static,
    impl Stream<Item = ObjectRef<WatchedExtension>> + Send + 'static,
) {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    let (queue, mut concerned) = mpsc::unbounded_channel();
    // An uninstallation ends when its last revision is gone, which a watch that was down does not report.
    let (mut vanished, mut listed) = (vanished(owner), UntilListed::default());
    let follow = move |event: &watcher::Event<WatchedRevision>| {
        stores.follow_revision(event);
        let mut names = vanished(event);
        match event {
            Apply(revision) | Delete(revision) | InitApply(revision) => names.extend(owner(revision)),
            Init | InitDone => {}
        }
        if !names.is_empty() {
            // The progress of one extension can meet the dependencies of another.
            names.extend(waiting());
        }
        // Without a receiver the process is stopping.
        references(listed.take(event, names)).for_each(|name| drop(queue.send(name)));
    };
    (follow, stream::poll_fn(move |cx| concerned.poll_recv(cx)))
}

/// Runs the controller until `shutdown`. Every item of `catalog_changes` queues all extensions, and `revisions` are the extensions whose
/// revisions changed.
pub(crate) async fn run(
    context: Arc<Context>,
    writer: Writer<WatchedExtension>,
    revisions: impl Stream<Item = ObjectRef<WatchedExtension>> + Send + 'static,
    catalog_changes: impl Stream<Item = ()> + Send + 'static,
    shutdown: CancellationToken,
) {
    let client = context.shared.client.clone();
    // Unbounded here: `Context::workers` bounds the reconciles, except those that wait for a registry or a catalog.
    let config = Config::default().concurrency(0).debounce(DEBOUNCE);
    let (vanished, mut gone) = mpsc::unbounded_channel();
    let again = vanished.clone();
    let mut gone_with = self::vanished(|extension: &WatchedExtension| Some(extension.name_any()));
    let (follow_statuses, foreign) = foreign_status::follow(context.stores.clone());
    let extensions = watcher(
        Api::<WatchedExtension>::all(client.clone()),
        watcher::Config::default().page_size(PAGE_SIZE),
    )
    .default_backoff()
    .modify(|extension| {
        extension.annotations_mut().remove(keys::LAST_APPLIED_ANNOTATION);
    })
    .reflect(writer)
    // After the store, so that the queue does not find deleted extensions in it.
    .inspect_ok(move |event| {
        // Without a receiver the process is stopping.
        references(gone_with(event)).for_each(|name| drop(vanished.send(name)));
    })
    .inspect_ok(follow_statuses);
    let extensions = touched_objects(extensions)
        // Status writes of this controller change neither; those of others come by a stream of their own.
        .predicate_filter(
            predicates::generation.combine(predicates::finalizers),
            PredicateConfig::default(),
        );

    let (by_crd, by_namespace) = (context.clone(), context.clone());
    let lifted = context
        .hold_watches
        .changes()
        .map(|name| ObjectRef::<WatchedExtension>::new(&name));
    let known = context.stores.of_extensions();
    let work = Controller::for_stream(extensions, known.clone())
        .with_config(config)
        .trigger_backoff(NoPause)
        .watches_stream(crds(client), move |_| references(by_crd.dependency_waiters.all()))
        .watches_stream(namespaces(context.clone(), again), move |namespace| {
            let mut extensions = by_namespace.namespace_waiters.of(&namespace.name_any());
            extensions.extend(by_namespace.namespace_selections.moved_by(&namespace));
            references(extensions)
        })
        .reconcile_all_on(catalog_changes)
        .reconcile_on(stream::poll_fn(move |cx| gone.poll_recv(cx)))
        .reconcile_on(revisions)
        .reconcile_on(foreign)
        .reconcile_on(lifted)
        .graceful_shutdown_on(shutdown.clone().cancelled_owned())
        .run(
            measured,
            |_, never: &Infallible, _| match *never {},
            context.clone(),
        )
        .for_each(|result| async {
            match result {
                Ok(_) => {}
                Err(kube::runtime::controller::Error::ObjectNotFound(gone)) => {
                    forget(&context, &gone.name).await;
                }
                Err(error) => tracing::warn!(error = chain(&error), "watching failed; trying again"),
            }
        });
    shutdown::drive(work, known.wait_until_ready(), shutdown.cancelled()).await;
}

fn references(names: impl IntoIterator<Item = String>) -> impl Iterator<Item = ObjectRef<WatchedExtension>> {
    names.into_iter().map(|name| ObjectRef::new(&name))
}

/// Returns a function that returns the extension of each object that vanishes: also those whose finalizers others removed, and those that
/// vanish while the watch is down.
fn vanished<K: Resource>(
    extension: impl Fn(&K) -> Option<String>,
) -> impl FnMut(&watcher::Event<K>) -> Vec<String> {
    let mut present = Present::default();
    move |event| {
        let change = present.take(event, |object| (object.name_any(), extension(object)));
        let gone = change.gone.into_iter().map(|(_, extension)| extension);
        // An object that changed its extension is gone for the former one.
        gone.chain(change.replaced).flatten().collect()
    }
}

/// Watches the metadata of all namespaces. After each list, the extensions that select namespaces are queued: some namespaces may have gone
/// while the watch was down.
fn namespaces(
    context: Arc<Context>,
    queue: mpsc::UnboundedSender<ObjectRef<WatchedExtension>>,
) -> impl Stream<Item = Result<SlimMeta<Namespace>, watcher::Error>> + Send + 'static {
    let api: Api<SlimMeta<Namespace>> = Api::all(context.shared.client.clone());
    watcher(api, watcher::Config::default().page_size(PAGE_SIZE))
        .default_backoff()
        .inspect_ok(move |event| {
            if !matches!(event, watcher::Event::InitDone) {
                return;
            }
            for name in context.namespace_selections.all() {
                // Without a receiver the process is stopping.
                let _ = queue.send(ObjectRef::new(&name));
            }
        })
        .touched_objects()
}

/// Watches the metadata of all CRDs.
fn crds(
    client: Client,
) -> impl Stream<Item = Result<SlimMeta<CustomResourceDefinition>, watcher::Error>> + Send + 'static {
    let api: Api<SlimMeta<CustomResourceDefinition>> = Api::all(client);
    watcher(api, watcher::Config::default().page_size(PAGE_SIZE))
        .default_backoff()
        .touched_objects()
}

/// Drops the state of an extension that the queue did not find, unless it was created again.
async fn forget(context: &Context, name: &str) {
    if context
        .stores
        .of_extensions()
        .get(&ObjectRef::new(name))
        .is_none()
    {
        context.forget(name).await;
    }
}

/// Runs one reconcile on a worker and counts it.
async fn measured(extension: Arc<WatchedExtension>, context: Arc<Context>) -> Result<Action, Infallible> {
    let name = extension.name_any();
    let span = tracing::info_span!("extension", extension = name);
    let work = one(&name, &context).instrument(span);
    let ended = |action: &Action| ReconcileResult::of(action, context.backoff.failures(&name) > 0);
    Ok(context.workers.run(context.metrics.measure(work, ended)).await)
}

/// Runs one reconcile in a span. Errors and panics end here: a panic would end the whole controller.
pub(super) async fn one(name: &str, context: &Context) -> Action {
    tracing::info!("reconcile starting");
    let work = context
        .metrics
        .guard("ClusterExtension", name, reconcile(context, name).boxed());
    let action = match tokio::time::timeout(RECONCILE_LIMIT, work).await {
        Ok(Ok(Ok(action))) => action,
        Ok(Ok(Err(error))) => {
            tracing::warn!(error = chain(&error), "reconcile failed; trying again");
            Action::requeue(context.backoff.failed(name.to_owned()))
        }
        Ok(Err(panicked)) => {
            let reported = guard(report_panic(context, name, &panicked).boxed()).await;
            if let Ok(Err(error)) = reported {
                tracing::warn!(error = chain(&error), "a panic is missing from the status");
            }
            Action::requeue(context.backoff.failed(name.to_owned()))
        }
        Err(_) => {
            tracing::error!("reconcile exceeded its time limit; trying again");
            Action::requeue(context.backoff.failed(name.to_owned()))
        }
    };
    tracing::info!("reconcile ending");
    action
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, kind: &str, extension: &str) -> WatchedRevision {
        let labels = serde_json::json!({keys::OWNER_KIND_LABEL: kind, keys::OWNER_NAME_LABEL: extension});
        let spec =
            serde_json::json!({"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"});
        serde_json::from_value(
            serde_json::json!({"metadata": {"name": name, "labels": labels}, "spec": spec}),
        )
        .unwrap()
    }

    fn own(name: &str, extension: &str) -> WatchedRevision {
        revision(name, keys::OWNER_KIND_CLUSTER_EXTENSION, extension)
    }

    #[test]
    fn a_revision_that_vanishes_while_the_watch_is_down_queues_its_extension() {
        let mut vanished = vanished(owner);
        let none: [&str; 0] = [];
        assert_eq!(vanished(&watcher::Event::Init), none);
        assert_eq!(vanished(&watcher::Event::InitApply(own("a-1", "a"))), none);
        assert_eq!(vanished(&watcher::Event::InitApply(own("b-1", "b"))), none);
        assert_eq!(vanished(&watcher::Event::InitDone), none);
        assert_eq!(vanished(&watcher::Event::Init), none);
        assert_eq!(vanished(&watcher::Event::InitApply(own("b-1", "b"))), none);
        assert_eq!(vanished(&watcher::Event::InitDone), ["a"]);
        let given_away = vanished(&watcher::Event::Apply(own("b-1", "c")));
        assert_eq!(given_away, ["b"], "it lost its revision");
    }

    #[test]
    fn an_event_of_a_revision_concerns_its_extension_and_those_that_wait_for_others() {
        let (stores, mut writers) = Stores::new();
        let stores = Arc::new(stores);
        let (mut follow, mut concerned) = follow(Arc::clone(&stores), || vec!["waiting".to_owned()]);
        let mut see = |event| {
            writers.revisions.apply_watcher_event(&event);
            follow(&event);
            let queued = std::iter::from_fn(|| concerned.next().now_or_never().flatten());
            queued.map(|extension| extension.name).collect::<Vec<_>>()
        };
        let known = |extension| stores.revisions(extension).map(|all| all.len());
        let none: [&str; 0] = [];
        assert_eq!(see(watcher::Event::Init), none);
        assert_eq!(see(watcher::Event::InitApply(own("a-1", "a"))), none);
        assert_eq!(
            see(watcher::Event::InitApply(revision("s-1", "Stranger", "a"))),
            none
        );
        assert_eq!(known("a"), None, "the store shows the list when it is complete");
        assert_eq!(see(watcher::Event::InitDone), ["a", "waiting"]);
        assert_eq!(known("a"), Some(1), "the other is of a stranger");
        assert_eq!(stores.all_revisions().map(|all| all.len()), Some(1));
        assert_eq!(
            see(watcher::Event::Apply(revision("a-1", "Stranger", "a"))),
            ["a", "waiting"]
        );
        assert_eq!(known("a"), Some(0), "given away");
        assert_eq!(
            see(watcher::Event::Delete(own("b-1", "b"))),
            ["b", "b", "waiting"]
        );
    }
}
