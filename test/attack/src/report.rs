//! Report of a run: a table with the outcome of every attack.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

/// Maximum length of an expected outcome in the table; deviations are printed in full.
const MAX_OUTCOME: usize = 110;

/// Peak memory of both controllers, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Peak of catalogd.
    pub catalogd: u64,
    /// Peak of operator-controller.
    pub operator_controller: u64,
}

impl Peaks {
    /// Returns the larger value of each controller.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            catalogd: self.catalogd.max(other.catalogd),
            operator_controller: self.operator_controller.max(other.operator_controller),
        }
    }
}

/// Outcome of one attack.
#[derive(Clone, Debug)]
pub struct Row {
    /// Class of the attack.
    pub class: &'static str,
    /// Name of the attack.
    pub name: String,
    /// Message of the controller if the outcome is as expected; otherwise the deviation.
    pub outcome: Result<String, String>,
    /// Time until the outcome.
    pub duration: Duration,
    /// Peak memory of both controllers since the start of the attack.
    pub peaks: Peaks,
}

/// Outcomes of all attacks.
#[derive(Clone, Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a row.
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the highest peaks over all attacks.
    pub fn peaks(&self) -> Peaks {
        self.rows
            .iter()
            .map(|row| row.peaks)
            .fold(Peaks::default(), Peaks::max)
    }

    /// Checks that every attack ended as expected.
    ///
    /// # Errors
    /// An attack ended differently. The message names all of them.
    pub fn check(&self) -> Result<()> {
        let failed: Vec<String> = self
            .rows
            .iter()
            .filter_map(|row| {
                let error = row.outcome.as_ref().err()?;
                Some(format!("{}/{}: {error}", row.class, row.name))
            })
            .collect();
        ensure!(failed.is_empty(), "not as expected:\n{}", failed.join("\n"));
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:<11} {:<28} {:>7} {:>12} {:>12}  outcome",
            "class", "attack", "seconds", "catalogd MiB", "operator MiB"
        )?;
        for row in &self.rows {
            writeln!(formatter, "{row}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome: String = match &self.outcome {
            Ok(outcome) => outcome.chars().take(MAX_OUTCOME).collect(),
            Err(error) => format!("FAILED: {error}"),
        };
        write!(
            formatter,
            "{:<11} {:<28} {:>7.2} {:>12.1} {:>12.1}  {outcome}",
            self.class,
            self.name,
            self.duration.as_secs_f64(),
            mib(self.peaks.catalogd),
            mib(self.peaks.operator_controller),
        )
    }
}

/// Converts KiB to MiB.
#[expect(clippy::cast_precision_loss, reason = "figures of memory stay far below 2^53")]
pub(crate) fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
