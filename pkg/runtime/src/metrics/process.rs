//! Kernel statistics of this process, under the names of all Prometheus client libraries.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

use super::Description;

const RESIDENT: Description = Description::gauge(
    "process_resident_memory_bytes",
    &[],
    "Resident memory size in bytes",
);
const VIRTUAL: Description = Description::gauge(
    "process_virtual_memory_bytes",
    &[],
    "Virtual memory size in bytes",
);
const OPEN_FILES: Description =
    Description::gauge("process_open_fds", &[], "Number of open file descriptors");
const MAX_FILES: Description =
    Description::gauge("process_max_fds", &[], "Maximum number of open file descriptors");
const PROCESSOR: Description = Description::counter(
    "process_cpu_seconds",
    &[],
    "Total user and system CPU time spent in seconds",
);
pub(super) const DESCRIPTIONS: [Description; 5] = [RESIDENT, VIRTUAL, OPEN_FILES, MAX_FILES, PROCESSOR];

/// Clock ticks per second in `/proc/self/stat`, equal on all supported architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// Collector that reads `/proc/self` at every scrape and omits unreadable values.
#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut gauge = |description: Description, value: Option<f64>| match value {
            None => Ok(()),
            Some(value) => ConstGauge::new(value).encode(description.encode(&mut encoder)?),
        };
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        gauge(RESIDENT, bytes(&status, "VmRSS:"))?;
        gauge(VIRTUAL, bytes(&status, "VmSize:"))?;
        gauge(OPEN_FILES, open_files())?;
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        gauge(MAX_FILES, max_open_files(&limits))?;
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        if let Some(seconds) = processor_seconds(&stat) {
            ConstCounter::new(seconds).encode(PROCESSOR.encode(&mut encoder)?)?;
        }
        Ok(())
    }
}

/// Reads a line of `/proc/self/status` with a value in kB.
fn bytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

fn open_files() -> Option<f64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    // One of the descriptors is the directory being read.
    u32::try_from(open.saturating_sub(1)).ok().map(f64::from)
}

fn max_open_files(limits: &str) -> Option<f64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns user and system time. The process name, in parentheses, may contain any character.
fn processor_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_proc_files() {
        let status = "Name:\tx\nVmSize:\t  123456 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(2_097_152.0));
        assert_eq!(bytes(status, "VmHWM:"), None);
        let limits = "Limit Soft Hard Units\nMax open files            1024                 4096                 files\n";
        assert_eq!(max_open_files(limits), Some(1024.0));
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 5 6 7";
        assert_eq!(processor_seconds(stat), Some(3.0));
        assert_eq!(processor_seconds(""), None);
    }
}
