//! Kernel statistics of a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Statistics of a process, by its id.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStats {
    /// The process id.
    pub pid: u32,
}

impl ProcessStats {
    /// Reads a value of `/proc/PID/status` in KiB, such as `VmHWM`.
    ///
    /// # Errors
    /// The process has exited, or its kernel has no such value.
    pub fn kib(self, key: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.pid);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
            .with_context(|| format!("{path} has no {key}"))
    }

    /// Resets the peak memory to the memory that is resident now.
    ///
    /// # Errors
    /// The process has exited or belongs to another user.
    pub fn reset_peak(self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.pid);
        fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
    }

    /// Returns the CPU time of all threads, user and system.
    ///
    /// # Errors
    /// The process has exited.
    pub fn cpu(self) -> Result<Duration> {
        /// Clock ticks per second on every Linux.
        const TICKS_PER_SECOND: u64 = 100;
        let path = format!("/proc/{}/stat", self.pid);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks: u64 = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|word| word.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
    }

    /// Returns the number of open descriptors.
    ///
    /// # Errors
    /// The process has exited or belongs to another user.
    pub fn descriptors(self) -> Result<usize> {
        let path = format!("/proc/{}/fd", self.pid);
        Ok(fs::read_dir(&path)
            .with_context(|| format!("cannot read {path}"))?
            .count())
    }

    /// Returns the number of threads.
    ///
    /// # Errors
    /// The process has exited.
    pub fn threads(self) -> Result<u64> {
        self.kib("Threads")
    }
}
