//! Graph as an SVG picture without external fonts, scripts or styles.

mod edges;
mod legend;
mod look;
mod nodes;
mod pen;

use std::fmt::Write as _;

use olm_text::{counted, list};

use crate::layout::{Layout, RADIUS, Row};
use crate::model::{Graph, GraphChannel};
use edges::edges;
use legend::legend;
use nodes::{bundles, columns};
use pen::escape;

/// Returns the graph as one SVG document.
pub fn svg(graph: &Graph) -> String {
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
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#64748b\"/></marker><marker id=\"faint\" viewBox=\"0 0 8 8\" \
         refX=\"7\" refY=\"4\" markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" \
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
        bundles(&mut out, graph, lane, row, &layout);
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
        counted(graph.bundles.len(), "bundle"),
        counted(graph.channels.len(), "channel")
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
