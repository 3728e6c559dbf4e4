//! Tables of figures in Markdown.

use std::fmt::Write as _;

use super::compare::Change;
use super::row::{Measure, Row, find};

/// Figures of one run, and figures to compare them with.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Figures of this product, in the order of the table.
    pub ours: &'a [Row],
    /// Figures of another implementation, measured in the same run.
    pub beside: Option<&'a [Row]>,
    /// Figures of an earlier run of this product.
    pub baseline: Option<&'a [Row]>,
}

impl<'a> Columns<'a> {
    /// Returns the names of the groups, in the order of their first rows.
    pub fn groups(self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for row in self.ours {
            if !names.contains(&row.group.as_str()) {
                names.push(&row.group);
            }
        }
        names
    }

    /// Returns the rows of one group.
    pub fn rows_of(self, group: &str) -> impl Iterator<Item = &'a Row> {
        let ours = self.ours.iter();
        ours.filter(move |row| row.group == group)
    }
}

/// Returns the table of one group. It lacks columns without any figure in the whole report. A missing figure is shown as a dash.
pub fn table(columns: Columns<'_>, group: &str) -> String {
    let mut out = String::from("| work | measure | here |");
    let mut line = String::from("|---|---|---|");
    for (name, is_there) in [
        ("beside | here against it", columns.beside.is_some()),
        ("baseline | change", columns.baseline.is_some()),
    ] {
        if is_there {
            let _ = write!(out, " {name} |");
            line.push_str("---|---|");
        }
    }
    let _ = write!(out, "\n{line}\n");
    let mut before = "";
    for row in columns.rows_of(group) {
        // Only the first of several rows about the same work shows its name.
        let work = if row.work == before { "" } else { &row.work };
        before = &row.work;
        let _ = write!(
            out,
            "| {} | {} | {} |",
            cell(work),
            row.measure.label(),
            figure(row)
        );
        for others in [columns.beside, columns.baseline].into_iter().flatten() {
            match find(others, row) {
                Some(other) => {
                    let _ = write!(out, " {} | {} |", figure(other), Change::of(row, other));
                }
                None => out.push_str(" – | – |"),
            }
        }
        out.push('\n');
    }
    out
}

/// Returns the median with its unit, followed by the extremes if the samples differ.
pub fn figure(row: &Row) -> String {
    let (low, high) = row.range();
    let mut text = value(row.measure, row.median());
    if number(row.measure, low) != number(row.measure, high) {
        let _ = write!(
            text,
            " ({}–{})",
            number(row.measure, low),
            number(row.measure, high)
        );
    }
    text
}

/// Returns a figure with its unit.
pub(super) fn value(measure: Measure, figure: f64) -> String {
    let number = number(measure, figure);
    match measure.unit() {
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// Returns the figure with about three significant digits; counts are whole numbers.
fn number(measure: Measure, figure: f64) -> String {
    let digits = match figure.abs() {
        _ if measure.unit().is_empty() => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 3,
    };
    format!("{figure:.digits$}")
}

/// Escapes vertical bars, which would end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::tests::row;

    #[test]
    fn a_table_has_only_the_columns_it_can_fill() {
        let ours = [
            row("install", Measure::Time, &[1.234]),
            row("install", Measure::Requests, &[24.0]),
        ];
        let alone = Columns {
            ours: &ours,
            beside: None,
            baseline: None,
        };
        assert_eq!(
            table(alone, "group"),
            "| work | measure | here |\n|---|---|---|\n| install | time | 1.23 s |\n|  | requests | 24 |\n"
        );
        assert_eq!(alone.groups(), ["group"]);
    }

    #[test]
    fn other_figures_stand_beside_with_their_difference() {
        let ours = [
            row("a|b", Measure::Rate, &[10.0, 30.0, 20.0]),
            row("new", Measure::Peak, &[7.0]),
        ];
        let beside = [row("a|b", Measure::Rate, &[10.0])];
        let baseline = [row("a|b", Measure::Rate, &[200.0])];
        let columns = Columns {
            ours: &ours,
            beside: Some(&beside),
            baseline: Some(&baseline),
        };
        assert_eq!(
            table(columns, "group"),
            "| work | measure | here | beside | here against it | baseline | change |\n\
             |---|---|---|---|---|---|---|\n\
             | a\\|b | rate | 20.0 req/s (10.0–30.0) | 10.0 req/s | +100 % (better) | 200 req/s | -90 % (worse) |\n\
             | new | peak memory | 7.00 MiB | – | – | – | – |\n"
        );
    }
}
