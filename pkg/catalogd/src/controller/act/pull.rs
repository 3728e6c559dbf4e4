//! Pulls images of catalogs and stores their content.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use olm_image::{CanonicalRef, Fetched, Reference};
use olm_runtime::workers::without_worker;
use tokio::sync::{OwnedMutexGuard, SemaphorePermit};

use super::{
    ActError, blocking, forget_unpacked,
    judge::{FailedImage, discard_rejected, pull_failed},
    lock,
    stream::{Streamed, stream},
};
use crate::{
    controller::{
        Context,
        images::{is_refusal, judged_reference},
    },
    metrics::{PullResult, PullStep},
    storage::{Generation, Origin, ValidCatalogName},
};

/// Content that is served after a pull.
#[derive(Debug)]
pub(in crate::controller) struct Pulled {
    pub(in crate::controller) generation: Arc<Generation>,
    /// Durations of the pull; `None` if the content was already stored.
    pub(in crate::controller) timings: Option<PullTimings>,
}

/// Durations of pulling and storing new content.
#[derive(Clone, Copy, Debug)]
pub(in crate::controller) struct PullTimings {
    pub(in crate::controller) pull: Duration,
    pub(in crate::controller) store: Duration,
}

/// Resolves `requested` and stores the image if it differs from the stored one. Writes nothing otherwise.
pub(in crate::controller) async fn pull(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
) -> Result<Pulled, ActError> {
    record_result(context, pull_requested(context, name, requested).await)
}

/// Stores the image to which another replica resolved `requested`.
pub(in crate::controller) async fn pull_resolved(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
    resolved: &str,
) -> Result<Pulled, ActError> {
    record_result(context, pull_digest(context, name, requested, resolved).await)
}

/// Pulls the image of stored content again. Pulls nothing if the content is not stored any more: an interrupted pull may have stored
/// other content since `origin` was read.
pub(super) async fn pull_again(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    origin: &Origin,
) -> Result<(), ActError> {
    let pulled = pull_if_stored(context, name, origin).await.transpose();
    pulled.map_or(Ok(()), |pulled| record_result(context, pulled).map(drop))
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
    let judged = judge_current(context, name, requested)
        .await
        .map_err(image_error)?;
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
    let accepted = match judged {
        // A policy that changed during the lookup counts from the next check on.
        Some(judged) if judged.origin == origin => judged.accepted,
        _ => context.images.accepts(&origin).await.unwrap_or(false),
    };
    // The fetch verifies the signatures, and reports a policy that cannot be used.
    if !accepted {
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

/// Stored content, judged by the signature policy.
struct JudgedOrigin {
    origin: Origin,
    /// The policy accepts the content without another check of its signatures.
    accepted: bool,
}

/// Judges the stored content if it belongs to the requested reference. A rejection needs no signatures, and thus no registry; the
/// content is then no longer served.
async fn judge_current(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
) -> Result<Option<JudgedOrigin>, olm_image::Error> {
    let stored = context.store.get(name);
    let origin = stored.map(|stored| stored.manifest().origin.clone());
    let Some(origin) = origin.filter(|origin| origin.requested == requested) else {
        return Ok(None);
    };
    match context.images.accepts(&origin).await {
        Err(error) if is_refusal(&error) => {
            discard_rejected(context, name).await;
            Err(error)
        }
        judged => Ok(Some(JudgedOrigin {
            origin,
            accepted: judged.unwrap_or(false),
        })),
    }
}

async fn pull_digest(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
    resolved: &str,
) -> Result<Pulled, ActError> {
    let (reference, resolved) = resolve_digest(context, resolved).await?;
    let guard = lock(context, name).await;
    fetch(context, name, guard, &reference, &resolved, requested).await
}

async fn pull_if_stored(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    origin: &Origin,
) -> Result<Option<Pulled>, ActError> {
    let (reference, resolved) = resolve_digest(context, &origin.resolved).await?;
    let guard = lock(context, name).await;
    let stored = context.store.get(name);
    if stored.is_none_or(|stored| stored.manifest().origin != *origin) {
        return Ok(None);
    }
    let pulled = fetch(context, name, guard, &reference, &resolved, &origin.requested).await;
    pulled.map(Some)
}

async fn resolve_digest(context: &Context, resolved: &str) -> Result<(Reference, CanonicalRef), ActError> {
    let reference: Reference = resolved
        .parse()
        .map_err(|error| ActError::invalid_reference(&error))?;
    let resolved = context.images.resolve(&reference).await?;
    let resolved = resolved.map_err(|error| ActError::of(&error, &reference))?;
    Ok((reference, resolved))
}

/// Image that a catalog asks for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    requested: &'a str,
    reference: &'a Reference,
    resolved: &'a CanonicalRef,
}

impl Wanted<'_> {
    fn origin(self, unpacked_at: SystemTime, verified: Option<String>) -> Origin {
        Origin {
            requested: self.requested.to_owned(),
            resolved: self.resolved.to_string(),
            unpacked_at: unix(unpacked_at),
            verified,
        }
    }

    /// Judges the stored content after the image could not be pulled; returns the error for the status.
    async fn failed(
        self,
        context: &Arc<Context>,
        name: &ValidCatalogName,
        guard: OwnedMutexGuard<()>,
        error: &olm_image::Error,
    ) -> ActError {
        let failed = FailedImage {
            requested: self.requested,
            resolved: self.resolved,
            error,
        };
        pull_failed(context, name, guard, failed).await;
        ActError::of(error, self.reference)
    }
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
    let wanted = Wanted {
        requested,
        reference,
        resolved,
    };
    let judged = judged_reference(requested, resolved);
    let pulling = Instant::now();
    let fetched = match context.images.fetch(name, &judged, resolved).await? {
        Ok(fetched) => fetched,
        Err(error) => return Err(wanted.failed(context, name, guard, &error).await),
    };
    let pull = pulling.elapsed();
    context.metrics.observe(PullStep::Pull, pull);
    let permit = store_permit(context).await?;
    let storing = Instant::now();
    let stored = store_fetched(context, name, guard, permit, wanted, fetched).await?;
    let storing = storing.elapsed();
    context.metrics.observe(PullStep::Store, storing);
    // The content was copied; an unpacked image would only occupy disk space.
    forget_unpacked(context, name);
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

/// Waits until a catalog may be stored.
async fn store_permit(context: &Context) -> Result<SemaphorePermit<'_>, ActError> {
    let permit = without_worker(context.store_permits.acquire()).await;
    permit.map_err(|_| ActError::Interrupted)
}

