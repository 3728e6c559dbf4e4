//! Limits on the resources that an archive may use.

use std::{
    cell::Cell,
    io::{self, Read},
    path::Path,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use super::UnpackError;
use crate::limits::Limits;

/// Budget shared by all layers of an image. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    entries: Arc<AtomicU64>,
    unpacked: Arc<AtomicU64>,
    paths: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
    until: Instant,
    cancelled: Arc<AtomicBool>,
}

/// Guard that cancels a budget or the input of a layer when dropped: work on other threads stops at its next read.
#[derive(Debug)]
pub struct CancelGuard(Arc<AtomicBool>);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Budget {
    /// Creates a budget that ends at an instant.
    pub(crate) fn until(until: Instant) -> Self {
        Self {
            entries: Arc::default(),
            unpacked: Arc::default(),
            paths: Arc::default(),
            bytes: Arc::default(),
            until,
            cancelled: Arc::default(),
        }
    }

    pub(crate) fn guard(&self) -> CancelGuard {
        CancelGuard(self.cancelled.clone())
    }

    fn is_over(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || Instant::now() >= self.until
    }

    /// Counts an entry.
    pub(super) fn entry(&self, limits: &Limits) -> Result<(), UnpackError> {
        let before = self.entries.fetch_add(1, Ordering::Relaxed);
        if before >= limits.entries {
            return Err(UnpackError::TooManyEntries {
                limit: limits.entries,
            });
        }
        Ok(())
    }

    /// Counts a path below the root that is about to be created, and its bytes.
    pub(super) fn path(&self, path: &Path, limits: &Limits) -> Result<(), UnpackError> {
        if self.unpacked.fetch_add(1, Ordering::Relaxed) >= limits.unpacked {
            return Err(UnpackError::TooManyUnpacked {
                limit: limits.unpacked,
            });
        }
        let length = path.as_os_str().len() as u64;
        let before = self.paths.fetch_add(length, Ordering::Relaxed);
        if before.saturating_add(length) > limits.paths() {
            return Err(UnpackError::PathsTooLong {
                limit: limits.paths(),
            });
        }
        Ok(())
    }
}

/// Reader of a compressed layer that fails once the budget is over or its guard is dropped. A decoder can read any amount of input in one
/// call without output, so that no [`Meter`] sees a byte.
pub(super) struct Input<R> {
    inner: R,
    budget: Budget,
    dropped: Arc<AtomicBool>,
}

impl<R: Read> Input<R> {
    pub(super) fn new(inner: R, budget: Budget) -> (Self, CancelGuard) {
        let dropped = Arc::<AtomicBool>::default();
        let guard = CancelGuard(dropped.clone());
        let input = Self {
            inner,
            budget,
            dropped,
        };
        (input, guard)
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.dropped.load(Ordering::Relaxed) || self.budget.is_over() {
            return Err(io::Error::other(UnpackError::Stopped));
        }
        self.inner.read(buffer)
    }
}

/// Slot for the reason why a [`Meter`] stopped.
#[derive(Clone, Default)]
pub(super) struct StopReason(Rc<Cell<Option<UnpackError>>>);

impl StopReason {
    pub(super) fn take(&self) -> Option<UnpackError> {
        self.0.take()
    }
}

/// Reader that counts an unpacked stream against the budget and the layer's own size.
pub(super) struct Meter<R> {
    inner: R,
    budget: Budget,
    stop_reason: StopReason,
    total: u64,
    ratio: u64,
    layer_limit: u64,
    read: u64,
}

impl<R: Read> Meter<R> {
    pub(super) fn new(inner: R, budget: Budget, size: u64, limits: &Limits) -> (Self, StopReason) {
        let stop_reason = StopReason::default();
        let meter = Self {
            inner,
            budget,
            stop_reason: stop_reason.clone(),
            total: limits.total,
            ratio: limits.ratio,
            layer_limit: size.saturating_mul(limits.ratio).max(limits.ratio_floor),
            read: 0,
        };
        (meter, stop_reason)
    }

    fn stop(&self, error: UnpackError) -> io::Error {
        let stopped = io::Error::other(error.to_string());
        self.stop_reason.0.set(Some(error));
        stopped
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.budget.is_over() {
            return Err(self.stop(UnpackError::Stopped));
        }
        let read = match self.inner.read(buffer) {
            Ok(read) => read,
            // The error may be that of the input.
            Err(_) if self.budget.is_over() => return Err(self.stop(UnpackError::Stopped)),
            Err(error) => return Err(error),
        };
        self.read = self.read.saturating_add(read as u64);
        let before = self.budget.bytes.fetch_add(read as u64, Ordering::Relaxed);
        if before.saturating_add(read as u64) > self.total {
            return Err(self.stop(UnpackError::TooLarge { limit: self.total }));
        }
        if self.read > self.layer_limit {
            return Err(self.stop(UnpackError::Ratio { limit: self.ratio }));
        }
        Ok(read)
    }
}
