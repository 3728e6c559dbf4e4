//! The least rate of a transfer.

use std::time::Duration;

use tokio::time::Instant;

/// Least rate: so many bytes in each window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastRate {
    /// Bytes that must come in each window; 0 for no least rate.
    pub bytes: u64,
    /// Length of a window.
    pub window: Duration,
}

impl Default for LeastRate {
    /// 128 KiB in 30 s.
    fn default() -> Self {
        Self {
            bytes: 128 * 1024,
            window: Duration::from_secs(30),
        }
    }
}

/// Watches the rate of one transfer.
#[derive(Debug)]
pub(super) struct Pace {
    least: LeastRate,
    ends: Instant,
    bytes: u64,
}

impl Pace {
    pub(super) fn new(least: LeastRate, now: Instant) -> Self {
        Self {
            least,
            ends: now + least.window,
            bytes: 0,
        }
    }

    /// Counts bytes that came; returns false when a window passed with too few. A long pause between two calls is the
    /// receiver's, and counts as one window.
    pub(super) fn keeps_up(&mut self, bytes: u64, now: Instant) -> bool {
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
    use super::*;

    #[test]
    fn every_window_counts() {
        let least = LeastRate {
            bytes: 100,
            window: Duration::from_secs(10),
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace::new(least, start);
        assert!(pace.keeps_up(60, at(1)));
        assert!(pace.keeps_up(40, at(10)), "100 bytes in 10 s");
        assert!(pace.keeps_up(99, at(19)));
        assert!(!pace.keeps_up(0, at(20)), "99 bytes in 10 s");
        let mut any = Pace::new(LeastRate { bytes: 0, ..least }, start);
        assert!(any.keeps_up(0, at(60)));
    }
}
