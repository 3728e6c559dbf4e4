//! Figures of a process as the kernel counts them.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A process, by its id.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The process id.
    pub pid: u32,
}

impl Kernel {
    /// A figure of `/proc/PID/status` in KiB, such as `VmHWM`.
    ///
    /// # Errors
    /// When the process is gone, or its kernel has no such figure.
    pub fn kib(self, key: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.pid);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
            .with_context(|| format!("{path} has no {key}"))
    }

    /// Restarts the count of the peak from the memory that is resident now.
    ///
    /// # Errors
    /// When the process is gone or somebody else's.
    pub fn reset_peak(self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.pid);
        fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
    }

    /// Time spent by all threads, user and system.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn cpu(self) -> Result<Duration> {
        /// The kernel's unit of these figures on every Linux.
        const TICKS: u64 = 100;
        let path = format!("/proc/{}/stat", self.pid);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks: u64 = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|word| word.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 1000 / TICKS))
    }

    /// Number of open descriptors.
    ///
    /// # Errors
    /// When the process is gone or somebody else's.
    pub fn descriptors(self) -> Result<usize> {
        let path = format!("/proc/{}/fd", self.pid);
        Ok(fs::read_dir(&path)
            .with_context(|| format!("cannot read {path}"))?
            .count())
    }

    /// Number of threads.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn threads(self) -> Result<u64> {
        self.kib("Threads")
    }
}
