//! Pulls, stores, judges and removes the content of a catalog.

mod error;
mod judge;
mod pull;
mod stream;

use std::sync::Arc;

use olm_runtime::workers::without_worker;
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument as _;

pub(super) use self::{
    error::ActError,
    judge::{judge_stored, reject_stored},
    pull::{Pulled, pull, pull_resolved},
};
use super::Context;
use crate::storage::{StorageError, ValidCatalogName};

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

/// Removes the unpacked image of a catalog in the background: the removal of a large one takes as long as a write of the status.
fn forget_unpacked(context: &Arc<Context>, name: &ValidCatalogName) {
    let (forgetting, name) = (context.clone(), name.clone());
    let forget = async move {
        // A pull that starts meanwhile holds the lock until it has stored what it unpacked.
        let _guard = forgetting.store.lock(&name).await;
        if let Err(error) = forgetting.images.forget(&name).await {
            tracing::warn!(error = error.message(), "could not remove the unpacked image");
        }
    };
    context.cleanups.spawn(forget.in_current_span());
}

/// Waits until an interrupted pull of a catalog has ended. Its thread may be past the last check for an interruption, and then
/// publishes content of a former spec. Interruption bounds the wait.
pub(super) async fn await_interrupted(context: &Context, name: &ValidCatalogName) {
    drop(lock(context, name).await);
}

/// Waits for the lock of a catalog's content without a worker: its holder may be parsing a large catalog.
async fn lock(context: &Context, name: &ValidCatalogName) -> OwnedMutexGuard<()> {
    without_worker(context.store.lock(name)).await
}

/// Runs disk work on a blocking thread. Its panic goes on in the caller, where the guard of reconciles reports it.
async fn blocking<T: Send + 'static>(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    work: impl FnOnce(&Context, &ValidCatalogName) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, ActError> {
    let (context, name) = (context.clone(), name.clone());
    match tokio::task::spawn_blocking(move || work(&context, &name)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(StorageError::Interrupted)) => Err(ActError::Interrupted),
        Ok(Err(error)) => Err(ActError::Store(error)),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(ActError::Interrupted),
        },
    }
}

#[cfg(test)]
mod tests;
