//! Stores a catalog while its layers are decompressed, without unpacking them to disk.

use std::sync::Arc;

use olm_catalog_files::{InOrder, Unordered, WalkLimits};
use olm_image::{Layers, Reading, StreamEntry, StreamError};
use olm_runtime::workers::without_worker;
use tokio::sync::OwnedMutexGuard;

use super::{ActError, blocking, pull::now};
use crate::{
    controller::Context,
    storage::{Generation, Origin, Source, StorageError, ValidCatalogName, VisitFile},
};

/// Result of storing a catalog from its layers.
pub(super) enum Streamed {
    Stored(Arc<Generation>),
    /// The layers must be unpacked, perhaps because the catalog is invalid. The lock of the catalog's content is still held.
    Refused(OwnedMutexGuard<()>, Box<Layers>),
}

/// Stores the catalog in `layers`. Stores it only if the result is that of unpacking and storing; all other cases are refused. The store ends
/// at shutdown and when this future is dropped: `guard` and `layers` are held until its thread has ended.
pub(super) async fn stream(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    guard: OwnedMutexGuard<()>,
    layers: Layers,
    origin: Origin,
) -> Result<Streamed, ActError> {
    let Ok(reading) = without_worker(layers.begin()).await else {
        return Err(ActError::Interrupted);
    };
    let interruption = context.shutdown.child_token();
    let _interrupts = interruption.clone().drop_guard();
    let _stops = reading.guard();
    let storing = blocking(context, name, move |context, name| {
        let mut source = LayerFiles {
            layers: &layers,
            reading: &reading,
        };
        let interrupted = || interruption.is_cancelled();
        let stored = context
            .store
            .store_from(name, &mut source, origin, now(), &interrupted);
        match stored {
            Err(StorageError::Interrupted) => Err(StorageError::Interrupted),
            stored => Ok((layers, guard, stored)),
        }
    });
    // The store checks for interruption at files of the catalog only. At other entries, the guard of the reading stops the thread.
    let storing = context.shutdown.run_until_cancelled(storing).await;
    let (layers, guard, stored) = storing.unwrap_or(Err(ActError::Interrupted))?;
    match stored {
        Ok(generation) => {
            drop(guard);
            context.cleanups.spawn_blocking(move || drop(layers));
            Ok(Streamed::Stored(generation))
        }
        Err(error) => {
            let reason = olm_text::chain(&error);
            tracing::info!(reason, "unpacking the image to disk, which takes longer");
            Ok(Streamed::Refused(guard, Box::new(layers)))
        }
    }
}

/// Files of a catalog in layers.
struct LayerFiles<'a> {
    layers: &'a Layers,
    reading: &'a Reading,
}

/// End of a stream before the end of the layers.
enum Halt {
    /// The store wants no more files.
    Enough,
    Failed(StorageError),
    Unordered(Unordered),
}

impl Source for LayerFiles<'_> {
    fn each(&mut self, limits: &WalkLimits, visit: &mut VisitFile<'_>) -> Result<(), StorageError> {
        let mut order = InOrder::new(limits);
        let mut pass = |entry: StreamEntry<'_>| {
            let Some((size, content)) = entry.file else {
                return order.folder(entry.path).map_err(Halt::Unordered);
            };
            let name = order.file(entry.path, size).map_err(Halt::Unordered)?;
            match visit(&name, size, content) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Halt::Enough),
                Err(error) => Err(Halt::Failed(error)),
            }
        };
        let refused = |reason: String| Err(StorageError::Unstreamable(reason));
        match self.layers.each(self.reading, &mut pass) {
            Ok(()) => order.finish().or_else(|reason| refused(reason.to_string())),
            Err(StreamError::Visitor(Halt::Enough)) => Ok(()),
            Err(StreamError::Visitor(Halt::Failed(error))) => Err(error),
            Err(StreamError::Visitor(Halt::Unordered(reason))) => refused(reason.to_string()),
            Err(StreamError::Unusual(reason)) => refused(reason.to_owned()),
            Err(StreamError::Unpack(error)) => refused(olm_text::chain(&error)),
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
