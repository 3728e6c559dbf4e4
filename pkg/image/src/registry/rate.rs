//! Minimum transfer rate.

use tokio::time::Instant;

use crate::limits::MinRate;

/// Monitor of the rate of one transfer.
#[derive(Debug)]
pub(super) struct RateMonitor {
    least: MinRate,
    ends: Instant,
    bytes: u64,
}

impl RateMonitor {
    pub(super) fn new(least: MinRate, now: Instant) -> Self {
        Self {
            least,
            ends: now + least.window,
            bytes: 0,
        }
    }

    /// Counts received bytes; returns false after a window with too few. A long pause between two calls is the
    /// receiver's, and counts as one window.
    pub(super) fn record(&mut self, bytes: u64, now: Instant) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if now < self.ends {
            return true;
        }
        let enough = self.bytes >= self.least.bytes;
        *self = Self::new(self.least, now);
        enough
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_window_counts() {
        let least = MinRate {
            bytes: 100,
            window: Duration::from_secs(10),
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut rate = RateMonitor::new(least, start);
        assert!(rate.record(60, at(1)));
        assert!(rate.record(40, at(10)), "100 bytes in 10 s");
        assert!(rate.record(99, at(19)));
        assert!(!rate.record(0, at(20)), "99 bytes in 10 s");
        let mut any = RateMonitor::new(MinRate { bytes: 0, ..least }, start);
        assert!(any.record(0, at(60)));
    }
}
