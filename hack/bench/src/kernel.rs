//! The kernel's figures about a process and about folders.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// A process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) pid: u32,
}

impl Kernel {
    /// A figure of `/proc/PID/status` in KiB, such as `VmHWM`.
    pub(crate) fn kib(self, key: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.pid);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
            .with_context(|| format!("{path} has no {key}"))
    }

    /// The peak starts anew from what is resident now.
    pub(crate) fn reset_peak(self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.pid);
        fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
    }

    /// Time spent by all threads, user and system.
    pub(crate) fn cpu(self) -> Result<Duration> {
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

    /// Open descriptors.
    pub(crate) fn descriptors(self) -> Result<usize> {
        let path = format!("/proc/{}/fd", self.pid);
        Ok(fs::read_dir(&path)
            .with_context(|| format!("cannot read {path}"))?
            .count())
    }

    /// Threads.
    pub(crate) fn threads(self) -> Result<u64> {
        self.kib("Threads")
    }
}

/// Bytes of all files below a folder; what vanishes meanwhile counts nothing.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => size_of(&entry.path()),
            Ok(found) if found.is_file() => found.len(),
            _ => 0,
        })
        .sum()
}

/// SHA-256, hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
