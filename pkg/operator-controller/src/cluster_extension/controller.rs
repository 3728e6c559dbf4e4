//! Triggers and the queue of the controller.
//!
//! Extensions and revisions are watched untyped, so that one that cannot be read does not stop the watch of all, and kept without
//! what is not needed (see [`stores`](super::gather::stores)); of catalogs only what matters to a resolution is compared (see
//! [`cluster_catalog`](crate::cluster_catalog)). Children are mapped by label here: kube's `owns` would queue a
//! cluster-scoped owner a second time, under the child's namespace.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, Client, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
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
use super::gather::stores::{self, Writers};
use super::reconcile::{reconcile, report_panic};
use crate::present::Present;
use crate::watched::Watched;

/// Time within which events are joined into one reconcile.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// Limit of one reconcile. It includes the wait for a turn to pull, and the pull of a large image over a slow line.
const RECONCILE_LIMIT: Duration = Duration::from_mins(40);

/// Runs the controller until `shutdown`. Every item of `catalog_changes` queues all extensions.
pub(crate) async fn run(
    context: Context,
    writers: Writers,
    catalog_changes: impl Stream<Item = ()> + Send + 'static,
    shutdown: CancellationToken,
) {
    let client = context.shared.client.clone();
    // Unbounded here: `Context::workers` bounds the reconciles, except those that wait for a registry or a catalog.
    let config = Config::default().concurrency(0).debounce(DEBOUNCE);
    let context = Arc::new(context);

    let extension = stores::kind::<ClusterExtension>();
    let (vanished, mut gone) = mpsc::unbounded_channel();
    let (again, left) = (vanished.clone(), vanished.clone());
    let (follow_statuses, foreign) = foreign_status::follow(context.stores.clone());
    let extensions = watcher(
        Api::<Watched>::all_with(client.clone(), &extension),
        watcher::Config::default(),
    )
    .default_backoff()
    .modify(|extension| {
        extension.managed_fields_mut().clear();
        extension.annotations_mut().remove(keys::LAST_APPLIED_ANNOTATION);
    })
    .reflect(writers.extensions)
    // After the store, so that the queue does not find deleted extensions in it.
    .inspect_ok(queue_vanished(vanished, |extension| Some(extension.name_any())))
    .inspect_ok(follow_statuses)
    .touched_objects()
    // Status writes of this controller change neither; those of others come by a stream of their own.
    .predicate_filter(
        predicates::generation.combine(predicates::finalizers),
        PredicateConfig::default(),
    );

    let (revision, following) = (stores::kind::<ClusterObjectSet>(), context.clone());
    let ours = watcher::Config::default().labels(&keys::selector_of_extension(None));
    let revisions = watcher(Api::<Watched>::all_with(client.clone(), &revision), ours)
        .default_backoff()
        .modify(|revision| {
            revision.managed_fields_mut().clear();
            // The objects concern the controller of the revisions only.
            revision.remove_from_spec("phases");
        })
        .reflect(writers.revisions)
        .inspect_ok(move |event| following.stores.follow_revision(event))
        // An uninstallation ends when its last revision is gone, which a watch that was down does not report.
        .inspect_ok(queue_vanished(left, |revision| {
            revision.labels().get(keys::OWNER_NAME_LABEL).cloned()
        }))
        .touched_objects();
    let (by_revision, by_crd, by_namespace) = (context.clone(), context.clone(), context.clone());
    let (owner_kind, waiter_kind, unmet_kind) = (extension.clone(), extension.clone(), extension.clone());
    let lifted = context
        .hold_watches
        .changes()
        .map(|name| ObjectRef::<Watched>::new_with(&name, stores::kind::<ClusterExtension>()));
    let known = context.stores.of_extensions();
    let work = Controller::for_stream_with(extensions, known.clone(), extension)
        .with_config(config)
        .trigger_backoff(NoPause)
        .watches_stream_with(
            revisions,
            move |revision| {
                // The progress of one extension can meet the dependencies of another.
                let mut names = by_revision.dependency_waiters.all();
                names.extend(revision.labels().get(keys::OWNER_NAME_LABEL).cloned());
                let kind = owner_kind.clone();
                names
                    .into_iter()
                    .map(move |name| ObjectRef::<Watched>::new_with(&name, kind.clone()))
            },
            revision,
        )
        .watches_stream(crds(client), move |_| {
            let kind = unmet_kind.clone();
            let names = by_crd.dependency_waiters.all();
            names
                .into_iter()
                .map(move |name| ObjectRef::<Watched>::new_with(&name, kind.clone()))
        })
        .watches_stream(namespaces(context.clone(), again), move |namespace| {
            let mut extensions = by_namespace.namespace_waiters.of(&namespace.name_any());
            extensions.extend(by_namespace.namespace_selections.moved_by(&namespace));
            let kind = waiter_kind.clone();
            extensions
                .into_iter()
                .map(move |name| ObjectRef::<Watched>::new_with(&name, kind.clone()))
        })
        .reconcile_all_on(catalog_changes)
        .reconcile_on(stream::poll_fn(move |cx| gone.poll_recv(cx)))
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

/// Returns a function that queues the extension of each object that vanishes: also those whose finalizers others removed, and those that
/// vanish while the watch is down.
fn queue_vanished(
    queue: mpsc::UnboundedSender<ObjectRef<Watched>>,
    extension: impl Fn(&Watched) -> Option<String>,
) -> impl FnMut(&watcher::Event<Watched>) {
    let mut present = Present::default();
    move |event| {
        let change = present.take(event, |object| (object.name_any(), extension(object)));
        for name in change.gone.into_iter().filter_map(|(_, extension)| extension) {
            // Without a receiver the process is stopping.
            let _ = queue.send(ObjectRef::new_with(&name, stores::kind::<ClusterExtension>()));
        }
    }
}

/// Watches the metadata of all namespaces. After each list, the extensions that select namespaces are queued: some namespaces may have gone
/// while the watch was down.
fn namespaces(
    context: Arc<Context>,
    queue: mpsc::UnboundedSender<ObjectRef<Watched>>,
) -> impl Stream<Item = Result<PartialObjectMeta<Namespace>, watcher::Error>> + Send + 'static {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(context.shared.client.clone());
    watcher(api, watcher::Config::default())
        .default_backoff()
        .inspect_ok(move |event| {
            if !matches!(event, watcher::Event::InitDone) {
                return;
            }
            for name in context.namespace_selections.all() {
                // Without a receiver the process is stopping.
                let _ = queue.send(ObjectRef::new_with(&name, stores::kind::<ClusterExtension>()));
            }
        })
        .touched_objects()
}

