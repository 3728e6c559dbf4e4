//! Pulls, stores and removes the content of a catalog.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use olm_api::event::Reason;
use olm_catalog_files::WalkError;
use olm_image::{CanonicalRef, Cause, Reference};
use olm_runtime::workers::without_worker;
use tokio::sync::OwnedMutexGuard;

use super::{
    Context,
    images::{ShuttingDown, judged_reference},
};
use crate::metrics::{PullResult, PullStep};
use crate::storage::{Generation, Origin, StorageError, ValidCatalogName};

/// Failure to pull, store or remove content. Its text is the message of the condition.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    /// The image cannot be pulled until the spec changes.
    #[error("source catalog content: {0}")]
    Terminal(String, Cause),
    /// The image cannot be pulled now.
    #[error("source catalog content: {0}")]
    Source(String, Cause),
    /// The image was pulled, but its catalog cannot be used.
    #[error("error storing fbc: {}", olm_text::chain(.0))]
    Store(#[source] StorageError),
    /// The content cannot be removed.
    #[error("error deleting catalog content: {0}")]
    Remove(String),
    /// The process is shutting down.
    #[error("error storing fbc: interrupted, the catalog is stored again at the next start")]
    Interrupted,
}

impl From<ShuttingDown> for ActError {
    fn from(_: ShuttingDown) -> Self {
        Self::Interrupted
    }
}

impl ActError {
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(..))
    }

    /// Returns the reason of the event for this error.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Terminal(..) | Self::Source(..) => Reason::PullFailed,
            Self::Store(_) => Reason::UnpackFailed,
            Self::Remove(_) => Reason::RemoveFailed,
            Self::Interrupted => Reason::Interrupted,
        }
    }

    fn result(&self) -> Option<PullResult> {
        match self {
            Self::Terminal(_, cause) | Self::Source(_, cause) => Some(PullResult::Image(*cause)),
            Self::Store(
                StorageError::Io { .. }
                | StorageError::Damaged { .. }
                | StorageError::Walk(WalkError::Read { .. }),
            ) => Some(PullResult::Disk),
            Self::Store(_) => Some(PullResult::Content),
            Self::Remove(_) | Self::Interrupted => None,
        }
    }

    fn of(error: &olm_image::Error, reference: &Reference) -> Self {
        let (terminal, message) = (error.terminal_for(reference), error.message());
        // Upstream puts its "terminal error" mark before the cause: behind the step for a missing label.
        let step = if error.missing_label() {
            "error applying image: "
        } else {
            ""
        };
        if terminal {
            Self::Terminal(format!("{step}terminal error: {message}"), error.cause())
        } else {
            Self::Source(format!("{step}{message}"), error.cause())
        }
    }

    /// Returns the error for a text that is not an image reference.
    fn invalid_reference(error: &olm_image::ReferenceError) -> Self {
        Self::Terminal(format!("terminal error: {error}"), Cause::Invalid)
    }
}

/// Content that is served after a pull.
#[derive(Debug)]
pub(super) struct Pulled {
    pub(super) generation: Arc<Generation>,
    /// Durations of the pull; `None` if the content was already stored.
    pub(super) timings: Option<PullTimings>,
}

/// Durations of pulling and storing new content.
#[derive(Clone, Copy, Debug)]
pub(super) struct PullTimings {
    pub(super) pull: Duration,
    pub(super) store: Duration,
}

/// Resolves `requested` and stores the image if it differs from the stored one. Writes nothing otherwise.
pub(super) async fn pull(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
) -> Result<Pulled, ActError> {
    record_result(context, pull_requested(context, name, requested).await)
}

/// Stores the image to which another replica resolved `requested`.
pub(super) async fn pull_resolved(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
    resolved: &str,
) -> Result<Pulled, ActError> {
    record_result(context, pull_digest(context, name, requested, resolved).await)
}

fn record_result(context: &Context, ended: Result<Pulled, ActError>) -> Result<Pulled, ActError> {
    let result = match &ended {
        Ok(Pulled { timings: None, .. }) => Some(PullResult::Unchanged),
        Ok(_) => Some(PullResult::Stored),
        Err(error) => error.result(),
    };
    if let Some(result) = result {
        context.metrics.count_pull(result);
    }
    ended
}

async fn pull_requested(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
) -> Result<Pulled, ActError> {
    let reference: Reference = requested
        .parse()
        .map_err(|error| ActError::invalid_reference(&error))?;
    let image_error = |error: olm_image::Error| ActError::of(&error, &reference);
    // A rejection needs no signatures, and thus no registry.
    if let Some(stored) = context.store.get(name)
        && stored.manifest().origin.requested == requested
        && let Err(error) = context.images.accepts(&stored.manifest().origin).await
        && is_refusal(&error)
    {
        let guard = lock(context, name).await;
        discard_refused(context, name, guard).await;
        return Err(image_error(error));
    }
    let started = Instant::now();
    let resolved = context.images.resolve(&reference).await?.map_err(image_error)?;
    context.metrics.observe(PullStep::Resolve, started.elapsed());
    // Under the lock: an interrupted pull may still be storing other content.
    let guard = lock(context, name).await;
    let stored = context.store.get(name);
    let Some(stored) = stored.filter(|stored| stored.manifest().origin.resolved == resolved.to_string())
    else {
        return fetch(context, name, guard, &reference, &resolved, requested).await;
    };
    let origin = Origin {
        requested: requested.to_owned(),
        ..stored.manifest().origin.clone()
    };
    // The fetch verifies the signatures, and reports a policy that cannot be used.
    if !context.images.accepts(&origin).await.unwrap_or(false) {
        return fetch(context, name, guard, &reference, &resolved, requested).await;
    }
    let generation = if stored.manifest().origin == origin {
        stored
    } else {
        blocking(context, name, move |context, name| {
            let _guard = guard;
            context.store.set_origin(name, origin)
        })
        .await?
    };
    Ok(Pulled {
        generation,
        timings: None,
    })
}

