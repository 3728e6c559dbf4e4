//! Graph as an SVG picture without external fonts, scripts or styles.

use std::fmt::Write as _;

use super::layout::{ARC, Bracket, LEVEL, Layout, RADIUS, Row};
use super::model::{ChannelEntry, Graph, GraphChannel, Node, Relation};
use crate::phrase::counted;
use crate::table::list;
use crate::verdicts::EdgeVerdict;

/// Returns the graph as one SVG document.
pub(crate) fn svg(graph: &Graph) -> String {
    let layout = Layout::new(graph);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         font-family=\"ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#1f2937\">",
        w = layout.width,
        h = layout.height
    );
    let _ = writeln!(out, "<title>Upgrade graph of {}</title>", escape(&graph.package));
    out.push_str(
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" markerHeight=\"5\" \
         orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#64748b\"/></marker><marker id=\"faint\" viewBox=\"0 0 8 8\" \
         refX=\"7\" refY=\"4\" markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" \
         fill=\"#cbd5e1\"/></marker></defs>\n",
    );
    let _ = writeln!(
        out,
        "<rect width=\"{:.0}\" height=\"{:.0}\" fill=\"#ffffff\"/>",
        layout.width, layout.height
    );
    title(&mut out, graph);
    for (number, (lane, row)) in graph.channels.iter().zip(&layout.rows).enumerate() {
        if number % 2 == 0 {
            let _ = writeln!(
                out,
                "<rect x=\"0\" y=\"{:.1}\" width=\"{:.0}\" height=\"{:.1}\" fill=\"#f8fafc\"/>",
                row.top, layout.width, row.height
            );
        }
        lane_title(&mut out, graph, lane, row);
    }
    columns(&mut out, graph, &layout);
    for (lane, row) in graph.channels.iter().zip(&layout.rows) {
        edges(&mut out, graph, lane, row, &layout);
        for stop in &lane.entries {
            if let Some(node) = graph.node(stop.bundle) {
                bundle(&mut out, graph, node, stop, layout.x(stop.bundle), row.line);
            }
        }
    }
    if layout.names_behind {
        names_behind(&mut out, graph, &layout);
    }
    legend(&mut out, graph, &layout);
    out.push_str("</svg>\n");
    out
}

fn title(out: &mut String, graph: &Graph) {
    let _ = writeln!(
        out,
        "<text x=\"16\" y=\"28\" font-size=\"18\" font-weight=\"600\">{}</text>",
        escape(&graph.package)
    );
    let mut line = format!(
        "catalog {} · {} · {}",
        graph.catalog,
        count(graph.bundles.len(), "bundle"),
        count(graph.channels.len(), "channel")
    );
    if graph.deprecated.is_some() {
        line.push_str(" · package deprecated");
    }
    if let Some(start) = &graph.start {
        let label = |name: &str| {
            let node = graph.bundles.iter().find(|node| node.name == name);
            node.map_or_else(|| name.to_owned(), |node| node.label.clone())
        };
        let next = match &start.next {
            Some(next) if *next == start.bundle => "stays".to_owned(),
            Some(next) => format!("next {}", label(next)),
            None => "no upgrade".to_owned(),
        };
        let _ = write!(line, " · from {}: {next} ({})", start.version, start.semantics);
    }
    let _ = writeln!(
        out,
        "<text x=\"16\" y=\"48\" fill=\"#64748b\">{}</text>",
        escape(&line)
    );
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn lane_title(out: &mut String, graph: &Graph, lane: &GraphChannel, row: &Row) {
    let colour = if lane.deprecated.is_some() {
        "#b45309"
    } else {
        "#1f2937"
    };
    let weight = if lane.default { "700" } else { "500" };
    let _ = writeln!(
        out,
        "<text x=\"16\" y=\"{:.1}\" font-size=\"13\" font-weight=\"{weight}\" fill=\"{colour}\">{}{}</text>",
        row.line - 2.0,
        escape(&lane.name),
        if lane.default { " ★" } else { "" },
    );
    let heads: Vec<String> = lane.heads(graph).into_iter().map(str::to_owned).collect();
    let mut notes = match heads.len() {
        0 => "no head".to_owned(),
        1 => format!("head {}", list(&heads, 1)),
        count => counted(count, "head"),
    };
    if lane.deprecated.is_some() {
        notes.push_str(", deprecated");
    }
    let _ = writeln!(
        out,
        "<text x=\"16\" y=\"{:.1}\" font-size=\"10.5\" fill=\"#64748b\">{}</text>",
        row.line + 12.0,
        escape(&notes)
    );
}

fn names_behind(out: &mut String, graph: &Graph, layout: &Layout) {
    for (lane, row) in graph.channels.iter().zip(&layout.rows) {
        let Some(last) = lane.entries.last() else { continue };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"#94a3b8\">{}</text>",
            layout.x(last.bundle) + RADIUS + 10.0,
            row.line + 4.0,
            escape(&lane.name)
        );
    }
}

