//! Legend of an SVG picture.

use std::fmt::Write as _;

use super::look::Look;
use crate::layout::{LEGEND_LINE, Layout, float};
use crate::model::Graph;
use crate::standing::Outlook;

/// Left end of the lines.
const LEFT: f64 = 24.0;

/// Draws the legend below the rows.
pub(super) fn legend(out: &mut String, graph: &Graph, layout: &Layout) {
    let y = layout.height - 22.0;
    prospects(out, graph, y - LEGEND_LINE);
    let mut x = LEFT;
    let mut item = |drawing: &str, text: &str| draw(out, &mut x, y, drawing, text);
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

/// Draws the looks of upgrades by what the resolution says of them.
fn prospects(out: &mut String, graph: &Graph, y: f64) {
    let mut x = LEFT;
    for outlook in [
        Outlook::Chosen,
        Outlook::Possible,
        Outlook::Later,
        Outlook::Held,
        Outlook::Blocked,
    ] {
        let mut shown = graph.bundles.iter().filter_map(|node| node.standing.as_ref());
        if graph.verdicts.is_empty() && shown.any(|standing| standing.outlook == outlook) {
            let look = Look::of(outlook);
            let (element, mark) = Look::mark(Some(outlook), 0.0, 0.0);
            let drawing = format!(
                "<path d=\"M-11 0H11\" {}/><{element} {mark} fill=\"{colour}\" stroke=\"{colour}\"/>",
                look.attributes(),
                colour = look.colour
            );
            draw(out, &mut x, y, &drawing, outlook.text());
        }
    }
}

fn draw(out: &mut String, x: &mut f64, y: f64, drawing: &str, text: &str) {
    let _ = writeln!(
        out,
        "<g transform=\"translate({x:.1} {y:.1})\">{drawing}<text x=\"16\" y=\"4\" font-size=\"11\" fill=\"#475569\">{text}</text></g>"
    );
    *x += 34.0 + float(text.chars().count()) * 6.2;
}
