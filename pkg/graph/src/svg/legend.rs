//! Legend of an SVG picture.

use std::fmt::Write as _;

use crate::layout::{Layout, float};
use crate::model::Graph;

/// Draws the legend below the rows.
pub(super) fn legend(out: &mut String, graph: &Graph, layout: &Layout) {
    let y = layout.height - 22.0;
    let mut x = 24.0;
    let mut item = |drawing: &str, text: &str| {
        let _ = writeln!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\">{drawing}<text x=\"16\" y=\"4\" font-size=\"11\" fill=\"#475569\">{text}</text></g>"
        );
        x += 34.0 + float(text.chars().count()) * 6.2;
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
