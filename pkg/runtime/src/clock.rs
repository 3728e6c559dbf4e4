//! Clock and randomness of the controllers.
//!
//! Reconciles ask here for the time of day and for random delays, and measure durations by [`tokio::time::Instant`], which tests
//! can pause. A test that replaces the clock with [`replace`] repeats a run exactly.

use std::cell::RefCell;

use jiff::Timestamp;

/// Source of times and of randomness.
pub trait Clock {
    /// Returns the time of day.
    fn now(&self) -> Timestamp;
    /// Returns a random number in `0.0..1.0`.
    fn random(&self) -> f64;
}

thread_local! {
    /// Clock of this thread; `None` for the system's.
    static REPLACED: RefCell<Option<Box<dyn Clock>>> = const { RefCell::new(None) };
}

/// Returns the time of day.
#[must_use]
pub fn now() -> Timestamp {
    REPLACED.with_borrow(|clock| clock.as_ref().map_or_else(Timestamp::now, |clock| clock.now()))
}

/// Returns a random number in `0.0..1.0`.
#[must_use]
pub fn random() -> f64 {
    REPLACED.with_borrow(|clock| clock.as_ref().map_or_else(rand::random, |clock| clock.random()))
}

/// Replaces the clock of this thread until the result is dropped. A runtime whose tasks shall see it must run on this thread only.
#[must_use]
pub fn replace(clock: Box<dyn Clock>) -> Replaced {
    Replaced(REPLACED.replace(Some(clock)))
}

/// Replacement of the clock, which ends on drop.
pub struct Replaced(Option<Box<dyn Clock>>);

impl Drop for Replaced {
    fn drop(&mut self) {
        REPLACED.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn random(&self) -> f64 {
            0.25
        }
    }

    #[test]
    fn a_replacement_ends_on_drop() {
        let replaced = replace(Box::new(Fixed));
        assert_eq!(now(), Timestamp::UNIX_EPOCH);
        assert!((random() - 0.25).abs() < f64::EPSILON);
        drop(replaced);
        assert!(now() > Timestamp::UNIX_EPOCH);
        assert!((0.0..1.0).contains(&random()));
    }
}
