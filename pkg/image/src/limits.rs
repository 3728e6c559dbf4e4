//! Limits on registries, images and pulls.

use std::time::Duration;

/// Number of bytes of paths for each of [`Limits::entries`]. The paths of real images have about 60 bytes.
const PATH_BYTES: u64 = 128;

/// Limits on untrusted registries and images. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Size of a manifest or index.
    pub manifest: u64,
    /// Size of an image config.
    pub config: u64,
    /// Size of a compressed layer.
    pub layer: u64,
    /// Number of layers of an image.
    pub layers: usize,
    /// Number of entries of all layers together, skipped ones and directories without an entry of their own included.
    pub entries: u64,
    /// Number of unpacked entries of all layers together, and of directories without an entry of their own. Each takes an inode, and
    /// a directory also a block: to write and remove them takes longer than to read them.
    pub unpacked: u64,
    /// Unpacked size of all layers together.
    pub total: u64,
    /// Size of one file.
    pub file: u64,
    /// Number of directories above an entry.
    pub depth: usize,
    /// Ratio of a layer's unpacked to its compressed size, above [`Limits::ratio_floor`] bytes.
    pub ratio: u64,
    /// Unpacked size up to which the ratio is ignored.
    pub ratio_floor: u64,
    /// Timeout of opening a connection.
    pub connect: Duration,
    /// Timeout of silence during a transfer.
    pub read: Duration,
    /// Minimum transfer rate of a layer.
    pub min_rate: MinRate,
    /// Timeout of a request for a token or manifest.
    pub request: Duration,
    /// Maximum number of retries after a transient failure.
    pub retries: u32,
    /// Delay before the first retry; each further delay is twice as long.
    pub retry_wait: Duration,
    /// Maximum delay; a registry that asks for a longer one is not retried within this pull.
    pub retry_wait_max: Duration,
    /// Timeout of unpacking, and period in which the transfer from one source must make progress: the transfer continues while
    /// every period brings new bytes of layers at the minimum rate. A timeout of the whole transfer would fail large images on slow
    /// links forever. The transfer from a hostile source still ends: its layers have at most [`Limits::total`] bytes together, which
    /// take eleven days by default. A higher minimum rate shortens this.
    pub pull: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            manifest: 4 * MIB,
            config: 4 * MIB,
            layer: 2048 * MIB,
            layers: 256,
            entries: 500_000,
            unpacked: 50_000,
            total: 4096 * MIB,
            file: 1024 * MIB,
            depth: 64,
            ratio: 200,
            ratio_floor: 64 * MIB,
            connect: Duration::from_secs(15),
            read: Duration::from_secs(30),
            min_rate: MinRate::default(),
            request: Duration::from_mins(1),
            retries: 4,
            retry_wait: Duration::from_millis(500),
            retry_wait_max: Duration::from_secs(30),
            pull: Duration::from_mins(15),
        }
    }
}

impl Limits {
    /// Returns the minimum progress of the transfer from one source: the minimum rate over [`Limits::pull`]. If the check of the
    /// minimum rate is disabled, the default rate counts, so that no source holds a slot forever.
    pub(crate) fn progress(&self) -> MinRate {
        let rate = Some(self.min_rate)
            .filter(|rate| rate.bytes > 0)
            .unwrap_or_default();
        let bytes = u128::from(rate.bytes) * self.pull.as_millis() / rate.window.as_millis().max(1);
        MinRate {
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX).max(1),
            window: self.pull,
        }
    }

    /// Returns the maximum length of the paths of all unpacked entries together, in bytes. Readers of a tree hold its paths in
    /// memory, and a path may have 4 KiB.
    pub(crate) fn paths(&self) -> u64 {
        self.entries.saturating_mul(PATH_BYTES)
    }
}

/// Limits on the concurrent pulls of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullLimits {
    /// Maximum number of concurrent pulls from one registry.
    pub per_registry: usize,
    /// Maximum number of concurrent pulls from all registries.
    pub total: usize,
    /// Maximum time that a pull waits for a slot.
    pub wait: Duration,
}

impl Default for PullLimits {
    /// Returns 4 per registry, 32 in total, 10 minutes.
    fn default() -> Self {
        Self {
            per_registry: 4,
            total: 32,
            wait: Duration::from_mins(10),
        }
    }
}

/// Minimum rate: bytes per window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinRate {
    /// Minimum number of bytes in each window; 0 disables the check.
    pub bytes: u64,
    /// Length of a window.
    pub window: Duration,
}

impl Default for MinRate {
    /// Returns 128 KiB in 30 s.
    fn default() -> Self {
        Self {
            bytes: 128 * 1024,
            window: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_the_minimum_rate_over_the_period() {
        let progress = |bytes| {
            let min_rate = MinRate {
                bytes,
                ..MinRate::default()
            };
            Limits {
                min_rate,
                ..Limits::default()
            }
            .progress()
        };
        let expected = |bytes| MinRate {
            bytes,
            window: Duration::from_mins(15),
        };
        assert_eq!(progress(1024), expected(30 * 1024));
        assert_eq!(progress(128 * 1024), expected(3840 * 1024));
        assert_eq!(progress(0), progress(MinRate::default().bytes), "disabled");
        assert_eq!(progress(u64::MAX), expected(u64::MAX));
    }
}
