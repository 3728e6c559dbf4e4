//! Comparison of two rows that measure the same, in percent.

use super::row::{Better, Row};

/// Difference in percent that means nothing, because equal runs differ as much.
pub const NOISE: f64 = 5.0;

/// Judgement of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The figure improves.
    Better,
    /// The figure gets worse.
    Worse,
    /// The difference is within [`NOISE`], or the samples overlap, or the measure depends on the moment of the reading.
    Same,
}

/// Difference between a row and its reference: the row of another implementation or of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Difference in percent of the reference, positive if the row is larger. `None` if only the reference is zero.
    pub percent: Option<f64>,
    /// Judgement of the difference.
    pub verdict: Verdict,
}

impl Change {
    /// Compares the medians of `row` and `reference`. If both have several samples and the ranges of these overlap, they count as
    /// the same.
    pub fn of(row: &Row, reference: &Row) -> Self {
        let (now, before) = (row.median(), reference.median());
        let difference = now - before;
        let percent = if difference == 0.0 {
            Some(0.0)
        } else if before == 0.0 {
            None
        } else {
            Some(difference / before * 100.0)
        };
        let small = percent.is_some_and(|percent| percent.abs() <= NOISE);
        let verdict = if small || overlap(row, reference) || !row.measure.is_judged() {
            Verdict::Same
        } else if (now < before) == (row.measure.better() == Better::Less) {
            Verdict::Better
        } else {
            Verdict::Worse
        };
        Self { percent, verdict }
    }

    /// Returns true if the row is worse than the reference by more than `percent` percent.
    pub fn is_worse_by(&self, percent: f64) -> bool {
        self.verdict == Verdict::Worse && self.percent.is_none_or(|own| own.abs() > percent)
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.percent {
            // A difference that rounds to zero has no sign.
            Some(percent) if percent.abs() < 0.5 => f.write_str("0 %")?,
            Some(percent) => write!(f, "{percent:+.0} %")?,
            None => f.write_str("from 0")?,
        }
        match self.verdict {
            Verdict::Better => f.write_str(" (better)"),
            Verdict::Worse => f.write_str(" (worse)"),
            Verdict::Same => Ok(()),
        }
    }
}

/// Returns true if the ranges of the samples overlap. A single sample has no range.
fn overlap(row: &Row, reference: &Row) -> bool {
    if row.samples.len() < 2 || reference.samples.len() < 2 {
        return false;
    }
    let ((low, high), (other_low, other_high)) = (row.range(), reference.range());
    low <= other_high && other_low <= high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::Measure;
    use crate::report::row::tests::row;

    fn change(measure: Measure, now: &[f64], before: &[f64]) -> String {
        Change::of(&row("", measure, now), &row("", measure, before)).to_string()
    }

    #[test]
    fn less_time_and_more_requests_are_better() {
        assert_eq!(change(Measure::Time, &[1.5], &[1.0]), "+50 % (worse)");
        assert_eq!(change(Measure::Time, &[0.5], &[1.0]), "-50 % (better)");
        assert_eq!(change(Measure::Rate, &[1.5], &[1.0]), "+50 % (better)");
        assert_eq!(change(Measure::Rate, &[0.5], &[1.0]), "-50 % (worse)");
    }

    #[test]
    fn small_differences_and_overlaps_mean_nothing() {
        assert_eq!(change(Measure::Time, &[1.04], &[1.0]), "+4 %");
        assert_eq!(change(Measure::Time, &[1.001], &[1.0]), "0 %");
        assert_eq!(change(Measure::Time, &[0.9, 1.5], &[1.0, 1.1]), "+14 %");
        assert_eq!(change(Measure::Time, &[1.2, 1.3], &[1.0, 1.1]), "+19 % (worse)");
        assert_eq!(change(Measure::Database, &[9.0], &[1.0]), "+800 %");
    }

    #[test]
    fn a_reference_of_zero_has_no_per_cent() {
        assert_eq!(change(Measure::Requests, &[0.0], &[0.0]), "0 %");
        assert_eq!(change(Measure::Requests, &[3.0], &[0.0]), "from 0 (worse)");
    }

    #[test]
    fn a_limit_holds_only_what_is_worse() {
        let of = |now: f64| Change::of(&row("", Measure::Time, &[now]), &row("", Measure::Time, &[1.0]));
        assert!(of(1.3).is_worse_by(20.0));
        assert!(!of(1.3).is_worse_by(40.0));
        assert!(!of(0.3).is_worse_by(20.0));
    }
}
