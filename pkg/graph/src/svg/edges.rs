//! Edges of an SVG picture: `replaces` as lines and arcs, `skips` and skip ranges as brackets.

use std::fmt::Write as _;

use olm_text::counted;

use super::pen::{Group, N, escape};
use crate::layout::{ARC, Bracket, LEVEL, Layout, RADIUS, Row, float};
use crate::model::{Graph, GraphChannel, Relation};
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
        let (colour, marker) = if on_the_way(graph, from) {
            ("#64748b", "arrow")
        } else {
            ("#cbd5e1", "faint")
        };
        let colour = graph.verdict(from, stop.bundle).map_or(colour, verdict_colour);
        let ring = if stop.head { RADIUS + 4.0 } else { RADIUS };
        let level = level(from, stop.bundle);
        let width = if level.is_some() { "1.4" } else { "1.6" };
        let style = format!(
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" marker-end=\"url(#{marker})\""
        );
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

/// Returns the colour of an edge with a verdict.
fn verdict_colour(verdict: &EdgeVerdict) -> &'static str {
    match (&verdict.error, verdict.findings) {
        (Some(_), _) => "#94a3b8",
        (None, 0) => "#15803d",
        (None, _) => "#b91c1c",
    }
}

/// Returns the end of an edge's element, with the verdict as its tooltip.
fn close(graph: &Graph, from: usize, to: usize, element: &str) -> String {
    let label = |position: usize| graph.node(position).map_or("", |node| node.label.as_str());
    graph.verdict(from, to).map_or_else(
        || "/>".to_owned(),
        |verdict| {
            let text = format!("{} to {}: {}", label(from), label(to), verdict.details());
            format!("><title>{}</title></{element}>", escape(&text))
        },
    )
}

/// Returns true if an edge from the bundle can be part of a path from the start.
fn on_the_way(graph: &Graph, from: usize) -> bool {
    graph
        .node(from)
        .is_none_or(|node| graph.relation(node) != Relation::Unreachable)
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
    let y = N(row.line + RADIUS + 11.0 + LEVEL * float(bracket.level));
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
        let colour = graph.verdict(*from, bracket.to).map_or(colour, verdict_colour);
        let fill = if inside { colour } else { "#ffffff" };
        group.of(
            out,
            &format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"0.8\""),
        );
        let _ = writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{y}\" r=\"2.2\"{}",
            N(layout.x(*from)),
            close(graph, *from, bracket.to, "circle")
        );
    }
    group.close(out);
}
