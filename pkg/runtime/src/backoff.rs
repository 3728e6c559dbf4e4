//! Exponential backoff per object.
//!
//! kube's controllers do not count failures per object. The delays are those of controller-runtime's default rate
//! limiter: 5 ms, doubled with every failure, at most 1000 s. Up to 10 % of jitter spreads objects that failed
//! together.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    time::Duration,
};

use parking_lot::Mutex;

use crate::clock;

/// Delay after the first failure.
const BASE: Duration = Duration::from_millis(5);
/// Maximum delay, without jitter.
const CAP: Duration = Duration::from_secs(1000);
/// Number of doublings after which the maximum delay is reached in any case.
const MAX_DOUBLINGS: u32 = 18;

/// Failure counts by object. The reconciler clears them, the error policy raises them.
#[derive(Debug)]
pub struct Backoff<K>(Mutex<HashMap<K, u32>>);

impl<K> Default for Backoff<K> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Hash + Eq> Backoff<K> {
    /// Counts a failure and returns the delay before the next attempt.
    pub fn failed(&self, key: K) -> Duration {
        let failures = match self.0.lock().entry(key) {
            Entry::Occupied(mut entry) => {
                let before = *entry.get();
                *entry.get_mut() = before.saturating_add(1);
                before
            }
            Entry::Vacant(entry) => {
                entry.insert(1);
                0
            }
        };
        let delay = delay(failures);
        delay + delay.mul_f64(clock::random() * 0.1)
    }

    /// Resets the failures of an object that succeeded, is blocked, or is deleted.
    pub fn clear(&self, key: &K) {
        self.0.lock().remove(key);
    }

    /// Returns the number of failures since the object last succeeded.
    pub fn failures(&self, key: &K) -> u32 {
        self.0.lock().get(key).copied().unwrap_or(0)
    }
}

/// Returns the delay, without jitter, after `failures` earlier failures.
fn delay(failures: u32) -> Duration {
    BASE.saturating_mul(1 << failures.min(MAX_DOUBLINGS)).min(CAP)
}

/// Backoff of a controller's common stream of triggers: none.
///
/// kube pauses all triggers of a controller after an error of any watch. The watches of these controllers back off on their own, so that a
/// watch that fails does not hold back the events of the others. A controller with `watches` or `owns`, whose streams have no backoff,
/// must not use it.
#[derive(Clone, Debug, Default)]
pub struct NoPause;

impl Iterator for NoPause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

impl kube::runtime::utils::Backoff for NoPause {
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap() {
        assert_eq!(delay(0), Duration::from_millis(5));
        assert_eq!(delay(1), Duration::from_millis(10));
        assert_eq!(delay(10), Duration::from_millis(5120));
        assert_eq!(delay(18), CAP);
        assert_eq!(delay(u32::MAX), CAP);
    }

    #[test]
    fn counts_each_object_for_itself() {
        let backoff = Backoff::default();
        let first = backoff.failed("a");
        assert!((BASE..BASE * 11 / 10).contains(&first), "{first:?}");
        assert!(backoff.failed("a") >= BASE * 2);
        assert_eq!(backoff.failures(&"a"), 2);
        assert_eq!(backoff.failures(&"b"), 0);
        backoff.clear(&"a");
        assert!(backoff.failed("a") < BASE * 2);
    }
}
