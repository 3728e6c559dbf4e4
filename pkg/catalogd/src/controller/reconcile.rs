//! Reconciles one catalog: gather, decide, act, report.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    runtime::{
        Controller,
        controller::{Action, Config},
        watcher,
    },
};
use olm_api::ClusterCatalog;
use olm_runtime::{
    guard::{Panicked, guard},
    metrics::ReconcileResult,
};
use olm_status::cluster_catalog::Outcome;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Context, Decision, Failure, act,
    catalog_state::Guarded,
    decide::{POLICY_INTERVAL, VERSION_INTERVAL, decide},
    gather::{gather, template},
    outcome::{Pull, failure_outcome, judge_and_emit, pull_and_record, record_failure},
    poll_status::poll_status,
    report::{self, ReportError},
};
use crate::storage::ValidCatalogName;

/// Batches bursts of changes.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Reconciles every ClusterCatalog until `shutdown`.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let api = Api::<Guarded>::all(context.client.clone());
    let controller = Controller::new(api, watcher::Config::default().any_semantic())
        // Concurrency is unbounded here; `Context::workers` limits it and excludes reconciles that wait for a registry.
        .with_config(Config::default().concurrency(0).debounce(DEBOUNCE))
        .reconcile_all_on(damages(&context))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned());
    let store = controller.store();
    // The controller runs once, so the cell is empty.
    let _ = context.catalogs.set(store.clone());
    let work = controller
        .run(reconcile_measured, error_policy, context.clone())
        .for_each(|result| {
            if let Err(error) = result {
                tracing::debug!(error = olm_text::chain(&error), "reconcile ended");
            }
            std::future::ready(())
        });
    olm_runtime::shutdown::drive(work, store.wait_until_ready(), shutdown.cancelled()).await;
    context.cleaned_up().await;
}