/// Watches the metadata of all CRDs.
fn crds(
    client: Client,
) -> impl Stream<Item = Result<PartialObjectMeta<CustomResourceDefinition>, watcher::Error>> + Send + 'static
{
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    watcher(api, watcher::Config::default())
        .default_backoff()
        .touched_objects()
}

/// Drops the state of an extension that the queue did not find, unless it was created again.
async fn forget(context: &Context, name: &str) {
    let reference = ObjectRef::new_with(name, stores::kind::<ClusterExtension>());
    if context.stores.of_extensions().get(&reference).is_none() {
        context.forget(name).await;
    }
}

/// Runs one reconcile on a worker and counts it.
async fn measured(extension: Arc<Watched>, context: Arc<Context>) -> Result<Action, Infallible> {
    let name = extension.name_any();
    let span = tracing::info_span!("extension", extension = name);
    let work = one(&name, &context).instrument(span);
    let ended = |action: &Action| ReconcileResult::of(action, context.backoff.failures(&name) > 0);
    Ok(context.workers.run(context.metrics.measure(work, ended)).await)
}

/// Runs one reconcile in a span. Errors and panics end here: a panic would end the whole controller.
async fn one(name: &str, context: &Context) -> Action {
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

    #[test]
    fn a_revision_that_vanishes_while_the_watch_is_down_queues_its_extension() {
        let (sender, mut queue) = mpsc::unbounded_channel();
        let mut inspect = queue_vanished(sender, |revision| {
            revision.labels().get(keys::OWNER_NAME_LABEL).cloned()
        });
        let revision = |name: &str, extension: &str| {
            let labels = serde_json::json!({keys::OWNER_NAME_LABEL: extension});
            let revision = serde_json::json!({"metadata": {"name": name, "labels": labels}});
            serde_json::from_value::<Watched>(revision).unwrap()
        };
        inspect(&watcher::Event::Init);
        inspect(&watcher::Event::InitApply(revision("a-1", "a")));
        inspect(&watcher::Event::InitApply(revision("b-1", "b")));
        inspect(&watcher::Event::InitDone);
        assert!(queue.try_recv().is_err());
        inspect(&watcher::Event::Init);
        inspect(&watcher::Event::InitApply(revision("b-1", "b")));
        inspect(&watcher::Event::InitDone);
        assert_eq!(queue.try_recv().unwrap().name, "a");
        assert!(queue.try_recv().is_err());
    }
}
