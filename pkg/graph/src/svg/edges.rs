//! Edges of an SVG picture: `replaces` as lines and arcs, `skips` and skip ranges as brackets.

use std::fmt::Write as _;

use olm_text::counted;

use super::look::{Look, standing, verdict_colour};
use super::pen::{Group, N, escape};
use crate::layout::{ARC, Bracket, LEVEL, Layout, RADIUS, Row, float};
use crate::model::{Graph, GraphChannel};
use crate::standing::Standing;
use crate::verdict::EdgeVerdict;

/// Draws the edges of a channel.
pub(super) fn edges(out: &mut String, graph: &Graph, lane: &GraphChannel, row: &Row, layout: &Layout) {
    replaced(out, graph, lane, row, layout);
    for bracket in &row.brackets {
        draw_bracket(out, graph, bracket, lane, row, layout);
    }
    if row.left_out > 0 {
        let _ = writeln!(
            out,
            "<text x=\"16\" y=\"{}\" font-size=\"10\" fill=\"#94a3b8\">and {}</text>",
            N(row.line + 26.0),
            counted(row.left_out, "more skip")
        );
    }
}

fn replaced(out: &mut String, graph: &Graph, lane: &GraphChannel, row: &Row, layout: &Layout) {
    let level = |from: usize, to: usize| {
        let arc = row.arcs.iter().find(|arc| (arc.0, arc.1) == (from, to));
        arc.map(|(_, _, level)| *level)
    };
    let mut group = Group::default();
    for stop in &lane.entries {
        let Some(from) = stop.replaces else { continue };
        let (start, end) = (layout.x(from), layout.x(stop.bundle));
        let direction = if end > start { 1.0 } else { -1.0 };
        let look = Look::of_edge(graph, from, stop.bundle);
        let ring = if stop.head { RADIUS + 4.0 } else { RADIUS };
        let level = level(from, stop.bundle);
        let style = format!("{} marker-end=\"url(#{})\"", look.attributes(), look.marker);
        group.of(out, &style);
        let close = close(graph, from, stop.bundle, "path");
        let _ = match level {
            None => writeln!(
                out,
                "<path d=\"M{} {}H{}\"{close}",
                N(start + direction * RADIUS),
                N(row.line),
                N(end - direction * (ring + 1.0)),
            ),
            Some(level) => {
                // Curves reach three quarters of the way to their control points.
                let lift = (8.0 + ARC * float(level + 1)) / 0.75;
                let peak = N(row.line - RADIUS - lift);
                writeln!(
                    out,
                    "<path d=\"M{} {}C{} {peak} {} {peak} {} {}\"{close}",
                    N(start + direction * 3.0),
                    N(row.line - RADIUS - 1.0),
                    N(start + direction * 14.0),
                    N(end - direction * 14.0),
                    N(end - direction * 3.0),
                    N(row.line - ring - 1.0),
                )
            }
        };
    }
    group.close(out);
}

/// Returns the end of an edge's element, with the verdict as its tooltip.
fn close(graph: &Graph, from: usize, to: usize, element: &str) -> String {
    let label = |position: usize| graph.node(position).map_or("", |node| node.label.as_str());
    let verdict = graph.verdict(from, to).map(EdgeVerdict::details);
    // Tooltips of all edges would make the picture of a large graph too large.
    let standing = standing(graph, from, to).filter(|_| graph.start_position() == Some(from));
    match verdict.or_else(|| standing.map(Standing::line)) {
        None => "/>".to_owned(),
        Some(text) => {
            let text = format!("{} to {}: {text}", label(from), label(to));
            format!("><title>{}</title></{element}>", escape(&text))
        }
    }
}

fn draw_bracket(
    out: &mut String,
    graph: &Graph,
    bracket: &Bracket,
    lane: &GraphChannel,
    row: &Row,
    layout: &Layout,
) {
    let (colour, dash) = if bracket.range {
        ("#d97706", "2 3")
    } else {
        ("#7c3aed", "5 3")
    };
    let level = row.line + RADIUS + 11.0 + LEVEL * float(bracket.level);
    let y = N(level);
    let (low, high) = bracket.span();
    let to = N(layout.x(bracket.to));
    let _ = writeln!(
        out,
        "<path d=\"M{} {y}H{}M{to} {y}V{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\" stroke-dasharray=\"{dash}\"/>",
        N(layout.x(low)),
        N(layout.x(high)),
        N(row.line + RADIUS + 5.0)
    );
    let _ = writeln!(
        out,
        "<path d=\"M{to} {}l3 5h-6z\" fill=\"{colour}\"/>",
        N(row.line + RADIUS + 4.5)
    );
    let mut group = Group::default();
    for from in &bracket.from {
        // Bundles of other channels are only outlined.
        let inside = lane.entries.iter().any(|stop| stop.bundle == *from);
        let verdict = graph.verdict(*from, bracket.to).map(verdict_colour);
        let outlook = standing(graph, *from, bracket.to).map(|standing| standing.outlook);
        let colour = verdict
            .or(outlook.map(|outlook| Look::of(outlook).colour))
            .unwrap_or(colour);
        let fill = if inside { colour } else { "#ffffff" };
        group.of(
            out,
            &format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"0.8\""),
        );
        let (element, attributes) = Look::mark(outlook.filter(|_| verdict.is_none()), layout.x(*from), level);
        let _ = writeln!(
            out,
            "<{element} {attributes}{}",
            close(graph, *from, bracket.to, element)
        );
    }
    group.close(out);
}
