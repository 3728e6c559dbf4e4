//! Getting content, and getting rid of it.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use olm_catalog_files::WalkError;
use olm_image::{CanonicalRef, Cause, Reference};
use olm_runtime::workers::aside;

use super::{Context, images::Stopped};
use crate::metrics::{PullResult, Step};
use crate::storage::{CatalogName, Generation, Origin, StorageError};

/// Why there is no new content. Its text is the condition's message.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    /// The image could not be had; only another spec helps.
    #[error("source catalog content: {0}")]
    Terminal(String, Cause),
    /// The image could not be had.
    #[error("source catalog content: {0}")]
    Source(String, Cause),
    /// The image is there, its catalog cannot be used.
    #[error("error storing fbc: {}", olm_runtime::telemetry::chain(.0))]
    Store(#[source] StorageError),
    /// Content cannot be removed.
    #[error("error deleting catalog content: {0}")]
    Remove(String),
    /// The process ends.
    #[error("error storing fbc: interrupted, the catalog is stored again at the next start")]
    Interrupted,
}

impl From<Stopped> for ActError {
    fn from(_: Stopped) -> Self {
        Self::Interrupted
    }
}

impl ActError {
    pub(super) fn terminal(&self) -> bool {
        matches!(self, Self::Terminal(..))
    }

    /// The reason of the event that tells of it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Terminal(..) | Self::Source(..) => "PullFailed",
            Self::Store(_) => "UnpackFailed",
            Self::Remove(_) => "RemoveFailed",
            Self::Interrupted => "Interrupted",
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
        // Upstream's mark goes where its cause begins: behind the step for a missing label.
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

    /// What is named as an image is none.
    fn no_reference(error: &olm_image::ReferenceError) -> Self {
        Self::Terminal(format!("terminal error: {error}"), Cause::Invalid)
    }
}

/// What is served after a pull.
#[derive(Debug)]
pub(super) struct Pulled {
    pub(super) generation: Arc<Generation>,
    /// How long it took, when it was not there already.
    pub(super) new: Option<Took>,
}

/// How long new content took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    pub(super) pull: Duration,
    pub(super) store: Duration,
}

/// Asks the registry what `requested` is and stores it when it is not what is stored. Nothing is
/// written when it is.
pub(super) async fn pull(
    context: &Arc<Context>,
    name: &CatalogName,
    requested: &str,
) -> Result<Pulled, ActError> {
    counted(context, bring(context, name, requested).await)
}

/// Stores what another replica found `requested` to be.
pub(super) async fn pull_resolved(
    context: &Arc<Context>,
    name: &CatalogName,
    requested: &str,
    resolved: &str,
) -> Result<Pulled, ActError> {
    counted(context, bring_resolved(context, name, requested, resolved).await)
}

fn counted(context: &Context, ended: Result<Pulled, ActError>) -> Result<Pulled, ActError> {
    let result = match &ended {
        Ok(Pulled { new: None, .. }) => Some(PullResult::Unchanged),
        Ok(_) => Some(PullResult::Stored),
        Err(error) => error.result(),
    };
    if let Some(result) = result {
        context.metrics.ended(result);
    }
    ended
}

async fn bring(context: &Arc<Context>, name: &CatalogName, requested: &str) -> Result<Pulled, ActError> {
    let reference: Reference = requested
        .parse()
        .map_err(|error| ActError::no_reference(&error))?;
    let image_error = |error: olm_image::Error| ActError::of(&error, &reference);
    let asked = Instant::now();
    let resolved = context.images.resolve(&reference).await?.map_err(image_error)?;
    context.metrics.took(Step::Resolve, asked.elapsed());
    if let Some(stored) = context.store.get(name) {
        let origin = &stored.manifest().origin;
        if origin.resolved == resolved.to_string() {
            if origin.requested == requested {
                return Ok(Pulled {
                    generation: stored,
                    new: None,
                });
            }
            let origin = Origin {
                requested: requested.to_owned(),
                ..origin.clone()
            };
            let guard = context.store.lock(name).await;
            let generation = blocking(context, name, move |context, name| {
                let _guard = guard;
                context.store.adopt(name, origin)
            })
            .await?;
            return Ok(Pulled {
                generation,
                new: None,
            });
        }
    }
    fetch(context, name, &reference, &resolved, requested).await
}

async fn bring_resolved(
    context: &Arc<Context>,
    name: &CatalogName,
    requested: &str,
    resolved: &str,
) -> Result<Pulled, ActError> {
    let reference: Reference = resolved.parse().map_err(|error| ActError::no_reference(&error))?;
    let resolved = context
        .images
        .resolve(&reference)
        .await?
        .map_err(|error| ActError::of(&error, &reference))?;
    fetch(context, name, &reference, &resolved, requested).await
}

async fn fetch(
    context: &Arc<Context>,
    name: &CatalogName,
    reference: &Reference,
    resolved: &CanonicalRef,
    requested: &str,
) -> Result<Pulled, ActError> {
    let image_error = |error: olm_image::Error| ActError::of(&error, reference);
    let guard = context.store.lock(name).await;
    // The signature policy counts for what the user asked for, on replicas that were told the digest, too.
    let asked: Reference = requested.parse().unwrap_or_else(|_| reference.clone());
    let pulling = Instant::now();
    let unpacked = context
        .images
        .fetch(name, &asked, resolved)
        .await?
        .map_err(image_error)?;
    let pull = pulling.elapsed();
    context.metrics.took(Step::Pull, pull);
    let origin = Origin {
        requested: requested.to_owned(),
        resolved: resolved.to_string(),
        unpacked_at: unix(unpacked.unpacked_at),
    };
    let _storing = aside(context.storing.acquire())
        .await
        .map_err(|_| ActError::Interrupted)?;
    let storing = Instant::now();
    let stored = blocking(context, name, move |context, name| {
        let _guard = guard;
        let interrupted = || context.shutdown.is_cancelled();
        context.store.store(
            name,
            &unpacked.root,
            origin,
            unix(SystemTime::now()),
            &interrupted,
        )
    })
    .await?;
    let store = storing.elapsed();
    context.metrics.took(Step::Store, store);
    // What is served was copied; the unpacked image would only take room.
    if let Err(error) = context.images.forget(name).await {
        tracing::warn!(catalog = %name, error = error.message(), "unpacked image stays for now");
    }
    let manifest = stored.manifest();
    tracing::info!(
        catalog = %name,
        image = manifest.origin.resolved,
        metas = manifest.counts.metas,
        pull_ms = pull.as_millis(),
        store_ms = store.as_millis(),
        "stored"
    );
    Ok(Pulled {
        generation: stored,
        new: Some(Took { pull, store }),
    })
}

/// Stops serving a catalog and removes all that is kept of it.
pub(super) async fn remove(context: &Arc<Context>, name: &CatalogName) -> Result<(), ActError> {
    let guard = context.store.lock(name).await;
    blocking(context, name, move |context, name| {
        let _guard = guard;
        context.store.remove(name)
    })
    .await
    .map_err(|error| match error {
        ActError::Store(error) => ActError::Remove(olm_runtime::telemetry::chain(&error)),
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

/// Runs work on the disk off the reactor's threads.
async fn blocking<T: Send + 'static>(
    context: &Arc<Context>,
    name: &CatalogName,
    work: impl FnOnce(&Context, &CatalogName) -> Result<T, StorageError> + Send + 'static,
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
