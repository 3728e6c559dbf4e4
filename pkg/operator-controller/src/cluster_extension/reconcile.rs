//! One reconcile of an extension: read, run a [`Pass`], write the status, choose the next time.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::runtime::controller::Action;
use olm_api::ClusterExtension;
use olm_decide::extension::History;
use olm_decide::extension::admission::until_change;
use olm_runtime::clock;
use olm_runtime::guard::Panicked;
use olm_status::cluster_extension::{Outcome, Progress};
use olm_status::upgrade::Upgrade;

use super::Context;
use super::act::{finalizers, removal, status};
use super::call::{CallError, call, chain};
use super::failure::Stopped;
use super::gather;
use super::gather::revisions::revisions;
use super::gather::tag_cache::TAG_INTERVAL;
use super::pass::Pass;
use super::steps::Report;
use crate::ServiceAccountPolicy;

/// Delay before the retry of a failure that only a change resolves.
const BLOCKED_RECHECK: Duration = Duration::from_secs(1000);
/// Interval of the passes over an extension whose operator holds its upgrade, in case the watch of the hold fails.
const HELD_RECHECK: Duration = Duration::from_mins(5);
/// Longest delay before a catalog or a registry that did not answer is asked again: no event announces its return.
const INCOMPLETE_RECHECK: Duration = Duration::from_mins(2);
/// Interval between passes without an event: events can be lost, and certificates expire.
const RESYNC: Duration = Duration::from_hours(6);

/// Reconciles the extension `name` and returns when to reconcile it again.
pub(crate) async fn reconcile(context: &Context, name: &str) -> Result<Action, CallError> {
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let Some(mut extension) = read(context, &api, name).await? else {
        context.forget(name).await;
        return Ok(Action::await_change());
    };
    if extension.metadata.deletion_timestamp.is_some() {
        return removal::reconcile(context, &api, &extension).await;
    }
    match finalizers::add(&api, &extension).await {
        Ok(Some(held)) => {
            context.stores.wrote(&held);
            extension = held;
        }
        Ok(None) => {}
        Err(error) => {
            if error.is_refused() {
                // The verdict on cluster upgrades names the extension and does not wait for it.
                context.note_unread(&extension, chain(&error));
            }
            return Err(error);
        }
    }
    log_ignored_account(context, &extension);
    let now = clock::now();
    let mut pass = Pass::new(context, &extension, now);
    pass.namespaces = gather::namespaces::selected(&pass).await;
    let settles = pass.selected().and_then(|selected| selected.settles);
    let Report {
        outcome,
        stopped,
        incomplete,
        windows,
        support_change,
    } = Box::pin(pass.run()).await;
    if stopped.as_ref().is_some_and(|stopped| stopped.superseded) {
        return Ok(Action::requeue(Duration::ZERO));
    }
    if !matches!(outcome.progress, Progress::HeldByOperator(_)) {
        context.hold_watches.release(name);
    }
    log_end(stopped.as_ref());
    // Before the backoff is cleared: a status that the API server refuses is a failure like any other.
    if !status::write(context, &extension, &outcome, &Time(now)).await? {
        return Ok(Action::requeue(Duration::ZERO));
    }
    let delay = next_pass(context, name, stopped, incomplete).min(settles.unwrap_or(Duration::MAX));
    let now_after = clock::now();
    let support_change = support_change.map(|at| at.duration_since(now_after));
    Ok(Action::requeue(sooner(
        delay,
        [until_change(windows, now_after), support_change],
    )))
}

/// Logs why a pass ended early.
fn log_end(stopped: Option<&Stopped>) {
    match stopped {
        None => {}
        Some(Stopped {
            progress,
            waiting: Some(_),
            ..
        }) => tracing::info!(?progress, "waiting"),
        Some(Stopped { progress, .. }) => tracing::warn!(?progress, "not progressing"),
    }
}

/// Returns the delay, or the time until the first change if that is less. A negative time is of a change during the pass.
fn sooner(delay: Duration, changes: [Option<SignedDuration>; 2]) -> Duration {
    let left = |left: SignedDuration| Duration::try_from(left).unwrap_or(Duration::ZERO);
    changes.into_iter().flatten().map(left).fold(delay, Duration::min)
}