fn columns(out: &mut String, graph: &Graph, layout: &Layout) {
    for (column, node) in graph.bundles.iter().enumerate() {
        let x = layout.x(column);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#e2e8f0\"/>",
            layout.top, layout.bottom
        );
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
        let mut label = |y: f64, degrees: i32| {
            let _ = writeln!(
                out,
                "<text transform=\"translate({x:.1} {y:.1}) rotate({degrees})\" font-size=\"11\" fill=\"{colour}\"{weight}>{}</text>",
                escape(&node.label)
            );
        };
        label(layout.top - 6.0, -60);
        if layout.labels_below {
            label(layout.bottom + 14.0, 60);
        }
    }
}

fn edges(out: &mut String, graph: &Graph, lane: &GraphChannel, row: &Row, layout: &Layout) {
    let arcs = |from: usize, to: usize| row.arcs.iter().find(|arc| (arc.0, arc.1) == (from, to));
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
        let _ = match arcs(from, stop.bundle) {
            None => writeln!(
                out,
                "<line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"1.6\" marker-end=\"url(#{marker})\"{}",
                start + direction * RADIUS,
                end - direction * (ring + 1.0),
                close(graph, from, stop.bundle, "line"),
                y = row.line
            ),
            Some((_, _, level)) => {
                // Curves reach three quarters of the way to their control points.
                let lift = (8.0 + ARC * super::layout::float(level + 1)) / 0.75;
                writeln!(
                    out,
                    "<path d=\"M{:.1} {y:.1} C{:.1} {peak:.1} {:.1} {peak:.1} {:.1} {foot:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\" marker-end=\"url(#{marker})\"{}",
                    start + direction * 3.0,
                    start + direction * 14.0,
                    end - direction * 14.0,
                    end - direction * 3.0,
                    close(graph, from, stop.bundle, "path"),
                    y = row.line - RADIUS - 1.0,
                    foot = row.line - ring - 1.0,
                    peak = row.line - RADIUS - lift
                )
            }
        };
    }
    for bracket in &row.brackets {
        draw_bracket(out, graph, bracket, lane, row, layout);
    }
    if row.left_out > 0 {
        let _ = writeln!(
            out,
            "<text x=\"16\" y=\"{:.1}\" font-size=\"10\" fill=\"#94a3b8\">and {}</text>",
            row.line + 26.0,
            counted(row.left_out, "more skip")
        );
    }
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
    let y = row.line + RADIUS + 11.0 + LEVEL * super::layout::float(bracket.level);
    let (low, high) = bracket.span();
    let to = layout.x(bracket.to);
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {y:.1} H{:.1} M{to:.1} {y:.1} V{:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\" stroke-dasharray=\"{dash}\"/>",
        layout.x(low),
        layout.x(high),
        row.line + RADIUS + 5.0
    );
    let _ = writeln!(
        out,
        "<path d=\"M{to:.1} {:.1} l3 5 h-6 z\" fill=\"{colour}\"/>",
        row.line + RADIUS + 4.5
    );
    for from in &bracket.from {
        // Bundles of other channels are only outlined.
        let inside = lane.entries.iter().any(|stop| stop.bundle == *from);
        let colour = graph.verdict(*from, bracket.to).map_or(colour, verdict_colour);
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"{}\" stroke=\"{colour}\" stroke-width=\"0.8\"{}",
            layout.x(*from),
            if inside { colour } else { "#ffffff" },
            close(graph, *from, bracket.to, "circle")
        );
    }
}

