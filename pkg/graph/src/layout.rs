//! Layout of a picture.
//!
//! Columns are bundles in the order of their versions, so that a bundle has the same column in every channel; rows are
//! channels. Above a channel's line run the `replaces` that pass over other bundles, below the line the `skips` and the
//! head's `skipRange`, each as a bracket on the first level that has room.

use super::model::{Graph, GraphChannel};

/// Maximum levels of brackets below a channel; further ones are only in tooltips.
const LEVELS: usize = 10;

/// Dimensions of a picture, in pixels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Left edge of the first column.
    pub(crate) left: f64,
    /// Lower end of the column labels at the top.
    pub(crate) top: f64,
    /// Below the last row.
    pub(crate) bottom: f64,
    /// Distance between two columns.
    pub(crate) pitch: f64,
    /// Height of the labels above, and also below if there are many rows.
    pub(crate) labels: f64,
    /// True if the column labels are repeated at the bottom.
    pub(crate) labels_below: bool,
    /// True if the channel names are repeated behind their last bundles.
    pub(crate) names_behind: bool,
    pub(crate) rows: Vec<Row>,
}

/// A channel's row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    /// Upper edge.
    pub(crate) top: f64,
    /// Height.
    pub(crate) height: f64,
    /// Position of the line of bundles.
    pub(crate) line: f64,
    /// `replaces` over others: from, to, level.
    pub(crate) arcs: Vec<(usize, usize, usize)>,
    /// Brackets below.
    pub(crate) brackets: Vec<Bracket>,
    /// Number of omitted brackets.
    pub(crate) left_out: usize,
}

/// Bundles that one bundle skips.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bracket {
    /// The bundle that skips.
    pub(crate) to: usize,
    /// Skipped bundles, lowest first.
    pub(crate) from: Vec<usize>,
    /// True if the bundles are skipped by `skipRange`.
    pub(crate) range: bool,
    /// The level below the line, from 0.
    pub(crate) level: usize,
}

pub(crate) const RADIUS: f64 = 7.0;
pub(crate) const ARC: f64 = 9.0;
pub(crate) const LEVEL: f64 = 9.0;
const TITLE: f64 = 64.0;
const LEGEND: f64 = 54.0;
pub(crate) const LEGEND_LINE: f64 = 20.0;
const RIGHT: f64 = 70.0;
/// Minimum width for which a channel's name is repeated after its last bundle, since the left edge may be out of sight.
const WIDE: f64 = 1600.0;
/// Width of a character of a label.
const CHARACTER: f64 = 6.4;

impl Layout {
    /// Computes the layout of a graph.
    pub(crate) fn new(graph: &Graph) -> Self {
        let columns = graph.bundles.len();
        let pitch = match columns {
            0..=12 => 64.0,
            13..=30 => 44.0,
            31..=80 => 32.0,
            _ => 25.0,
        };
        let longest = graph.bundles.iter().map(|node| node.label.chars().count()).max();
        // Labels have an angle of 60 degrees.
        let labels = (float(longest.unwrap_or_default()) * CHARACTER * 0.87 + 16.0).min(220.0);
        let names = graph.channels.iter().map(|lane| lane.name.chars().count()).max();
        let left = (float(names.unwrap_or_default()) * 7.6 + 40.0).clamp(170.0, 320.0);
        let top = TITLE + labels;
        let labels_below = graph.channels.len() > 4;
        let start = graph.start_position();
        let mut y = top;
        let rows: Vec<Row> = graph
            .channels
            .iter()
            .map(|lane| {
                let row = Row::new(lane, y, start);
                y += row.height;
                row
            })
            .collect();
        let below = if labels_below { labels } else { 0.0 };
        let width = left + float(columns) * pitch + RIGHT;
        let names_behind = width > WIDE;
        // The legend has a second line for the prospects of upgrades.
        let prospects = graph.bundles.iter().any(|node| node.standing.is_some());
        let legend = LEGEND + if prospects { LEGEND_LINE } else { 0.0 };
        let behind = if names_behind { left - 40.0 } else { 0.0 };
        Self {
            width: (width + behind).max(920.0),
            height: y + below + legend,
            left,
            top,
            bottom: y,
            pitch,
            labels,
            labels_below,
            names_behind,
            rows,
        }
    }

    /// Returns the middle of a column.
    pub(crate) fn x(&self, column: usize) -> f64 {
        self.left + (float(column) + 0.5) * self.pitch
    }
}

