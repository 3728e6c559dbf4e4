//! Virtual time: a start and the paused clock of the runtime.

use jiff::{SignedDuration, Timestamp};
use olm_runtime::clock::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::rng::Rng;

/// Clock of one run.
pub(crate) struct VirtualClock {
    start: Instant,
    rng: Mutex<Rng>,
}

impl VirtualClock {
    /// Starts at a fixed time of day. Call it inside of the runtime.
    pub(crate) fn start(seed: u64) -> Self {
        Self {
            start: Instant::now(),
            rng: Mutex::new(Rng::new(seed)),
        }
    }

    /// Returns the time of day `start` began with, plus the time since.
    pub(crate) fn at(start: Instant) -> Timestamp {
        let since = SignedDuration::try_from(start.elapsed()).unwrap_or_default();
        // 2026-01-01T00:00:00Z.
        let begin = Timestamp::from_second(1_767_225_600).unwrap_or_default();
        begin.checked_add(since).unwrap_or(begin)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Self::at(self.start)
    }

    fn random(&self) -> f64 {
        self.rng.lock().fraction()
    }
}