async fn pull_digest(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
    resolved: &str,
) -> Result<Pulled, ActError> {
    let reference: Reference = resolved
        .parse()
        .map_err(|error| ActError::invalid_reference(&error))?;
    let resolved = context
        .images
        .resolve(&reference)
        .await?
        .map_err(|error| ActError::of(&error, &reference))?;
    let guard = lock(context, name).await;
    fetch(context, name, guard, &reference, &resolved, requested).await
}

/// Pulls and stores an image. `guard` is the lock of the catalog's content.
async fn fetch(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    guard: OwnedMutexGuard<()>,
    reference: &Reference,
    resolved: &CanonicalRef,
    requested: &str,
) -> Result<Pulled, ActError> {
    let judged = judged_reference(requested, resolved);
    let pulling = Instant::now();
    let unpacked = match context.images.fetch(name, &judged, resolved).await? {
        Ok(unpacked) => unpacked,
        Err(error) => {
            if is_refusal(&error) {
                discard_refused(context, name, guard).await;
            }
            return Err(ActError::of(&error, reference));
        }
    };
    let pull = pulling.elapsed();
    context.metrics.observe(PullStep::Pull, pull);
    let origin = Origin {
        requested: requested.to_owned(),
        resolved: resolved.to_string(),
        unpacked_at: unix(unpacked.unpacked_at),
        verified: unpacked.verified,
    };
    let _permit = without_worker(context.store_permits.acquire())
        .await
        .map_err(|_| ActError::Interrupted)?;
    let storing = Instant::now();
    let stored = store(context, name, guard, unpacked.root, origin).await?;
    let storing = storing.elapsed();
    context.metrics.observe(PullStep::Store, storing);
    // The content was copied; the unpacked image would only occupy disk space.
    if let Err(error) = context.images.forget(name).await {
        tracing::warn!(error = error.message(), "could not remove the unpacked image");
    }
    let manifest = stored.manifest();
    tracing::info!(
        image = manifest.origin.resolved,
        metas = manifest.counts.metas,
        pull_ms = pull.as_millis(),
        store_ms = storing.as_millis(),
        "stored catalog content"
    );
    Ok(Pulled {
        generation: stored,
        timings: Some(PullTimings { pull, store: storing }),
    })
}

/// Returns true if the signature policy refuses an image. A policy that cannot be used refuses nothing.
fn is_refusal(error: &olm_image::Error) -> bool {
    matches!(error, olm_image::Error::Refused { .. })
}

/// Stops serving the stored content and removes it after a refusal. Content that the present policy accepts stays: the
/// policy may have refused only a newer image.
async fn discard_refused(context: &Arc<Context>, name: &ValidCatalogName, guard: OwnedMutexGuard<()>) {
    let Some(stored) = context.store.get(name) else {
        return;
    };
    match context.images.accepts(&stored.manifest().origin).await {
        Ok(true) => return,
        Err(error) if !is_refusal(&error) => return,
        Ok(false) | Err(_) => {}
    }
    tracing::warn!("the signature policy does not accept the stored content, which is no longer served");
    let removed = blocking(context, name, move |context, name| {
        let _guard = guard;
        context.store.remove(name)
    });
    if let Err(error) = removed.await {
        let error = olm_text::chain(&error);
        tracing::warn!(
            error,
            "could not remove refused content; a restart judges it again"
        );
    }
}

/// Stores the unpacked catalog below `root`. The store ends when this future is dropped: otherwise its thread would go on and keep the
/// lock, which a deletion waits for.
async fn store(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    guard: OwnedMutexGuard<()>,
    root: PathBuf,
    origin: Origin,
) -> Result<Arc<Generation>, ActError> {
    let interruption = context.shutdown.child_token();
    let _interrupts = interruption.clone().drop_guard();
    blocking(context, name, move |context, name| {
        let _guard = guard;
        let now = unix(SystemTime::now());
        let interrupted = || interruption.is_cancelled();
        context.store.store(name, &root, origin, now, &interrupted)
    })
    .await
}

/// Stops serving a catalog and removes its content, its unpacked image and its history.
pub(super) async fn remove(context: &Arc<Context>, name: &ValidCatalogName) -> Result<(), ActError> {
    let guard = lock(context, name).await;
    blocking(context, name, move |context, name| {
        let _guard = guard;
        context.store.remove(name)
    })
    .await
    .map_err(|error| match error {
        ActError::Store(error) => ActError::Remove(olm_text::chain(&error)),
        other => other,
    })?;
    context
        .images
        .forget(name)
        .await
        .map_err(|error| ActError::Remove(error.message()))?;
    context.forget(name);
    Ok(())
}

/// Waits for the lock of a catalog's content without a worker: its holder may be parsing a large catalog.
async fn lock(context: &Context, name: &ValidCatalogName) -> OwnedMutexGuard<()> {
    without_worker(context.store.lock(name)).await
}

/// Runs disk work on a blocking thread.
async fn blocking<T: Send + 'static>(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    work: impl FnOnce(&Context, &ValidCatalogName) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, ActError> {
    let (context, name) = (context.clone(), name.clone());
    match tokio::task::spawn_blocking(move || work(&context, &name)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(StorageError::Interrupted)) | Err(_) => Err(ActError::Interrupted),
        Ok(Err(error)) => Err(ActError::Store(error)),
    }
}

fn unix(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
