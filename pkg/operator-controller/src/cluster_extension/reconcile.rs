//! One pass over one extension.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::{ClusterExtension, keys};
use olm_runtime::Feature;
use olm_runtime::guard::Panicked;
use olm_runtime::workers::aside;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use olm_status::upgrade::Upgrade;
use serde_json::json;

use super::act;
use super::advance::{Setback, Sight, advance, refused};
use super::call::{CallError, call, chain};
use super::decide;
use super::gather;
use super::helm::{self, HelmError};
use super::model::History;
use super::remove::{self, Removal};
use super::tags::TAG_INTERVAL;
use super::{Context, account, constraints, report};
use crate::{ServiceAccountPolicy, metrics};

/// Both are upstream's; what they stand for there is done before either goes.
const FINALIZERS: [&str; 2] = [keys::CLEANUP_UNPACK_FINALIZER, keys::CLEANUP_CONTENT_FINALIZER];
/// How soon a deletion is looked at again when no event says anything.
const REMOVAL_RECHECK: Duration = Duration::from_secs(30);
/// How soon something that only a change can mend is tried again all the same.
const BLOCKED_RECHECK: Duration = Duration::from_secs(1000);
/// Longest delay before a catalog or a registry that did not answer is asked again: no event tells that it is back.
const UNSEEN_RECHECK: Duration = Duration::from_mins(2);
/// How soon all is looked at again although nothing is known to have changed: events can be lost, and certificates made here end.
const RESYNC: Duration = Duration::from_hours(6);

/// Brings the extension `name` one step further and says when to look again.
pub(crate) async fn reconcile(context: &Context, name: &str) -> Result<Action, CallError> {
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let Some(mut extension) = read(context, &api, name).await? else {
        context.forget(name).await;
        return Ok(Action::await_change());
    };
    if extension.metadata.deletion_timestamp.is_some() {
        return delete(context, &api, &extension).await;
    }
    if let Some(missing) = with_finalizers(&extension) {
        extension = set_finalizers(&api, &extension, missing).await?;
        context.stores.wrote(&extension);
    }
    warn_of_ignored(context, &extension);
    let now = Timestamp::now();
    let (outcome, action) = pass(context, &extension, now).await;
    report::write(context, &extension, &outcome, &Time(now)).await?;
    Ok(action)
}

/// The extension, from the watch where that is as new as our own last write.
async fn read(
    context: &Context,
    api: &Api<ClusterExtension>,
    name: &str,
) -> Result<Option<ClusterExtension>, CallError> {
    match context.stores.extension(name) {
        Some(known) => Ok(Some(known)),
        None => call(format!("reading ClusterExtension \"{name}\""), api.get_opt(name)).await,
    }
}

/// Shows a panic in the status of the extension.
pub(crate) async fn show_panic(context: &Context, name: &str, panicked: &Panicked) -> Result<(), CallError> {
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let Some(extension) = read(context, &api, name).await? else {
        return Ok(());
    };
    let uid = extension.metadata.uid.as_deref();
    let objects = gather::revisions(context, name, uid).await?;
    let outcome = Outcome {
        revisions: known(&History::read(&objects)),
        progress: Progress::Retrying(panicked.to_string()),
        deprecations: None,
        upgrade: Upgrade::Unknown,
        catalogs: None,
    };
    report::write(context, &extension, &outcome, &Time(Timestamp::now())).await
}

/// Everything between reading the extension and writing its status.
async fn pass(context: &Context, extension: &ClusterExtension, now: Timestamp) -> (Outcome, Action) {
    let name = extension.name_any();
    let uid = extension.metadata.uid.as_deref();
    let revisions = async {
        let mut objects = gather::revisions(context, &name, uid).await?;
        if objects.is_empty()
            && let Some(taken) = helm::take_over(context, extension, &Time(now)).await?
        {
            context.stores.made(&name, &taken);
            objects.push(taken);
        }
        account::follow(context, extension, &objects).await?;
        Ok::<_, HelmError>(objects)
    };
    let mut history = match revisions.await {
        Ok(objects) => History::read(&objects),
        Err(error) => {
            let text = chain(&error);
            tracing::warn!(ClusterExtension = name, error = text, "revisions cannot be read");
            let outcome = Outcome {
                revisions: Revisions::Unreadable(text),
                progress: Progress::Mirrored,
                deprecations: None,
                upgrade: Upgrade::Unknown,
                catalogs: None,
            };
            return (outcome, retry(context, &name));
        }
    };
    let pruned = prune(context, &name, &history).await;
    let market = aside(gather::market(context, &extension.spec)).await;
    let releases = context.features.enabled(Feature::BundleReleaseSupport);
    let resolving = async { decide::choose(&extension.spec, &history, &market, releases) };
    let chosen = context
        .shared
        .metrics
        .measure(metrics::Step::Resolve, resolving)
        .await;
    let (deprecations, upgrade, successors, left_out) = match &chosen {
        Ok(choice) => (
            choice.deprecations.clone(),
            choice.upgrade.clone(),
            choice.successors.clone(),
            choice.left_out.as_slice(),
        ),
        Err(_) => (None, decide::unresolved(&history), Vec::new(), &[][..]),
    };
    let catalogs = market.degraded(left_out);
    let progress = match chosen {
        Ok(choice) => match constraints::check(context, extension, &choice, &history).await {
            Ok(()) => advance(context, extension, &choice, &mut history, now).await,
            Err(progress) => {
                context.shared.metrics.retried("constraints");
                Err(Setback {
                    progress,
                    patience: Some(constraints::RECHECK),
                    pause: Duration::ZERO,
                })
            }
        },
        Err(refusal) => {
            context.shared.metrics.retried("resolution");
            Err(refused(refusal))
        }
    };
    context.note(extension, &history, successors);
    let seen = !matches!(progress, Ok(Sight::Unseen)) && !market.incomplete() && pruned;
    let (progress, again) = next(context, &name, progress, seen);
    (
        Outcome {
            revisions: known(&history),
            progress,
            deprecations,
            upgrade,
            catalogs,
        },
        Action::requeue(again),
    )
}

