//! Content of the plot of a group: curves for figures that depend on a number, and bars for other figures.

use super::row::{Curve, Measure, Row, find};
use super::table::Columns;

/// One panel of a plot.
#[derive(Clone, Debug, PartialEq)]
pub enum Panel {
    /// Figures that depend on a number.
    Lines {
        /// Name of the curve.
        title: String,
        /// Measure of the work.
        measure: Measure,
        /// Unit of the horizontal axis.
        axis: String,
        /// Lines: the name of each one's source, and its points from left to right.
        lines: Vec<(&'static str, Vec<(f64, f64)>)>,
    },
    /// Single figures.
    Bars {
        /// Description of the measured work.
        title: String,
        /// Measure of the work.
        measure: Measure,
        /// Bars: the name of each one's source, and its figure.
        bars: Vec<(&'static str, f64)>,
    },
}

/// Returns the panels of a group, in the order of its table. Rows of the same curve share a panel.
pub fn panels(columns: Columns<'_>, group: &str) -> Vec<Panel> {
    let mut panels = Vec::new();
    let mut drawn: Vec<(&str, Measure)> = Vec::new();
    for row in columns.rows_of(group) {
        let Some(curve) = &row.curve else {
            panels.push(bars(columns, row));
            continue;
        };
        let key = (curve.name.as_str(), row.measure);
        if !drawn.contains(&key) {
            drawn.push(key);
            panels.push(lines(columns, row, curve));
        }
    }
    panels
}

/// Returns the sources of figures that exist, each with its column name.
fn sources(columns: Columns<'_>) -> impl Iterator<Item = (&'static str, &[Row])> {
    [
        ("here", Some(columns.ours)),
        ("beside", columns.beside),
        ("baseline", columns.baseline),
    ]
    .into_iter()
    .filter_map(|(name, rows)| Some((name, rows?)))
}

/// Returns a panel with the figures of one row.
fn bars(columns: Columns<'_>, row: &Row) -> Panel {
    let bars = sources(columns).filter_map(|(name, rows)| Some((name, find(rows, row)?.median())));
    Panel::Bars {
        title: row.work.clone(),
        measure: row.measure,
        bars: bars.collect(),
    }
}

/// Returns a panel with all rows of the same curve and measure.
fn lines(columns: Columns<'_>, row: &Row, curve: &Curve) -> Panel {
    let line = |rows: &[Row]| {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|other| other.group == row.group && other.measure == row.measure)
            .filter_map(|other| {
                let place = other.curve.as_ref().filter(|place| place.name == curve.name)?;
                Some((f64::from(place.x), other.median()))
            })
            .collect();
        points.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        points
    };
    let lines = sources(columns)
        .map(|(name, rows)| (name, line(rows)))
        .filter(|(_, points)| !points.is_empty());
    Panel::Lines {
        title: curve.name.clone(),
        measure: row.measure,
        axis: curve.axis.clone(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::tests::row;

    fn at(x: u32, figure: f64) -> Row {
        let curve = Curve {
            name: "install".to_owned(),
            axis: "extensions".to_owned(),
            x,
        };
        Row {
            curve: Some(curve),
            ..row(&format!("install {x}"), Measure::Time, &[figure])
        }
    }

    #[test]
    fn rows_of_a_curve_share_a_panel_and_are_in_order() {
        let ours = [at(20, 2.0), row("other", Measure::Peak, &[5.0]), at(10, 1.0)];
        let baseline = [at(10, 3.0)];
        let columns = Columns {
            ours: &ours,
            beside: None,
            baseline: Some(&baseline),
        };
        let panels = panels(columns, "group");
        let [first, second] = panels.as_slice() else {
            panic!("{panels:?}")
        };
        assert_eq!(
            *first,
            Panel::Lines {
                title: "install".to_owned(),
                measure: Measure::Time,
                axis: "extensions".to_owned(),
                lines: vec![
                    ("here", vec![(10.0, 1.0), (20.0, 2.0)]),
                    ("baseline", vec![(10.0, 3.0)])
                ],
            }
        );
        assert_eq!(
            *second,
            Panel::Bars {
                title: "other".to_owned(),
                measure: Measure::Peak,
                bars: vec![("here", 5.0)],
            }
        );
    }
}