impl Row {
    fn new(lane: &GraphChannel, top: f64, start: Option<usize>) -> Self {
        let mut row = Self {
            top,
            ..Self::default()
        };
        let mut above = Levels::default();
        let mut passing: Vec<(usize, usize)> = lane
            .entries
            .iter()
            .filter_map(|stop| Some((stop.replaces?, stop.bundle)))
            .filter(|(from, to)| passes_over(lane, *from, *to))
            .collect();
        passing.sort_by_key(|(from, to)| from.abs_diff(*to));
        for (from, to) in passing {
            let level = above.place(from.min(to), from.max(to));
            row.arcs.push((from, to, level));
        }
        let mut below = Levels::default();
        let mut brackets: Vec<Bracket> = Vec::new();
        for stop in &lane.entries {
            let mut add = |from: Vec<usize>, range| {
                if !from.is_empty() {
                    brackets.push(Bracket {
                        to: stop.bundle,
                        from,
                        range,
                        level: 0,
                    });
                }
            };
            add(stop.skips.clone(), false);
            let start =
                start.filter(|start| stop.in_skip_range.contains(start) && !stop.skips.contains(start));
            // Ranges of older entries are shown only for the start.
            if stop.head {
                add(stop.in_skip_range.clone(), true);
            } else if let Some(start) = start.filter(|start| stop.replaces != Some(*start)) {
                add(vec![start], true);
            }
        }
        let is_head = |bracket: &Bracket| {
            lane.entries
                .iter()
                .any(|stop| stop.head && stop.bundle == bracket.to)
        };
        brackets.sort_by_key(|bracket| (bracket.range && !is_head(bracket), bracket.range, bracket.width()));
        for mut bracket in brackets {
            let (low, high) = bracket.span();
            // Brackets do not touch: their ends have marks.
            bracket.level = below.place(low, high + 1);
            if bracket.level < LEVELS || (bracket.range && is_head(&bracket)) {
                bracket.level = bracket.level.min(LEVELS);
                row.brackets.push(bracket);
            } else {
                row.left_out += 1;
            }
        }
        let lowest = row
            .brackets
            .iter()
            .map(|bracket| bracket.level + 1)
            .max()
            .unwrap_or_default();
        let highest = row
            .arcs
            .iter()
            .map(|(_, _, level)| level + 1)
            .max()
            .unwrap_or_default();
        let over = 20.0 + float(highest) * ARC;
        row.line = top + over;
        let under = if lowest == 0 {
            20.0
        } else {
            24.0 + float(lowest) * LEVEL
        };
        row.height = over + under;
        row
    }
}

impl Bracket {
    fn width(&self) -> usize {
        let (low, high) = self.span();
        high - low
    }

    /// Returns the lowest and the highest column of the bracket.
    pub(crate) fn span(&self) -> (usize, usize) {
        let low = self.from.iter().copied().min().unwrap_or(self.to);
        let high = self.from.iter().copied().max().unwrap_or(self.to);
        (low.min(self.to), high.max(self.to))
    }
}

/// Returns true if a straight line between two bundles would cross a third.
fn passes_over(lane: &GraphChannel, from: usize, to: usize) -> bool {
    let (low, high) = (from.min(to), from.max(to));
    lane.entries
        .iter()
        .any(|stop| stop.bundle > low && stop.bundle < high)
}

/// Levels of intervals that do not overlap.
#[derive(Debug, Default)]
struct Levels {
    taken: Vec<Vec<(usize, usize)>>,
}

impl Levels {
    /// Returns the first free level; ends may meet.
    fn place(&mut self, low: usize, high: usize) -> usize {
        let free = |level: &Vec<(usize, usize)>| level.iter().all(|(a, b)| *b <= low || high <= *a);
        let level = self.taken.iter().position(free).unwrap_or(self.taken.len());
        match self.taken.get_mut(level) {
            Some(taken) => taken.push((low, high)),
            None => self.taken.push(vec![(low, high)]),
        }
        level
    }
}

/// Converts a count, which is small in a picture.
pub(crate) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::Levels;

    #[test]
    fn intervals_share_a_level_when_they_do_not_overlap() {
        let mut levels = Levels::default();
        assert_eq!(levels.place(0, 2), 0);
        assert_eq!(levels.place(2, 4), 0);
        assert_eq!(levels.place(1, 3), 1);
        assert_eq!(levels.place(5, 9), 0);
        assert_eq!(levels.place(0, 9), 2);
    }
}
