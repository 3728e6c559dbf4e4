//! One pass over one extension.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::{ClusterExtension, keys};
use olm_image::{CanonicalRef, Reference, ReferenceError};
use olm_runtime::Feature;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use olm_status::upgrade::Upgrade;
use serde_json::json;

use super::act::{self, Order};
use super::call::{CallError, call, chain};
use super::decide::{self, Choice, Refusal, Step};
use super::failure::Failure;
use super::gather;
use super::helm::{self, HelmError};
use super::identity::{Inputs, Provider};
use super::model::{BundleRef, History};
use super::remove::{self, Removal};
use super::tags::TAG_INTERVAL;
use super::{Context, account, constraints, pull, report};
use crate::metrics;

/// Both are upstream's; what they stand for there is done before either goes.
const FINALIZERS: [&str; 2] = [keys::CLEANUP_UNPACK_FINALIZER, keys::CLEANUP_CONTENT_FINALIZER];
/// How soon a deletion is looked at again when no event says anything.
const REMOVAL_RECHECK: Duration = Duration::from_secs(30);
/// How soon something that only a change can mend is tried again all the same.
const BLOCKED_RECHECK: Duration = Duration::from_secs(1000);
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
            };
            return (outcome, retry(context, &name));
        }
    };
    let market = gather::market(context, &extension.spec).await;
    let releases = context.features.enabled(Feature::BundleReleaseSupport);
    let resolving = async { decide::choose(&extension.spec, &history, &market, releases) };
    let chosen = context
        .shared
        .metrics
        .measure(metrics::Step::Resolve, resolving)
        .await;
    let (deprecations, upgrade, successors) = match &chosen {
        Ok(choice) => (
            choice.deprecations.clone(),
            choice.upgrade.clone(),
            choice.successors.clone(),
        ),
        Err(_) => (None, decide::unresolved(&history), Vec::new()),
    };
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
    let (progress, action) = match progress {
        Ok(()) => {
            context.backoff.clear(&name);
            let again = if context.tags.knows(&name) {
                TAG_INTERVAL
            } else {
                RESYNC
            };
            (Progress::Mirrored, Action::requeue(again))
        }
        Err(Setback {
            progress,
            patience,
            pause,
        }) => {
            // A tag may mean something better by then.
            context.tags.forget(&name);
            let action = match &progress {
                Progress::Retrying(_) | Progress::Unresolved(_) => {
                    let delay = context.backoff.failed(name.clone());
                    Action::requeue(patience.map_or(delay, |most| delay.min(most)).max(pause))
                }
                _ => Action::requeue(BLOCKED_RECHECK),
            };
            tracing::warn!(ClusterExtension = name, ?progress, "not progressing");
            (progress, action)
        }
    };
    (
        Outcome {
            revisions: known(&history),
            progress,
            deprecations,
            upgrade,
        },
        action,
    )
}

/// Why a reconcile came no further.
struct Setback {
    progress: Progress,
    /// The longest to wait before the next try, where the usual delay may grow beyond it.
    patience: Option<Duration>,
    /// The shortest.
    pause: Duration,
}