fn bundle(out: &mut String, graph: &Graph, node: &Node, stop: &ChannelEntry, x: f64, y: f64) {
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
    let _ = write!(out, "<g><title>{}</title>", escape(&tip(graph, node, stop)));
    if stop.head {
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"#ffffff\" stroke=\"{stroke}\" stroke-width=\"1.4\"/>",
            RADIUS + 3.5
        );
    }
    let _ = write!(
        out,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS:.1}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.8\"{dash}/>"
    );
    if node.deprecated.is_some() {
        let reach = RADIUS * 0.5;
        let _ = write!(
            out,
            "<path d=\"M{:.1} {:.1} L{:.1} {:.1} M{:.1} {:.1} L{:.1} {:.1}\" stroke=\"#b45309\" stroke-width=\"1.6\"/>",
            x - reach,
            y - reach,
            x + reach,
            y + reach,
            x - reach,
            y + reach,
            x + reach,
            y - reach
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

fn legend(out: &mut String, graph: &Graph, layout: &Layout) {
    let y = layout.height - 22.0;
    let mut x = 24.0;
    let mut item = |drawing: &str, text: &str| {
        let _ = writeln!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\">{drawing}<text x=\"16\" y=\"4\" font-size=\"11\" fill=\"#475569\">{text}</text></g>"
        );
        x += 34.0 + super::layout::float(text.chars().count()) * 6.2;
    };
    let dot = |fill: &str, stroke: &str| {
        format!("<circle r=\"6\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.8\"/>")
    };
    item(
        &format!(
            "<circle r=\"9\" fill=\"none\" stroke=\"#334155\" stroke-width=\"1.4\"/>{}",
            dot("#ffffff", "#334155")
        ),
        "head",
    );
    item(
        "<circle r=\"6\" fill=\"#ffffff\" stroke=\"#b45309\" stroke-width=\"1.8\"/><path d=\"M-3 -3 L3 3 M-3 3 L3 -3\" stroke=\"#b45309\" stroke-width=\"1.6\"/>",
        "deprecated",
    );
    if graph.start.is_some() {
        item(&dot("#3b82f6", "#1d4ed8"), "installed");
        item(&dot("#22c55e", "#15803d"), "next");
        item(&dot("#dcfce7", "#15803d"), "reachable");
        item(&dot("#f1f5f9", "#cbd5e1"), "not reachable");
    }
    item(
        "<path d=\"M-8 0 H8\" stroke=\"#64748b\" stroke-width=\"1.6\" marker-end=\"url(#arrow)\"/>",
        "replaced by",
    );
    let has = |range| {
        layout
            .rows
            .iter()
            .flat_map(|row| &row.brackets)
            .any(|bracket| bracket.range == range)
    };
    if has(false) {
        item(
            "<path d=\"M-8 0 H8\" stroke=\"#7c3aed\" stroke-width=\"1.2\" stroke-dasharray=\"5 3\"/>",
            "skips",
        );
    }
    if has(true) {
        item(
            "<path d=\"M-8 0 H8\" stroke=\"#d97706\" stroke-width=\"1.2\" stroke-dasharray=\"2 3\"/>",
            if graph.start.is_some() {
                "skipRange"
            } else {
                "skipRange of the head"
            },
        );
    }
    if !graph.verdicts.is_empty() {
        let line = |colour: &str| format!("<path d=\"M-8 0 H8\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        item(&line("#15803d"), "CRD-safe");
        item(&line("#b91c1c"), "CRD findings");
        item(&line("#94a3b8"), "not compared");
    }
    item("<text x=\"-5\" y=\"4\">★</text>", "default channel");
}

/// Escapes text for XML; replaces characters that XML does not allow.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
