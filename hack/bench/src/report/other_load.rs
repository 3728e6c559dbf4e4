//! Load by other processes during a measurement, from `/proc`. Such load makes figures worse, so the report includes it.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Clock ticks per second on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Other load during one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// Name of the group.
    pub group: String,
    /// Column of the measured implementation: `here` or `beside`.
    pub of: String,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Average number of processors that processes outside of this run used.
    pub busy: f64,
    /// Average number of processors that the host gave to other guests while this machine could have used them (steal time).
    pub stolen: f64,
    /// Load average over a minute at the start, which reflects the work before the measurement.
    pub before: f64,
    /// Load average over a minute at the end, which includes this run.
    pub after: f64,
}

/// Counters of the kernel at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    /// Ticks of all processors.
    all: Ticks,
    /// Ticks of this process and its descendants.
    own: f64,
    /// Load average over a minute.
    average: f64,
}

/// Ticks since the start of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    busy: f64,
    stolen: f64,
}

impl Moment {
    /// Reads the counters.
    ///
    /// # Errors
    /// The kernel has no `/proc/stat` or `/proc/loadavg`.
    pub fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let average = fs::read_to_string("/proc/loadavg").context("cannot read /proc/loadavg")?;
        Ok(Self {
            at: Instant::now(),
            all: ticks(&stat),
            own: own(&processes(), std::process::id()),
            average: average
                .split_whitespace()
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
        })
    }

    /// Returns the other load from this moment until now.
    ///
    /// # Errors
    /// As [`Moment::now`].
    pub fn until_now(&self, group: &str, of: &str) -> Result<OtherLoad> {
        let end = Self::now()?;
        let seconds = end.at.duration_since(self.at).as_secs_f64();
        let average = |ticks: f64| (ticks / TICKS_PER_SECOND / seconds.max(0.01)).max(0.0);
        Ok(OtherLoad {
            group: group.to_owned(),
            of: of.to_owned(),
            seconds,
            busy: average((end.all.busy - self.all.busy) - (end.own - self.own)),
            stolen: average(end.all.stolen - self.all.stolen),
            before: self.average,
            after: end.average,
        })
    }
}

impl std::fmt::Display for OtherLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "| {} | {} | {:.0} s | {:.2} | {:.2} | {:.2} | {:.2} |",
            self.group, self.of, self.seconds, self.busy, self.stolen, self.before, self.after
        )
    }
}

/// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks(stat: &str) -> Ticks {
    let line = stat.lines().next().unwrap_or_default();
    let numbers: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
    Ticks {
        busy: at(0) + at(1) + at(2) + at(5) + at(6),
        stolen: at(7),
    }
}

/// A process: the id of its parent, and its ticks including those of children that it has waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    parent: u32,
    ticks: f64,
}

/// Reads all processes, by id.
fn processes() -> HashMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process may end between the two reads.
    let read = |id: u32| {
        Some((
            id,
            process(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?,
        ))
    };
    ids.filter_map(read).collect()
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain any characters.
fn process(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
    })
}

/// Sums the ticks of a process and its descendants.
fn own(processes: &HashMap<u32, Process>, root: u32) -> f64 {
    let belongs = |mut id: u32| {
        // The table is not read in one moment, so it could contain a cycle.
        for _ in 0..processes.len() {
            if id == root {
                return true;
            }
            let Some(process) = processes.get(&id) else {
                return false;
            };
            id = process.parent;
        }
        false
    };
    let own = processes.iter().filter(|(id, _)| belongs(**id));
    own.map(|(_, process)| process.ticks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        let stat = "cpu  10 1 5 1000 50 2 3 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let expected = Ticks {
            busy: 21.0,
            stolen: 7.0,
        };
        assert_eq!(ticks(stat), expected);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the ticks are whole")]
    fn descendants_are_no_other_load() {
        let line = |name: &str, parent: u32| {
            process(&format!(
                "7 ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 10 2 30 4 20 0"
            ))
            .unwrap()
        };
        let child = line("a) b", 1);
        assert_eq!(
            child,
            Process {
                parent: 1,
                ticks: 46.0
            }
        );
        let processes = HashMap::from([
            (1, line("root", 0)),
            (2, child),
            (3, line("grandchild", 2)),
            (4, line("other", 9)),
        ]);
        assert_eq!(own(&processes, 1), 138.0);
    }

    #[test]
    fn a_moment_can_be_measured() {
        let load = Moment::now().unwrap().until_now("group", "here").unwrap();
        assert!(load.busy >= 0.0 && load.stolen >= 0.0, "{load}");
    }
}
