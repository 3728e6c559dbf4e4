//! Advance of an extension: turns a choice into the revision that carries it out.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use olm_api::ClusterExtension;
use olm_image::{CanonicalRef, Reference, ReferenceError};
use olm_status::cluster_extension::Progress;

use super::act::{self, Order};
use super::call::chain;
use super::decide::{self, Choice, Refusal, Step};
use super::failure::Failure;
use super::identity::{Inputs, Provider};
use super::model::{BundleRef, History};
use super::{Context, account, gather, pull};

/// Basis on which an extension is as its spec wants it.
pub(super) enum Sight {
    /// Everything was looked at.
    Seen,
    /// The registry could not be asked what the tag of the bundle's image means now.
    Unseen,
}

/// Reason why a reconcile came no further.
pub(super) struct Setback {
    pub progress: Progress,
    /// The longest to wait before the next try, where the usual delay may grow beyond it.
    pub patience: Option<Duration>,
    /// The shortest.
    pub pause: Duration,
}

/// Makes the newest revision what `choice` wants. `history` gains the revision made.
pub(super) async fn advance(
    context: &Context,
    extension: &ClusterExtension,
    choice: &Choice,
    history: &mut History,
    now: Timestamp,
) -> Result<Sight, Setback> {
    let name = extension.name_any();
    let told = |failure: Failure| {
        context.shared.metrics.retried(failure.label());
        Setback {
            progress: failure.progress(&choice.bundle),
            patience: failure.patience(),
            pause: failure.pause(),
        }
    };
    // Without an account that the policy demands nothing is written, and nothing is kept in repair.
    account::wanted(context.shared.accounts, extension).map_err(told)?;
    let (image, unseen) = match locate(context, &name, &choice.bundle).await {
        Ok(image) => (image, None),
        // What is installed is kept up by its own controller and needs no image; it remembers what the tag meant.
        Err(failure) => match remembered(history, &choice.bundle) {
            Some(image) => (image, Some(failure)),
            None => return Err(told(failure)),
        },
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
            if let Some(failure) = unseen {
                return Err(waiting_for_image(told(failure), history));
            }
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
    Ok(unseen.map_or(Sight::Seen, |failure| unseen_tag(context, &name, &failure)))
}

/// Counts and logs a tag that cannot be looked up while the spec asks for nothing new.
fn unseen_tag(context: &Context, extension: &str, failure: &Failure) -> Sight {
    context.shared.metrics.retried(failure.label());
    tracing::warn!(
        ClusterExtension = extension,
        error = chain(failure),
        "the bundle's image cannot be found; what is installed is kept"
    );
    Sight::Unseen
}

/// The setback with what waits for the image: a change of the spec, which needs the bundle rendered anew.
fn waiting_for_image(mut setback: Setback, history: &History) -> Setback {
    if let (Progress::Retrying(message) | Progress::Blocked(message), Some(newest)) =
        (&mut setback.progress, history.newest())
    {
        message
            .push_str(". The changed spec is rolled out when the image can be found; until then revision \"");
        message.push_str(&newest.name);
        message.push_str("\" stays");
    }
    setback
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

/// The image that the newest revision was rendered from, if that is of this very bundle and reference.
fn remembered(history: &History, bundle: &BundleRef) -> Option<CanonicalRef> {
    let newest = history
        .newest()
        .filter(|newest| newest.bundle.same_bundle(bundle) && newest.bundle.image == bundle.image)?;
    newest.image.as_deref()?.parse().ok()
}

pub(super) fn refused(refusal: Refusal) -> Setback {
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