/// Stores the catalog of an image: from its layers if possible, else from the unpacked image.
async fn store_fetched(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    guard: OwnedMutexGuard<()>,
    permit: SemaphorePermit<'_>,
    wanted: Wanted<'_>,
    fetched: Fetched,
) -> Result<Arc<Generation>, ActError> {
    let (guard, unpacked, _permit) = match fetched {
        Fetched::Unpacked(unpacked) => (guard, unpacked, permit),
        Fetched::Layers(layers) => {
            let origin = wanted.origin(layers.transferred_at(), layers.verified().map(str::to_owned));
            let (guard, layers) = match stream(context, name, guard, *layers, origin).await? {
                Streamed::Stored(generation) => return Ok(generation),
                Streamed::Refused(guard, layers) => (guard, layers),
            };
            // Unpacking has slots of its own. Meanwhile other catalogs can be stored.
            drop(permit);
            match context.images.unpack(*layers).await? {
                Ok(unpacked) => (guard, unpacked, store_permit(context).await?),
                Err(error) => return Err(wanted.failed(context, name, guard, &error).await),
            }
        }
    };
    let origin = wanted.origin(unpacked.unpacked_at, unpacked.verified);
    store(context, name, guard, unpacked.root, origin).await
}

/// Stores the unpacked catalog below `root`. The store ends when this future is dropped: otherwise its thread would go on and keep the
/// lock, which a deletion waits for.
pub(super) async fn store(
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
        let interrupted = || interruption.is_cancelled();
        context.store.store(name, &root, origin, now(), &interrupted)
    })
    .await
}

/// Returns the time in seconds since the Unix epoch.
pub(super) fn now() -> i64 {
    unix(SystemTime::now())
}

fn unix(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
