//! Figures of the process of a test, as the kernel counts them.

/// Reads a figure of `/proc/self/status` in KiB.
pub(crate) fn kib(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