/// Reads the extension from the watch, or from the API server if the watch is behind the controller's own last write.
async fn read(
    context: &Context,
    api: &Api<ClusterExtension>,
    name: &str,
) -> Result<Option<ClusterExtension>, CallError> {
    match context.stores.extension(name) {
        Some(known) => Ok(Some(known)),
        None if context.stores.is_gone(name) => Ok(None),
        None => {
            let live = call(format!("reading ClusterExtension \"{name}\""), api.get_opt(name)).await?;
            if let Some(live) = &live {
                // The watch, which is behind, must not take a later pass back to before a deletion that this one has seen.
                context.stores.wrote(live);
            }
            Ok(live)
        }
    }
}

/// Writes a panic to the status of the extension.
pub(crate) async fn report_panic(
    context: &Context,
    name: &str,
    panicked: &Panicked,
) -> Result<(), CallError> {
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let Some(extension) = read(context, &api, name).await? else {
        return Ok(());
    };
    let uid = extension.metadata.uid.as_deref();
    let objects = revisions(&context.revisions, name, uid).await?;
    let outcome = Outcome {
        revisions: History::read(&objects).view(),
        progress: Progress::Retrying(panicked.to_string()),
        deprecations: None,
        upgrade: Upgrade::Unknown,
        support: None,
        catalogs: None,
        pending: None,
        windows: None,
        rolled_back: None,
    };
    // If the extension has changed meanwhile, the retry says more.
    status::write(context, &extension, &outcome, &Time(clock::now())).await?;
    Ok(())
}

/// Returns the delay until the next pass. An `incomplete` pass repeats its reads soon, since no event announces their success.
fn next_pass(context: &Context, name: &str, stopped: Option<Stopped>, incomplete: bool) -> Duration {
    let key = name.to_owned();
    let (delay, retried) = match stopped {
        None => {
            context.backoff.clear(&key);
            let has_tag = context.tags.contains(name);
            (if has_tag { TAG_INTERVAL } else { RESYNC }, false)
        }
        Some(Stopped {
            progress,
            waiting: Some(_),
            ..
        }) => {
            context.backoff.clear(&key);
            match progress {
                Progress::HeldByOperator(_) => (HELD_RECHECK, false),
                _ => (BLOCKED_RECHECK, false),
            }
        }
        Some(Stopped {
            progress,
            delays,
            superseded: _,
            waiting: None,
        }) => {
            // The tag may point to another image at the retry.
            context.tags.remove(name);
            if matches!(progress, Progress::Retrying(_) | Progress::Unresolved(_)) {
                let failures = context.backoff.failures(&key);
                let backoff = context.backoff.failed(key.clone());
                (delays.limit(backoff, failures), true)
            } else {
                (BLOCKED_RECHECK, false)
            }
        }
    };
    if !incomplete {
        context.incomplete.clear(&key);
        delay
    } else if retried {
        delay
    } else {
        context.incomplete.failed(key).min(INCOMPLETE_RECHECK).min(delay)
    }
}

fn log_ignored_account(context: &Context, extension: &ClusterExtension) {
    if context.shared.accounts != ServiceAccountPolicy::Ignore {
        return;
    }
    let named = extension
        .spec
        .service_account
        .as_ref()
        .and_then(|account| account.name.as_deref());
    if let Some(account) = named.filter(|name| !name.is_empty()) {
        tracing::info!(
            account,
            "spec.serviceAccount is ignored by --service-account-policy=Ignore; the controller writes with its own rights"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_ends_the_delay() {
        let day = SignedDuration::from_hours(24);
        assert_eq!(
            sooner(RESYNC, [None, Some(day)]),
            RESYNC,
            "changes far away do not delay a pass"
        );
        let minute = SignedDuration::from_mins(1);
        assert_eq!(sooner(RESYNC, [Some(day), Some(minute)]), Duration::from_mins(1));
        assert_eq!(sooner(RESYNC, [Some(minute), None]), Duration::from_mins(1));
        assert_eq!(sooner(RESYNC, [None, Some(-minute)]), Duration::ZERO);
    }
}
