//! The controller itself: one catalog at a time through gather, decide, act and report.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    core::DeserializeGuard,
    runtime::{
        Controller,
        controller::{Action, Config},
        watcher,
    },
};
use olm_api::ClusterCatalog;
use olm_runtime::{
    guard::{Panicked, guard},
    metrics::Ended,
};
use olm_status::cluster_catalog::Outcome;
use tokio_util::sync::CancellationToken;

use super::{
    Context, Decision, Failure, Poll, act,
    decide::{MAX_JITTER, decide},
    gather::gather,
    report::{self, ReportError},
};
use crate::storage::CatalogName;

/// Gathers bursts of changes.
const DEBOUNCE: Duration = Duration::from_millis(20);

type Guarded = DeserializeGuard<ClusterCatalog>;

/// Reconciles every ClusterCatalog until `shutdown`.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let api = Api::<Guarded>::all(context.client.clone());
    let controller = Controller::new(api, watcher::Config::default().any_semantic())
        // Unbounded here: who waits for a registry steps aside for others, see `Context::workers`.
        .with_config(Config::default().concurrency(0).debounce(DEBOUNCE))
        .reconcile_all_on(damages(&context))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned());
    let store = controller.store();
    let work = controller.run(measured, retry, context).for_each(|result| {
        if let Err(error) = result {
            tracing::debug!(error = olm_runtime::telemetry::chain(&error), "reconcile ended");
        }
        std::future::ready(())
    });
    olm_runtime::shutdown::drive(work, store.wait_until_ready(), shutdown.cancelled()).await;
}

