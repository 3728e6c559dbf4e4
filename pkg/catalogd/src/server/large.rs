//! Memory of large projected objects on their way to clients, limited in total.
//!
//! A projected object goes to its client in one chunk of up to 16 MiB, which stays in memory until the client has read it. A chunk
//! of more than [`CHUNK`] bytes therefore holds a permit for each byte. If permits lack, the job forgets the object, and projects it
//! again when they are free: a response that waits takes no memory, and clients that do not read never delay small objects.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{chunk::CHUNK, read::ReadError};

/// Maximum total size of large objects on their way to clients, in bytes. The largest object fits twice.
const MAX_LARGE_BYTES: u32 = 32 * 1024 * 1024;
/// Timeout of a response that waits before its first chunk.
pub(super) const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);

/// Permits of all large objects, one for each byte. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct LargeObjects(Arc<Semaphore>);

impl Default for LargeObjects {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LARGE_BYTES as usize)))
    }
}

impl LargeObjects {
    /// Returns a reservation without permits.
    pub(super) fn nothing(&self) -> Reservation {
        Reservation {
            all: self.clone(),
            permits: None,
        }
    }

    /// Waits for permits for `size` bytes.
    pub(super) async fn reserve(&self, size: usize) -> Reservation {
        Reservation {
            all: self.clone(),
            // The semaphore is never closed.
            permits: self.0.clone().acquire_many_owned(clamp(size)).await.ok(),
        }
    }
}

/// Permits of one response, for the chunk that its job produces.
#[derive(Debug)]
pub(super) struct Reservation {
    all: LargeObjects,
    permits: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Adds permits until they are enough for `size` bytes, without waiting for them.
    pub(super) fn cover(&mut self, size: usize) -> Result<(), ReadError> {
        let held = self.permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = clamp(size).saturating_sub(clamp(held));
        let Ok(added) = self.all.0.clone().try_acquire_many_owned(missing) else {
            return Err(ReadError::TooManyLarge { size });
        };
        match &mut self.permits {
            Some(permits) => permits.merge(added),
            none => *none = Some(added),
        }
        Ok(())
    }

    /// Waits for permits for `size` bytes, in place of those held.
    pub(super) async fn wait(&mut self, size: usize) {
        self.permits = None;
        *self = self.all.reserve(size).await;
    }

    /// Takes the permits of a chunk of `size` bytes, none for a small one. All others are free again.
    pub(super) fn take(&mut self, size: usize) -> Option<OwnedSemaphorePermit> {
        let mut permits = self.permits.take()?;
        let part = size.min(permits.num_permits());
        if size <= CHUNK { None } else { permits.split(part) }
    }
}

/// Returns the number of permits for `size` bytes: never more than there are.
fn clamp(size: usize) -> u32 {
    u32::try_from(size).map_or(MAX_LARGE_BYTES, |size| size.min(MAX_LARGE_BYTES))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const ALL: usize = MAX_LARGE_BYTES as usize;

    #[test]
    fn permits_last_as_long_as_the_chunk() {
        let large = LargeObjects::default();
        let mut job = large.nothing();
        job.cover(ALL - 10).unwrap();
        job.cover(100).unwrap();
        let chunk = job.take(ALL / 2);
        assert_eq!(large.0.available_permits(), ALL / 2, "the others are free");
        let mut other = large.nothing();
        let lack = other.cover(ALL / 2 + 1);
        assert!(matches!(lack, Err(ReadError::TooManyLarge { .. })));
        assert!(large.reserve(ALL).now_or_never().is_none());
        drop(chunk);
        other.cover(usize::MAX).unwrap();
        assert_eq!(large.0.available_permits(), 0);
        assert!(other.take(CHUNK).is_none(), "a small chunk needs none");
        assert_eq!(large.0.available_permits(), ALL);
    }
}
