//! The store's locks, with a choice of the next thread before each of them.

use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use crate::interleave::step;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(parking_lot::RwLock<T>);

/// Tries until it succeeds. Other threads run in between, since a thread that waits in the kernel would stop the scheduler.
fn wait<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        step();
        if let Some(guard) = attempt() {
            return guard;
        }
    }
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        wait(|| self.0.try_lock())
    }
}

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        wait(|| self.0.try_read())
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        wait(|| self.0.try_write())
    }
}
