//! Virtual time of day: a fixed start plus the time that the paused clock of the runtime has advanced.

use jiff::{SignedDuration, Timestamp};
use olm_runtime::clock::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::rng::Rng;

/// Clock of one run.
pub(crate) struct VirtualClock {
    start: Instant,
    /// Source of the controllers' random delays.
    rng: Mutex<Rng>,
}

impl VirtualClock {
    /// Starts the clock at a fixed time of day. Must be called within the runtime.
    pub(crate) fn start(seed: u64) -> Self {
        Self {
            start: Instant::now(),
            rng: Mutex::new(Rng::new(seed)),
        }
    }

    /// Returns the fixed time of day at the start plus the virtual time since `start`.
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
