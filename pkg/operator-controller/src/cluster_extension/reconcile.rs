//! One pass over one extension.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use olm_api::{ClusterExtension, keys};
use olm_image::{CanonicalRef, Reference, ReferenceError};
use olm_runtime::Feature;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use serde_json::json;

use super::act::{self, Order};
use super::call::{CallError, call, chain};
use super::decide::{self, Choice, Refusal, Step};
use super::failure::Failure;
use super::gather;
use super::identity::{Inputs, Provider};
use super::model::{BundleRef, History};
use super::remove::{self, Removal};
use super::{Context, pull, report};

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
    // Read anew: the watch's copy may be older than our own last write of the status.
    let what = format!("reading ClusterExtension \"{name}\"");
    let Some(mut extension) = call(what, api.get_opt(name)).await? else {
        context.forget(name).await;
        return Ok(Action::await_change());
    };
    if extension.metadata.deletion_timestamp.is_some() {
        return delete(context, &api, &extension).await;
    }
    if let Some(missing) = with_finalizers(&extension) {
        extension = set_finalizers(&api, &extension, missing).await?;
    }
    warn_of_ignored(&extension);
    let now = Timestamp::now();
    let (outcome, action) = pass(context, &extension, now).await;
    report::write(context, &extension, &outcome, &Time(now)).await?;
    Ok(action)
}

/// Everything between reading the extension and writing its status.
async fn pass(context: &Context, extension: &ClusterExtension, now: Timestamp) -> (Outcome, Action) {
    let name = extension.name_any();
    let uid = extension.metadata.uid.as_deref();
    let mut history = match gather::revisions(&context.shared.client, &name, uid).await {
        Ok(objects) => History::read(&objects),
        Err(error) => {
            let text = chain(&error);
            tracing::warn!(ClusterExtension = name, error = text, "revisions cannot be read");
            let outcome = Outcome {
                revisions: Revisions::Unreadable(text),
                progress: Progress::Mirrored,
                deprecations: None,
            };
            return (outcome, retry(context, &name));
        }
    };
    let market = gather::market(context, &extension.spec).await;
    let releases = context.features.enabled(Feature::BundleReleaseSupport);
    let chosen = decide::choose(&extension.spec, &history, &market, releases);
    let deprecations = chosen
        .as_ref()
        .ok()
        .and_then(|choice| choice.deprecations.clone());
    let progress = match chosen {
        Ok(choice) => advance(context, extension, &choice, &mut history, now).await,
        Err(refusal) => Err(refused(refusal)),
    };
    let (progress, action) = match progress {
        Ok(()) => {
            context.backoff.clear(&name);
            (Progress::Mirrored, Action::requeue(RESYNC))
        }
        Err(progress) => {
            let action = match &progress {
                Progress::Retrying(_) => retry(context, &name),
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
        },
        action,
    )
}

/// Makes the newest revision what `choice` wants. `history` gains the revision made.
async fn advance(
    context: &Context,
    extension: &ClusterExtension,
    choice: &Choice,
    history: &mut History,
    now: Timestamp,
) -> Result<(), Progress> {
    let told = |failure: Failure| failure.progress(&choice.bundle);
    let image = match locate(context, &choice.bundle).await {
        Ok(image) => image,
        Err(failure) if present(history, &choice.bundle) => {
            // What is there already is kept up by its own controller and needs no image.
            tracing::warn!(
                ClusterExtension = extension.name_any(),
                error = chain(&failure),
                "the bundle's image cannot be found; what is installed is kept"
            );
            return Ok(());
        }
        Err(failure) => return Err(told(failure)),
    };
    let provider: Provider = gather::provider(context)
        .await
        .map_err(|error| told(Failure::Call(error)))?;
    let name = extension.name_any();
    let config = act::config(extension);
    let inputs = Inputs {
        bundle: &choice.bundle,
        canonical_image: &image.to_string(),
        namespace: &extension.spec.namespace,
        config: config.as_ref(),
        provider,
    };
    match decide::step(&name, act::deadline(extension), &inputs, history, now).map_err(refused)? {
        Step::Keep {
            revision,
            deadline_differs,
        } => {
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
                provider,
                history,
                name: &revision,
                number,
                now,
            };
            let made = act::roll(context, &order).await.map_err(told)?;
            history.add(&made);
        }
    }
    Ok(())
}

/// The bundle's image by digest; asks the registry only when the catalog names a tag.
async fn locate(context: &Context, bundle: &BundleRef) -> Result<CanonicalRef, Failure> {
    let reference: Reference = bundle
        .image
        .parse()
        .map_err(|error: ReferenceError| Failure::image(error.into()))?;
    pull::resolve(&context.puller, reference).await
}

/// Whether the newest revision is of this very bundle.
fn present(history: &History, bundle: &BundleRef) -> bool {
    history
        .newest()
        .is_some_and(|newest| newest.bundle.same_bundle(bundle))
}

fn refused(refusal: Refusal) -> Progress {
    if refusal.terminal {
        Progress::Blocked(refusal.message)
    } else {
        Progress::Retrying(refusal.message)
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
            Ok(Action::await_change())
        }
        Removal::Waiting(text) => {
            let name = extension.name_any();
            let uid = extension.metadata.uid.as_deref();
            let objects = gather::revisions(&context.shared.client, &name, uid).await?;
            let outcome = Outcome {
                revisions: known(&History::read(&objects)),
                progress: Progress::Removing(text),
                deprecations: None,
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

fn warn_of_ignored(extension: &ClusterExtension) {
    let named = extension
        .spec
        .service_account
        .as_ref()
        .and_then(|account| account.name.as_deref());
    if let Some(account) = named.filter(|name| !name.is_empty()) {
        tracing::info!(
            ClusterExtension = extension.name_any(),
            account,
            "spec.serviceAccount is deprecated and ignored; everything is done with the controller's own rights"
        );
    }
}
