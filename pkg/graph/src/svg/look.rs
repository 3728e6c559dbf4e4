//! Looks of edges. Colour never stands alone: width and dashes tell the same, on paper and to eyes that see few colours.

use super::pen::N;
use crate::model::{Graph, Relation};
use crate::standing::{Outlook, Standing};
use crate::verdict::EdgeVerdict;

/// Look of a line.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) colour: &'static str,
    pub(super) width: &'static str,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub(super) dash: &'static str,
    /// Name of the arrow's head.
    pub(super) marker: &'static str,
}

impl Look {
    const PLAIN: Self = Self {
        colour: "#64748b",
        width: "1.6",
        dash: "",
        marker: "arrow",
    };
    const FAINT: Self = Self {
        colour: "#cbd5e1",
        marker: "faint",
        ..Self::PLAIN
    };

    /// Returns the look of an upgrade with a prospect.
    pub(super) fn of(outlook: Outlook) -> Self {
        let (colour, width, dash) = match outlook {
            Outlook::Chosen => ("#15803d", "2.8", ""),
            Outlook::Possible => ("#15803d", "1.6", ""),
            Outlook::Later => ("#64748b", "1", ""),
            Outlook::Held => ("#a16207", "1.8", "7 3"),
            Outlook::Blocked => ("#b91c1c", "2.2", "1.5 2.5"),
        };
        Self {
            colour,
            width,
            dash,
            ..Self::PLAIN
        }
    }

    /// Returns the look of an edge.
    pub(super) fn of_edge(graph: &Graph, from: usize, to: usize) -> Self {
        let plain = if on_the_way(graph, from) {
            Self::PLAIN
        } else {
            Self::FAINT
        };
        if let Some(verdict) = graph.verdict(from, to) {
            return Self {
                colour: verdict_colour(verdict),
                ..plain
            };
        }
        standing(graph, from, to).map_or(plain, |standing| Self::of(standing.outlook))
    }

    /// Returns the end of a bracket with a prospect as the name and the attributes of an element: the chosen bundle's is large, that of
    /// one that is held back a square, that of one that is blocked a cross.
    pub(super) fn mark(outlook: Option<Outlook>, x: f64, y: f64) -> (&'static str, String) {
        let circle = |radius: f64| {
            (
                "circle",
                format!("cx=\"{}\" cy=\"{}\" r=\"{}\"", N(x), N(y), N(radius)),
            )
        };
        match outlook {
            Some(Outlook::Chosen) => circle(3.8),
            Some(Outlook::Possible) => circle(3.0),
            Some(Outlook::Later) | None => circle(2.2),
            Some(Outlook::Held) => ("path", format!("d=\"M{} {}h5v5h-5z\"", N(x - 2.5), N(y - 2.5))),
            Some(Outlook::Blocked) => (
                "path",
                format!(
                    "d=\"M{x1} {y1}l6 6m0 -6l-6 6\" stroke-width=\"1.8\"",
                    x1 = N(x - 3.0),
                    y1 = N(y - 3.0)
                ),
            ),
        }
    }

    /// Returns the attributes of the line.
    pub(super) fn attributes(self) -> String {
        let dash = if self.dash.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{}\"", self.dash)
        };
        format!(
            "fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}",
            self.colour, self.width
        )
    }
}

/// Returns what the resolution says of an edge that can be part of a path from the start. A bundle that is chosen or possible is so by a
/// direct upgrade; the other edges to it are not the way.
pub(super) fn standing(graph: &Graph, from: usize, to: usize) -> Option<&Standing> {
    let start = graph.start_position()?;
    if !on_the_way(graph, from) {
        return None;
    }
    let standing = graph.node(to)?.standing.as_ref()?;
    let direct = matches!(standing.outlook, Outlook::Chosen | Outlook::Possible);
    (from == start || !direct).then_some(standing)
}

/// Returns the colour of an edge with a verdict on its bundles.
pub(super) fn verdict_colour(verdict: &EdgeVerdict) -> &'static str {
    match (&verdict.error, verdict.findings) {
        (Some(_), _) => "#94a3b8",
        (None, 0) => "#15803d",
        (None, _) => "#b91c1c",
    }
}

/// Returns true if an edge from the bundle can be part of a path from the start.
fn on_the_way(graph: &Graph, from: usize) -> bool {
    graph
        .node(from)
        .is_none_or(|node| graph.relation(node) != Relation::Unreachable)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const OUTLOOKS: [Outlook; 5] = [
        Outlook::Chosen,
        Outlook::Possible,
        Outlook::Later,
        Outlook::Held,
        Outlook::Blocked,
    ];

    #[test]
    fn prospects_differ_without_colours() {
        let looks: BTreeSet<_> = OUTLOOKS.map(Look::of).map(|look| (look.width, look.dash)).into();
        assert_eq!(looks.len(), OUTLOOKS.len());
        let marks: BTreeSet<String> = OUTLOOKS
            .map(|outlook| Look::mark(Some(outlook), 0.0, 0.0).1)
            .into();
        assert_eq!(marks.len(), OUTLOOKS.len());
    }
}