/// Makes the newest revision what `choice` wants. `history` gains the revision made.
async fn advance(
    context: &Context,
    extension: &ClusterExtension,
    choice: &Choice,
    history: &mut History,
    now: Timestamp,
) -> Result<(), Setback> {
    let name = extension.name_any();
    let told = |failure: Failure| {
        context.shared.metrics.retried(failure.label());
        Setback {
            progress: failure.progress(&choice.bundle),
            patience: failure.patience(),
            pause: failure.pause(),
        }
    };
    let image = match locate(context, &name, &choice.bundle).await {
        Ok(image) => image,
        Err(failure) if present(history, &choice.bundle) => {
            // What is there already is kept up by its own controller and needs no image.
            tracing::warn!(
                ClusterExtension = name,
                error = chain(&failure),
                "the bundle's image cannot be found; what is installed is kept"
            );
            return Ok(());
        }
        Err(failure) => return Err(told(failure)),
    };
    let provider = async || {
        gather::provider(context)
            .await
            .map_err(|error| told(Failure::Call(error)))
    };
    // Asked for only where it matters: most bundles have no webhooks, and the newest revision remembers.
    let without = history.newest().and_then(|r| r.certificates.as_deref()) == Some(Provider::None.as_str());
    let assumed = if without {
        Provider::None
    } else {
        provider().await?
    };
    let config = act::config(extension);
    let inputs = Inputs {
        bundle: &choice.bundle,
        canonical_image: &image.to_string(),
        namespace: &extension.spec.namespace,
        config: config.as_ref(),
        provider: assumed,
    };
    let moved_from = choice.moved_from.as_deref();
    let step = decide::step(&name, act::deadline(extension), &inputs, moved_from, history, now);
    match step.map_err(refused)? {
        Step::Keep {
            revision,
            deadline_differs,
            moves_from,
        } => {
            if let (Some(from), Some(to)) = (moves_from, &choice.bundle.catalog) {
                act::move_catalog(context, &revision, &from, to)
                    .await
                    .map_err(told)?;
                history.moved(&revision, &from, to);
            }
            if deadline_differs {
                act::adjust_deadline(context, &revision, extension)
                    .await
                    .map_err(told)?;
            }
        }
        Step::Roll {
            name: revision,
            number,
        } => {
            tracing::info!(
                ClusterExtension = name,
                bundle = choice.bundle.name,
                version = choice.bundle.version,
                catalog = choice.bundle.catalog,
                revision,
                "rolling out"
            );
            let order = Order {
                extension,
                choice,
                image: &image,
                provider: if without { provider().await? } else { assumed },
                history,
                name: &revision,
                number,
                now,
            };
            let made = act::roll(context, &order).await.map_err(told)?;
            context.stores.made(&name, &made);
            tell_choice(context, extension, &choice.bundle, &revision);
            history.add(&made);
        }
    }
    Ok(())
}

fn tell_choice(context: &Context, extension: &ClusterExtension, bundle: &BundleRef, revision: &str) {
    let note = format!(
        "bundle {} with version {} of catalog {} was chosen; it is rolled out as revision {revision}",
        bundle.name,
        bundle.version,
        bundle.catalog.as_deref().unwrap_or("unknown")
    );
    let object = extension.object_ref(&());
    context.events.normal(object, "Resolved", "Resolve", &note);
}

/// The bundle's image by digest; asks the registry only when the catalog names a tag, and not each time.
async fn locate(context: &Context, extension: &str, bundle: &BundleRef) -> Result<CanonicalRef, Failure> {
    let reference: Reference = bundle
        .image
        .parse()
        .map_err(|error: ReferenceError| Failure::image(error.into()))?;
    if let Some(image) = reference.canonical() {
        context.tags.forget(extension);
        return Ok(image);
    }
    if let Some(known) = context.tags.recall(extension, &bundle.image, Instant::now()) {
        return Ok(known);
    }
    let image = pull::resolve(&context.puller, reference).await?;
    context
        .tags
        .learn(extension, &bundle.image, &image, Instant::now());
    Ok(image)
}

/// Whether the newest revision is of this very bundle.
fn present(history: &History, bundle: &BundleRef) -> bool {
    history
        .newest()
        .is_some_and(|newest| newest.bundle.same_bundle(bundle))
}

fn refused(refusal: Refusal) -> Setback {
    let progress = if refusal.terminal {
        Progress::Blocked(refusal.message)
    } else {
        Progress::Unresolved(refusal.message)
    };
    Setback {
        progress,
        patience: None,
        pause: Duration::ZERO,
    }
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
    match remove::remove(context, extension).await? {
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
            let name = extension.name_any();
            let uid = extension.metadata.uid.as_deref();
            let objects = gather::revisions(context, &name, uid).await?;
            let outcome = Outcome {
                revisions: known(&History::read(&objects)),
                progress: Progress::Removing(text),
                deprecations: None,
                upgrade: Upgrade::NothingInstalled,
            };
            report::write(context, extension, &outcome, &Time(Timestamp::now())).await?;
            Ok(Action::requeue(REMOVAL_RECHECK))
        }
    }
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
    if context.shared.impersonate {
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