/// Ticks when stored content was given up.
fn damages(context: &Context) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(context.store.damages(), async |mut damages| {
        damages.changed().await.ok()?;
        Some(((), damages))
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature kube asks for")]
fn retry(catalog: Arc<Guarded>, error: &ReportError, context: Arc<Context>) -> Action {
    let Ok(name) = CatalogName::new(catalog.name_any()) else {
        return Action::await_change();
    };
    let wait = context.backoff.failed(name);
    if error.overtaken() {
        tracing::debug!(error = olm_runtime::telemetry::chain(error), "looking again");
    } else {
        tracing::warn!(error = olm_runtime::telemetry::chain(error), "trying again");
    }
    Action::requeue(wait)
}

async fn measured(catalog: Arc<Guarded>, context: Arc<Context>) -> Result<Action, ReportError> {
    let catalog_name = catalog.name_any();
    let name = CatalogName::new(catalog_name.clone()).ok();
    let guarded = context.clone();
    let work = async {
        let work = Box::pin(reconcile(catalog.clone(), guarded.clone()));
        let done = guarded.reconciles.guard("ClusterCatalog", &catalog_name, work);
        match done.await {
            Ok(done) => done,
            Err(panicked) => Ok(Box::pin(show_panic(&guarded, &catalog, &panicked)).await),
        }
    };
    let failed = || name.is_some_and(|name| context.backoff.failures(&name) > 0);
    let ended = |done: &Result<Action, ReportError>| match done {
        Ok(action) => Ended::of(action, failed()),
        Err(_) => Ended::Error,
    };
    let done = context
        .workers
        .employ(Box::pin(context.reconciles.measure(work, ended)))
        .await;
    // Upstream's words, which tools look for in the log.
    tracing::info!(ClusterCatalog = catalog_name, "reconcile ending");
    done
}

async fn reconcile(catalog: Arc<Guarded>, context: Arc<Context>) -> Result<Action, ReportError> {
    let mut catalog = match &catalog.0 {
        Ok(catalog) => catalog.clone(),
        Err(error) => {
            tracing::error!(catalog = catalog.name_any(), %error, "this object is no ClusterCatalog, left alone");
            return Ok(Action::await_change());
        }
    };
    let Ok(name) = CatalogName::new(catalog.name_any()) else {
        return Ok(Action::await_change());
    };
    let found = gather(&context, &name, &catalog, Timestamp::now());
    let generation = found.generation;
    let decision = decide(name.as_str(), &found);
    tracing::debug!(catalog = %name, ?decision, "decided");
    let (outcome, again) = match decision {
        Decision::Nothing => return Ok(Action::await_change()),
        Decision::Prepare => {
            let finalizer = found.finalizer || found.available;
            report::metadata(&context, &name, &catalog, finalizer).await?;
            return Ok(Action::await_change());
        }
        Decision::Remove => return leave(&context, &name, catalog, &Outcome::Deleting).await,
        Decision::Withdraw => return leave(&context, &name, catalog, &Outcome::Unavailable).await,
        Decision::Refuse(message) => failed(
            &context,
            &name,
            Failure {
                generation,
                message,
                retry: None,
            },
        ),
        Decision::Wait(failure, again) => (failure_outcome(&context, &name, failure), again),
        Decision::Keep(again) => match context.served_now(&name) {
            Some(served) => (Outcome::Serving(served), again),
            // Gone since we looked: come back at once.
            None => return Ok(Action::requeue(Duration::ZERO)),
        },
        Decision::Pull => {
            if let Some(damage) = context.store.take_damage(&name) {
                catalog = report::damaged(&context, &name, catalog, damage).await?;
            }
            let requested = found
                .wanted
                .as_ref()
                .map(|wanted| wanted.reference.clone())
                .unwrap_or_default();
            match act::pull(&context, &name, &requested).await {
                Ok(pulled) => {
                    report::tell_new(&context, &catalog, &pulled);
                    let served = context.served(&name, &pulled.generation);
                    let poll = Poll {
                        at: Timestamp::now(),
                        jitter: rand::random_range(0.0..=MAX_JITTER),
                    };
                    context.remember(&name, |memory| {
                        memory.poll = Some(poll);
                        memory.failure = None;
                    });
                    let interval = found.wanted.as_ref().and_then(|wanted| wanted.poll);
                    (
                        Outcome::Serving(served),
                        interval.map(|interval| interval.mul_f64(1.0 + poll.jitter)),
                    )
                }
                Err(act::ActError::Interrupted) => return Ok(Action::await_change()),
                Err(error) => {
                    report::tell_failed(&context, &catalog, &error);
                    let retry = (!error.terminal()).then(|| {
                        let wait = context.backoff.failed(name.clone());
                        Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX)
                    });
                    failed(
                        &context,
                        &name,
                        Failure {
                            generation,
                            message: error.to_string(),
                            retry,
                        },
                    )
                }
            }
        }
    };
    let settled = matches!(outcome, Outcome::Serving(_));
    report::status(&context, &name, catalog, &outcome).await?;
    if settled {
        context.backoff.clear(&name);
    }
    Ok(again.map_or_else(Action::await_change, Action::requeue))
}

/// Shows a panic in the status; comes back after the delay for failures.
async fn show_panic(context: &Arc<Context>, catalog: &Guarded, panicked: &Panicked) -> Action {
    let (Ok(catalog), Ok(name)) = (&catalog.0, CatalogName::new(catalog.name_any())) else {
        return Action::await_change();
    };
    let outcome = Outcome::Retrying {
        message: panicked.to_string(),
        served: context.served_now(&name),
    };
    let told = guard(report::status(context, &name, catalog.clone(), &outcome)).await;
    if let Ok(Err(error)) = told {
        let error = olm_runtime::telemetry::chain(&error);
        tracing::warn!(catalog = %name, error, "a panic is not shown in the status");
    }
    Action::requeue(context.backoff.failed(name))
}

/// Removes content and finalizer, saying so in between.
async fn leave(
    context: &Arc<Context>,
    name: &CatalogName,
    catalog: ClusterCatalog,
    outcome: &Outcome,
) -> Result<Action, ReportError> {
    if let Err(error) = act::remove(context, name).await {
        report::tell_failed(context, &catalog, &error);
        let wait = context.backoff.failed(name.clone());
        let outcome = Outcome::Retrying {
            message: error.to_string(),
            served: context.served_now(name),
        };
        report::status(context, name, catalog, &outcome).await?;
        return Ok(Action::requeue(wait));
    }
    let catalog = report::status(context, name, catalog, outcome).await?;
    let finalizers = catalog.finalizers();
    if finalizers
        .iter()
        .any(|finalizer| finalizer == olm_api::keys::CATALOG_FINALIZER)
    {
        report::metadata(context, name, &catalog, false).await?;
    }
    Ok(Action::await_change())
}

/// Remembers a failure.
fn failed(context: &Context, name: &CatalogName, failure: Failure) -> (Outcome, Option<Duration>) {
    tracing::warn!(catalog = %name, error = failure.message, "catalog content could not be brought up to date");
    let again = failure
        .retry
        .map(|at| Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
    context.remember(name, |memory| memory.failure = Some(failure.clone()));
    (failure_outcome(context, name, failure), again)
}

fn failure_outcome(context: &Context, name: &CatalogName, failure: Failure) -> Outcome {
    let (message, served) = (failure.message, context.served_now(name));
    match failure.retry {
        Some(_) => Outcome::Retrying { message, served },
        None => Outcome::Blocked { message, served },
    }
}
