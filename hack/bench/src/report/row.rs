//! Rows of the report: figures as values, with their measure, unit and direction of improvement.

use serde::{Deserialize, Serialize};

/// Quantity that a row measures, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Time from the first request to the last effect, in seconds.
    Time,
    /// Processor time of the measured controller, in seconds.
    Processor,
    /// Processor time of kube-apiserver, in seconds.
    ApiServer,
    /// Processor time of etcd, in seconds.
    Etcd,
    /// Size of etcd's database at the end, with the history that is not compacted yet, in MB. The API server compacts the history every
    /// five minutes, so that the size depends on the moment of the reading.
    Database,
    /// Processor time of the measured controller for each request or reconcile, in milliseconds.
    ProcessorEach,
    /// Requests of the measured controller to the API server.
    Requests,
    /// Writes among the requests of the measured controller to the API server.
    Writes,
    /// Resident memory of the measured controller, in MiB.
    Resident,
    /// Highest resident memory of the measured controller, in MiB.
    Peak,
    /// Growth of the resident memory of the measured controller for each client, in kB.
    MemoryEach,
    /// Size of a program, in MB.
    Program,
    /// Size of a program without symbols, in MB.
    Stripped,
    /// Size of files on disk, in MB.
    Disk,
    /// Answers to all clients per second.
    Rate,
    /// Content that all clients get per second, in MB.
    Throughput,
    /// Time within which half of the answers arrive, in milliseconds.
    Median,
    /// Time within which 99 of 100 answers arrive, in milliseconds.
    P99,
    /// Time of the slowest answer, in milliseconds.
    Worst,
    /// Open file descriptors of the measured controller.
    Descriptors,
    /// Clients that are still served at the end.
    Served,
    /// Requests of the measured controller to the registry.
    Polls,
}

/// Direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Smaller figures are better, such as times and memory.
    Less,
    /// Larger figures are better, such as rates.
    More,
}

impl Measure {
    /// Returns the name of the measure in tables and plots.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Processor => "processor",
            Self::ApiServer => "processor of kube-apiserver",
            Self::Etcd => "processor of etcd",
            Self::Database => "database of etcd, with history of up to 5 min",
            Self::ProcessorEach => "processor for each",
            Self::Requests => "requests",
            Self::Writes => "of these writes",
            Self::Resident => "resident memory",
            Self::Peak => "peak memory",
            Self::MemoryEach => "memory for each",
            Self::Program => "program",
            Self::Stripped => "program without symbols",
            Self::Disk => "disk",
            Self::Rate => "rate",
            Self::Throughput => "throughput",
            Self::Median => "p50",
            Self::P99 => "p99",
            Self::Worst => "worst",
            Self::Descriptors => "descriptors",
            Self::Served => "clients served",
            Self::Polls => "polls",
        }
    }

    /// Returns the unit of the figures; empty for counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Time | Self::Processor | Self::ApiServer | Self::Etcd => "s",
            Self::ProcessorEach | Self::Median | Self::P99 | Self::Worst => "ms",
            Self::Resident | Self::Peak => "MiB",
            Self::MemoryEach => "kB",
            Self::Program | Self::Stripped | Self::Disk | Self::Database => "MB",
            Self::Rate => "req/s",
            Self::Throughput => "MB/s",
            Self::Requests | Self::Writes | Self::Descriptors | Self::Served | Self::Polls => "",
        }
    }

    /// Returns true if a difference between two runs is better or worse.
    pub const fn is_judged(self) -> bool {
        !matches!(self, Self::Database)
    }

    /// Returns the direction in which the figure improves.
    pub const fn better(self) -> Better {
        match self {
            Self::Rate | Self::Throughput | Self::Served => Better::More,
            _ => Better::Less,
        }
    }
}

/// Point of a curve, to which a row belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// Name of the curve. Rows with the same name and measure belong together.
    pub name: String,
    /// Unit of the horizontal axis.
    pub axis: String,
    /// Position on the horizontal axis.
    pub x: u32,
}

/// A figure, measured once or several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the group that measures the figure.
    pub group: String,
    /// Description of the measured work.
    pub work: String,
    /// Measure of the work.
    pub measure: Measure,
    /// Point of a curve, for a figure that depends on a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Measured values in the unit of the measure, in the order of the runs. There is at least one.
    pub samples: Vec<f64>,
}

impl Row {
    /// Returns true if both rows measure the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.measure == other.measure && self.work == other.work && self.group == other.group
    }

    /// Returns the median of the samples. For an even number of samples, this is the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let middle = sorted.len() / 2;
        if sorted.len().is_multiple_of(2) {
            f64::midpoint(at(middle.saturating_sub(1)), at(middle))
        } else {
            at(middle)
        }
    }

    /// Returns the smallest and the largest sample.
    pub fn range(&self) -> (f64, f64) {
        let smallest = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (smallest, largest)
    }
}

/// Returns the row of `rows` that measures the same as `row`.
pub fn find<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    rows.iter().find(|other| other.is_same(row))
}

/// Adds the samples in `more` to the rows of `rows` that measure the same, and appends new rows.
pub fn merge(rows: &mut Vec<Row>, more: Vec<Row>) {
    for row in more {
        match rows.iter_mut().find(|known| known.is_same(&row)) {
            Some(known) => known.samples.extend(row.samples),
            None => rows.push(row),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::report) fn row(work: &str, measure: Measure, samples: &[f64]) -> Row {
        Row {
            group: "group".to_owned(),
            work: work.to_owned(),
            measure,
            curve: None,
            samples: samples.to_vec(),
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the samples are exact")]
    fn medians_lie_in_the_middle() {
        assert_eq!(row("", Measure::Time, &[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(row("", Measure::Time, &[4.0, 1.0]).median(), 2.5);
        assert_eq!(row("", Measure::Time, &[4.0]).median(), 4.0);
        assert_eq!(row("", Measure::Time, &[3.0, 1.0, 2.0]).range(), (1.0, 3.0));
    }

    #[test]
    fn runs_of_one_row_become_its_samples() {
        let mut rows = vec![row("a", Measure::Time, &[1.0])];
        let more = vec![
            row("a", Measure::Time, &[2.0]),
            row("a", Measure::Processor, &[3.0]),
        ];
        merge(&mut rows, more);
        assert_eq!(rows.len(), 2);
        let first = find(&rows, &row("a", Measure::Time, &[])).unwrap();
        assert_eq!(first.samples, [1.0, 2.0]);
    }
}
