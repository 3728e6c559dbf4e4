//! Bundles of an SVG picture: columns with labels, and circles.

use std::fmt::Write as _;

use olm_text::{counted, list};

use super::pen::{Group, N, escape};
use crate::layout::{Layout, RADIUS, Row};
use crate::model::{ChannelEntry, Graph, GraphChannel, Node, Relation};

/// Draws the columns of all bundles, each with its label.
pub(super) fn columns(out: &mut String, graph: &Graph, layout: &Layout) {
    out.push_str("<path stroke=\"#e2e8f0\" d=\"");
    for column in 0..graph.bundles.len() {
        let _ = write!(
            out,
            "M{} {}V{}",
            N(layout.x(column)),
            N(layout.top),
            N(layout.bottom)
        );
    }
    out.push_str("\"/>\n");
    labels(out, graph, layout, layout.top - 6.0, -60);
    if layout.labels_below {
        labels(out, graph, layout, layout.bottom + 14.0, 60);
    }
}

fn labels(out: &mut String, graph: &Graph, layout: &Layout, y: f64, degrees: i32) {
    let mut group = Group::default();
    for (column, node) in graph.bundles.iter().enumerate() {
        let colour = match graph.relation(node) {
            Relation::Start => "#1d4ed8",
            Relation::Next => "#15803d",
            _ if node.deprecated.is_some() => "#b45309",
            Relation::Unreachable => "#94a3b8",
            _ if !node.present => "#94a3b8",
            _ => "#334155",
        };
        let weight = match graph.relation(node) {
            Relation::Start | Relation::Next => " font-weight=\"700\"",
            _ => "",
        };
        group.of(out, &format!("font-size=\"11\" fill=\"{colour}\"{weight}"));
        let _ = writeln!(
            out,
            "<text transform=\"translate({} {})rotate({degrees})\">{}</text>",
            N(layout.x(column)),
            N(y),
            escape(&node.label)
        );
    }
    group.close(out);
}

/// Draws the bundles of a channel.
pub(super) fn bundles(out: &mut String, graph: &Graph, lane: &GraphChannel, row: &Row, layout: &Layout) {
    let mut group = Group::default();
    for stop in &lane.entries {
        if let Some(node) = graph.node(stop.bundle) {
            bundle(
                out,
                &mut group,
                graph,
                node,
                stop,
                (layout.x(stop.bundle), row.line),
            );
        }
    }
    group.close(out);
}

fn bundle(
    out: &mut String,
    group: &mut Group,
    graph: &Graph,
    node: &Node,
    stop: &ChannelEntry,
    (x, y): (f64, f64),
) {
    let (fill, stroke) = match graph.relation(node) {
        Relation::Free => ("#ffffff", "#334155"),
        Relation::Start => ("#3b82f6", "#1d4ed8"),
        Relation::Next => ("#22c55e", "#15803d"),
        Relation::Reachable => ("#dcfce7", "#15803d"),
        Relation::Unreachable => ("#f1f5f9", "#cbd5e1"),
    };
    let (stroke, dash) = match (node.present, &node.deprecated) {
        (false, _) => ("#94a3b8", " stroke-dasharray=\"2 2\""),
        (true, Some(_)) => ("#b45309", ""),
        (true, None) => (stroke, ""),
    };
    let circle = |out: &mut String, radius: f64, attributes: &str| {
        let _ = write!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{attributes}",
            N(x),
            N(y),
            N(radius)
        );
    };
    group.of(
        out,
        &format!("fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.8\"{dash}"),
    );
    let title = format!("<title>{}</title>", escape(&tip(graph, node, stop)));
    if !stop.head && node.deprecated.is_none() {
        circle(out, RADIUS, ">");
        let _ = writeln!(out, "{title}</circle>");
        return;
    }
    let _ = write!(out, "<g>{title}");
    if stop.head {
        circle(
            out,
            RADIUS + 3.5,
            " fill=\"#ffffff\" stroke-width=\"1.4\" stroke-dasharray=\"none\"/>",
        );
    }
    circle(out, RADIUS, "/>");
    if node.deprecated.is_some() {
        let reach = RADIUS * 0.5;
        let _ = write!(
            out,
            "<path d=\"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}\" stroke=\"#b45309\" stroke-width=\"1.6\"/>",
            left = N(x - reach),
            right = N(x + reach),
            top = N(y - reach),
            bottom = N(y + reach)
        );
    }
    out.push_str("</g>\n");
}

fn tip(graph: &Graph, node: &Node, stop: &ChannelEntry) -> String {
    let label = |position: &usize| graph.node(*position).map(|node| node.label.clone());
    let mut lines = vec![node.name.to_string()];
    if let Some(replaced) = stop.replaces.as_ref().and_then(label) {
        lines.push(format!("replaces {replaced}"));
    }
    if !stop.skips.is_empty() {
        let skips: Vec<String> = stop.skips.iter().filter_map(label).collect();
        lines.push(format!("skips {}", list(&skips, 20)));
    }
    if !stop.skip_range.is_empty() {
        lines.push(format!("skipRange {}", stop.skip_range));
    }
    if !stop.outside.is_empty() {
        lines.push(format!("from outside the channel: {}", list(&stop.outside, 10)));
    }
    if let Some(message) = &node.deprecated {
        lines.push(format!("deprecated: {message}"));
    }
    if !node.present {
        lines.push("not in the catalog".to_owned());
    }
    if let Some(steps) = node.steps {
        lines.push(format!("{} away", counted(steps, "upgrade")));
    }
    lines.join("\n")
}
