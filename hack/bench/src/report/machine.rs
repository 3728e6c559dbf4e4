//! Circumstances of a run: the machine, the commit and the time.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Machine of a run. Figures of different machines cannot be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Number of processors that the run may use.
    pub processors: usize,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Version of the kernel.
    pub kernel: String,
}

impl Machine {
    /// Describes this machine. Facts that the kernel does not tell are empty.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            processor: processor(&read("/proc/cpuinfo")),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: memory(&read("/proc/meminfo")) / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} × {}, {} MiB of memory, Linux {}",
            self.processors, self.processor, self.memory_mib, self.kernel
        )
    }
}

/// Returns the commit of the checkout, followed by `+` if there are uncommitted changes. Outside of a checkout, the text is
/// empty.
pub fn commit() -> String {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    if changed.is_empty() {
        commit
    } else {
        format!("{commit}+")
    }
}

/// Returns the present time, such as `2026-01-31T12:00:00Z`.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the output of a git command; empty if the command fails.
fn git(args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(olm_harness::workspace::root())
        .args(args)
        .output();
    output
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

/// Returns the name of the first processor in `/proc/cpuinfo`.
fn processor(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    name.map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        .unwrap_or_default()
}

/// Returns the total memory in `/proc/meminfo`, in KiB.
fn memory(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_processor_and_memory() {
        assert_eq!(
            processor("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: x\n"),
            "Some CPU @ 2 GHz"
        );
        assert_eq!(memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), 16_384);
        assert_eq!(processor(""), "");
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        let here = Machine::here();
        assert!(here.processors > 0 && here.memory_mib > 0, "{here}");
    }
}