/// Returns the progress for the status, and the delay until the next pass. `seen` is true if no pass is needed without an event.
fn next(context: &Context, name: &str, progress: Result<Sight, Setback>, seen: bool) -> (Progress, Duration) {
    let (progress, again) = match progress {
        Ok(_) => {
            context.backoff.clear(&name.to_owned());
            let again = if context.tags.knows(name) {
                TAG_INTERVAL
            } else {
                RESYNC
            };
            (Progress::Mirrored, again)
        }
        Err(Setback {
            progress,
            patience,
            pause,
        }) => {
            // A tag may mean something better by then.
            context.tags.forget(name);
            let again = match &progress {
                Progress::Retrying(_) | Progress::Unresolved(_) => {
                    let delay = context.backoff.failed(name.to_owned());
                    patience.map_or(delay, |most| delay.min(most)).max(pause)
                }
                _ => BLOCKED_RECHECK,
            };
            tracing::warn!(ClusterExtension = name, ?progress, "not progressing");
            (progress, again)
        }
    };
    let tried = matches!(progress, Progress::Retrying(_) | Progress::Unresolved(_));
    let again = if seen {
        context.unseen.clear(&name.to_owned());
        again
    } else if tried {
        again
    } else {
        let delay = context.unseen.failed(name.to_owned());
        delay.min(UNSEEN_RECHECK).min(again)
    };
    (progress, again)
}

/// Deletes superfluous archived revisions; false if that is to be tried again.
async fn prune(context: &Context, name: &str, history: &History) -> bool {
    let pruned = act::prune(context, history).await;
    if let Err(error) = &pruned {
        tracing::warn!(
            ClusterExtension = name,
            error = chain(error),
            "an archived revision cannot be deleted; trying again"
        );
    }
    pruned.is_ok()
}

fn retry(context: &Context, name: &str) -> Action {
    Action::requeue(context.backoff.failed(name.to_owned()))
}

fn known(history: &History) -> Revisions {
    Revisions::Known {
        installed: history.installed.as_ref().map(super::model::Revision::view),
        rolling_out: history
            .rolling_out
            .iter()
            .map(super::model::Revision::view)
            .collect(),
    }
}

async fn delete(
    context: &Context,
    api: &Api<ClusterExtension>,
    extension: &ClusterExtension,
) -> Result<Action, CallError> {
    let ours = |finalizer: &String| FINALIZERS.contains(&finalizer.as_str());
    if !extension.finalizers().iter().any(ours) {
        return Ok(Action::await_change());
    }
    let removal = match remove::remove(context, extension).await {
        Ok(removal) => removal,
        Err(error) => {
            let text = format!("being deleted: {}", chain(&error));
            show_removal(context, extension, text).await?;
            return Err(error);
        }
    };
    match removal {
        Removal::Done => {
            let left = extension
                .finalizers()
                .iter()
                .filter(|f| !ours(f))
                .cloned()
                .collect();
            match set_finalizers(api, extension, left).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
            tracing::info!(ClusterExtension = extension.name_any(), "removed");
            let note = "everything that was installed for it is removed";
            context
                .events
                .normal(extension.object_ref(&()), "Uninstalled", "Remove", note);
            Ok(Action::await_change())
        }
        Removal::Waiting(text) => {
            show_removal(context, extension, text).await?;
            Ok(Action::requeue(REMOVAL_RECHECK))
        }
    }
}

/// Shows in the status what a removal waits for, or fails at.
async fn show_removal(
    context: &Context,
    extension: &ClusterExtension,
    text: String,
) -> Result<(), CallError> {
    let uid = extension.metadata.uid.as_deref();
    let revisions = match gather::revisions(context, &extension.name_any(), uid).await {
        Ok(objects) => known(&History::read(&objects)),
        Err(error) => Revisions::Unreadable(chain(&error)),
    };
    let outcome = Outcome {
        revisions,
        progress: Progress::Removing(text),
        deprecations: None,
        upgrade: Upgrade::NothingInstalled,
        catalogs: None,
    };
    report::write(context, extension, &outcome, &Time(Timestamp::now())).await
}

/// All finalizers with ours added; `None` when none is missing.
fn with_finalizers(extension: &ClusterExtension) -> Option<Vec<String>> {
    let mut all = extension.finalizers().to_vec();
    for finalizer in FINALIZERS {
        if !all.iter().any(|present| present == finalizer) {
            all.push(finalizer.to_owned());
        }
    }
    (all.len() != extension.finalizers().len()).then_some(all)
}

async fn set_finalizers(
    api: &Api<ClusterExtension>,
    extension: &ClusterExtension,
    finalizers: Vec<String>,
) -> Result<ClusterExtension, CallError> {
    let name = extension.name_any();
    // With the version read: a list is replaced whole, and somebody else's entry must not be lost.
    let patch = json!({ "metadata": {
        "resourceVersion": extension.metadata.resource_version,
        "finalizers": finalizers,
    }});
    let what = format!("setting the finalizers of ClusterExtension \"{name}\"");
    call(
        what,
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)),
    )
    .await
}

fn warn_of_ignored(context: &Context, extension: &ClusterExtension) {
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
            ClusterExtension = extension.name_any(),
            account,
            "spec.serviceAccount is ignored by --service-account-policy=Ignore; everything is done with the controller's own rights"
        );
    }
}
