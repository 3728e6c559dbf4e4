//! How much an archive may still use up.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use super::UnpackError;
use crate::config::Limits;

/// What all layers of an image share. Clones share it too.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    entries: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
    until: Instant,
    given_up: Arc<AtomicBool>,
}

/// Gives the budget up when dropped: work on other threads then stops at its next read.
#[derive(Debug)]
pub(crate) struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Budget {
    /// A fresh budget that ends at an instant.
    pub(crate) fn until(until: Instant) -> Self {
        Self {
            entries: Arc::default(),
            bytes: Arc::default(),
            until,
            given_up: Arc::default(),
        }
    }

    pub(crate) fn guard(&self) -> GiveUp {
        GiveUp(self.given_up.clone())
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
}

/// Where a [`Meter`] leaves the reason it stopped for.
#[derive(Clone, Default)]
pub(super) struct Exceeded(Rc<Cell<Option<UnpackError>>>);

impl Exceeded {
    pub(super) fn take(&self) -> Option<UnpackError> {
        self.0.take()
    }
}

/// Counts an unpacked stream against the budget and the layer's own size.
pub(super) struct Meter<R> {
    inner: R,
    budget: Budget,
    exceeded: Exceeded,
    total: u64,
    ratio: u64,
    layer_limit: u64,
    read: u64,
}

impl<R: Read> Meter<R> {
    pub(super) fn new(inner: R, budget: Budget, size: u64, limits: &Limits) -> (Self, Exceeded) {
        let exceeded = Exceeded::default();
        let meter = Self {
            inner,
            budget,
            exceeded: exceeded.clone(),
            total: limits.total,
            ratio: limits.ratio,
            layer_limit: size.saturating_mul(limits.ratio).max(limits.ratio_floor),
            read: 0,
        };
        (meter, exceeded)
    }

    fn stop(&self, error: UnpackError) -> io::Error {
        let shown = io::Error::other(error.to_string());
        self.exceeded.0.set(Some(error));
        shown
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.budget.given_up.load(Ordering::Relaxed) || Instant::now() >= self.budget.until {
            return Err(self.stop(UnpackError::Stopped));
        }
        let read = self.inner.read(buffer)?;
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