/// Yields an item when stored content is discarded as damaged.
fn damages(context: &Context) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(context.store.damages(), async |mut damages| {
        damages.changed().await.ok()?;
        Some(((), damages))
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature kube asks for")]
fn error_policy(catalog: Arc<Guarded>, error: &ReportError, context: Arc<Context>) -> Action {
    let Ok(name) = ValidCatalogName::new(catalog.name_any()) else {
        return Action::await_change();
    };
    let wait = context.backoff.failed(name);
    if error.superseded() {
        tracing::debug!(
            error = olm_text::chain(error),
            "the object changed or is gone; requeueing"
        );
    } else {
        tracing::warn!(error = olm_text::chain(error), "reconcile failed; requeueing");
    }
    Action::requeue(wait)
}

async fn reconcile_measured(catalog: Arc<Guarded>, context: Arc<Context>) -> Result<Action, ReportError> {
    let catalog_name = catalog.name_any();
    let name = ValidCatalogName::new(catalog_name.clone()).ok();
    let guarded = context.clone();
    let work = async {
        let prepared = OnceLock::new();
        let work = Box::pin(reconcile(catalog.clone(), guarded.clone(), &prepared));
        let done = guarded.reconciles.guard("ClusterCatalog", &catalog_name, work);
        match done.await {
            Ok(done) => done,
            Err(panicked) => {
                let latest = prepared.get().or(catalog.0.as_ref().ok());
                Ok(Box::pin(report_panic(&guarded, latest, &panicked)).await)
            }
        }
    };
    let failed = || name.is_some_and(|name| context.backoff.failures(&name) > 0);
    let ended = |done: &Result<Action, ReportError>| match done {
        Ok(action) => ReconcileResult::of(action, failed()),
        Err(_) => ReconcileResult::Error,
    };
    // At the error level, so that the name is on every line whatever the log level.
    let span = tracing::error_span!("catalog", catalog = catalog_name);
    let measured = context.reconciles.measure(work, ended).instrument(span);
    let done = context.workers.run(Box::pin(measured)).await;
    // Upstream's message, which tools search for in the log.
    tracing::info!(ClusterCatalog = catalog_name, "reconcile ending");
    done
}

/// Reconciles a catalog. Sets `prepared` to the API server's answer to the write of label and finalizer.
async fn reconcile(
    catalog: Arc<Guarded>,
    context: Arc<Context>,
    prepared: &OnceLock<ClusterCatalog>,
) -> Result<Action, ReportError> {
    let Ok(name) = ValidCatalogName::new(catalog.name_any()) else {
        return Ok(Action::await_change());
    };
    let mut catalog = match &catalog.0 {
        Ok(catalog) => catalog.clone(),
        Err(error) => {
            tracing::error!(%error, "cannot decode the ClusterCatalog; ignoring it");
            judge_and_emit(&context, &name, catalog.as_ref()).await;
            return Ok(requeue(next_judgement(&context, &name)));
        }
    };
    act::await_interrupted(&context, &name).await;
    let mut inputs = gather(&context, &name, &catalog, Timestamp::now()).await;
    let mut decision = decide(name.as_str(), &inputs);
    if decision == Decision::Prepare {
        let finalizer = inputs.finalizer || inputs.available;
        // The answer, not the request, shows that label and finalizer are set.
        catalog = report::metadata(&context, &name, &catalog, finalizer).await?;
        prepared.get_or_init(|| catalog.clone());
        inputs = gather(&context, &name, &catalog, Timestamp::now()).await;
        decision = decide(name.as_str(), &inputs);
    }
    let image = inputs.image.as_ref().ok().and_then(Option::as_ref);
    let generation = inputs.generation;
    tracing::debug!(?decision, "decided");
    let (outcome, requeue_after) = match decision {
        // The answer of the API server lacks the label or the finalizer: the object has changed, which triggers another reconcile.
        Decision::Nothing | Decision::Prepare => return Ok(Action::await_change()),
        Decision::Remove => return remove_content(&context, &name, catalog, &Outcome::Deleting).await,
        Decision::Withdraw => return remove_content(&context, &name, catalog, &Outcome::Unavailable).await,
        Decision::Refuse(message) => {
            judge_and_emit(&context, &name, &catalog).await;
            let failure = Failure {
                generation,
                reference: String::new(),
                message,
                retry: None,
            };
            record_failure(&context, &name, failure)
        }
        Decision::Wait(failure, requeue_after) => {
            judge_and_emit(&context, &name, &catalog).await;
            (failure_outcome(&context, &name, failure), requeue_after)
        }
        Decision::Keep(requeue_after) => match context.served_now(&name) {
            Some(served) => {
                // A failure of another spec, which nothing retries now.
                context.update_history(&name, |history| history.failure = None);
                (Outcome::Serving(served), requeue_after)
            }
            // The content was removed after it was read: requeue at once.
            None => return Ok(Action::requeue(Duration::ZERO)),
        },
        Decision::Pull => match pull_and_record(&context, &name, catalog, &inputs).await? {
            Pull::Ended(action) => return Ok(action),
            Pull::Reported(pulled, outcome, requeue_after) => {
                catalog = *pulled;
                (outcome, requeue_after)
            }
        },
    };
    let settled = matches!(outcome, Outcome::Serving(_));
    let versioned = template(&catalog).map(|_| VERSION_INTERVAL);
    let poll = poll_status(&context.history_of(&name), image);
    report::status(&context, &name, catalog, &outcome, poll).await?;
    if settled {
        context.backoff.clear(&name);
    }
    let judged = next_judgement(&context, &name);
    Ok(requeue(
        requeue_after.into_iter().chain(versioned).chain(judged).min(),
    ))
}

/// Returns the delay before content that is served, also that of a former spec, is judged by the signature policy again.
fn next_judgement(context: &Context, name: &ValidCatalogName) -> Option<Duration> {
    context.store.get(name).map(|_| POLICY_INTERVAL)
}

fn requeue(after: Option<Duration>) -> Action {
    after.map_or_else(Action::await_change, Action::requeue)
}

/// Reports a panic in the status and requeues with backoff.
async fn report_panic(
    context: &Arc<Context>,
    catalog: Option<&ClusterCatalog>,
    panicked: &Panicked,
) -> Action {
    let name = catalog.and_then(|catalog| ValidCatalogName::new(catalog.name_any()).ok());
    let (Some(catalog), Some(name)) = (catalog, name) else {
        return Action::await_change();
    };
    let outcome = Outcome::Retrying {
        message: panicked.to_string(),
        served: context.served_now(&name),
    };
    let reported = guard(report::status(context, &name, catalog.clone(), &outcome, None)).await;
    if let Ok(Err(error)) = reported {
        let error = olm_text::chain(&error);
        tracing::warn!(error, "could not report a panic in the status");
    }
    Action::requeue(context.backoff.failed(name))
}

/// Removes the content, reports it, and removes the finalizer.
async fn remove_content(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    catalog: ClusterCatalog,
    outcome: &Outcome,
) -> Result<Action, ReportError> {
    if let Err(error) = act::remove(context, name).await {
        report::emit_failed(context, &catalog, &error);
        let wait = context.backoff.failed(name.clone());
        let outcome = Outcome::Retrying {
            message: error.to_string(),
            served: context.served_now(name),
        };
        report::status(context, name, catalog, &outcome, None).await?;
        return Ok(Action::requeue(wait));
    }
    let catalog = report::status(context, name, catalog, outcome, None).await?;
    let finalizers = catalog.finalizers();
    if finalizers
        .iter()
        .any(|finalizer| finalizer == olm_api::keys::CATALOG_FINALIZER)
    {
        report::metadata(context, name, &catalog, false).await?;
    }
    Ok(Action::await_change())
}

#[cfg(test)]
mod tests;
