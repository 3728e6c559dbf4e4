//! Parser of the totals in libFuzzer's log.

use serde::{Deserialize, Serialize};

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stats {
    /// Number of executed inputs.
    pub(super) runs: u64,
    /// Number of edges in the control flow graph that the inputs covered.
    pub(super) edges: u64,
    /// Number of inputs that libFuzzer kept, because each covers something that the others do not.
    pub(super) inputs: u64,
    /// Number of seeds in the repository.
    pub(super) seeds: u64,
}

impl Stats {
    /// Reads the totals: lines `#12 NEW cov: 345 ft: 400 corp: 7/90b …`, and `stat::number_of_executed_units: 12` at the end.
    pub(super) fn read(log: &str) -> Self {
        let mut stats = Self::default();
        for line in log.lines() {
            if let Some(runs) = line.strip_prefix("stat::number_of_executed_units:") {
                stats.runs = number(runs.trim()).unwrap_or(stats.runs);
            }
            if !line.starts_with('#') {
                continue;
            }
            // If an input breaks the target, the log ends before the closing totals, so the numbers of these lines count.
            stats.runs = line.get(1..).and_then(number).unwrap_or(stats.runs);
            stats.edges = after(line, "cov: ").unwrap_or(stats.edges);
            stats.inputs = after(line, "corp: ").unwrap_or(stats.inputs);
        }
        stats
    }
}

/// Returns the number that follows `key` in a line.
fn after(line: &str, key: &str) -> Option<u64> {
    number(line.split_once(key)?.1)
}

/// Returns the number at the start of a text.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        let log = "INFO: seed corpus: files: 3\n#4\tINITED cov: 30 ft: 41 corp: 3/90b exec/s: 0 rss: 40Mb\n\
                   #77\tNEW    cov: 35 ft: 44 corp: 5/99b lim: 21 exec/s: 0 rss: 41Mb\n";
        let stats = Stats {
            runs: 77,
            edges: 35,
            inputs: 5,
            seeds: 0,
        };
        assert_eq!(Stats::read(log), stats);
        let ended = format!("{log}stat::number_of_executed_units: 812\nstat::new_units_added: 2\n");
        assert_eq!(Stats::read(&ended), Stats { runs: 812, ..stats });
        assert_eq!(Stats::read(""), Stats::default());
    }
}
