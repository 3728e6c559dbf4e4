//! Graph as lines of text: by channel, from the head down.

use std::fmt::Write as _;

use olm_graph::{ChannelEntry, Graph, GraphChannel, Relation};
use olm_text::{counted, list};

use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Maximum number of names in a cell.
const NAMED: usize = 3;

/// Returns the graph as text.
pub(crate) fn text(graph: &Graph, style: Style) -> String {
    let mut text = String::new();
    let title = style.paint(Paint::Bold, &clean(&graph.package));
    let _ = writeln!(text, "{title} in catalog {}", clean(&graph.catalog));
    if let Some(message) = &graph.deprecated {
        let line = format!("deprecated: {}", clean(message));
        let _ = writeln!(text, "{}", style.paint(Paint::Warn, &line));
    }
    if let Some(start) = &graph.start {
        let next = match (&start.next, &start.trouble) {
            (Some(next), _) if *next == start.bundle => "stays".to_owned(),
            (Some(next), _) => format!("next {next}"),
            (None, Some(trouble)) => trouble.clone(),
            (None, None) => "no upgrade".to_owned(),
        };
        let line = format!(
            "from {} ({}): {next}, by {} semantics",
            start.bundle, start.version, start.semantics
        );
        let _ = writeln!(text, "{}", clean(&line));
    }
    for lane in &graph.channels {
        write_lane(&mut text, graph, lane, style);
    }
    write_verdicts(&mut text, graph, style);
    let loose = loose(graph);
    if !loose.is_empty() {
        let _ = writeln!(
            text,
            "\nin no channel: {}",
            clean(&list(&loose, style.at_most(10)))
        );
    }
    let _ = writeln!(
        text,
        "\n{}",
        style.paint(
            Paint::Dim,
            "* head   o bundle   x deprecated   ? named, but not in the catalog"
        )
    );
    text
}

fn write_lane(text: &mut String, graph: &Graph, lane: &GraphChannel, style: Style) {
    let heads = lane.heads(graph);
    let mut title = style.paint(Paint::Bold, &format!("channel {}", clean(&lane.name)));
    if lane.default {
        title.push_str(" (default)");
    }
    let head = match heads.as_slice() {
        [] => "no head".to_owned(),
        [head] => format!("head {head}"),
        heads => counted(heads.len(), "head"),
    };
    let _ = writeln!(text, "\n{title}: {}", clean(&head));
    if let Some(message) = &lane.deprecated {
        let notice = format!("deprecated: {message}");
        let _ = writeln!(text, "  {}", style.paint(Paint::Warn, &clean(&notice)));
    }
    let mut table = Table::new(&["", "VERSION", "REPLACES", "SKIPS", "SKIP RANGE", "NOTES"]);
    for stop in lane.entries.iter().rev() {
        let Some(node) = graph.node(stop.bundle) else {
            continue;
        };
        let label = |position: usize| graph.node(position).map(|node| node.label.clone());
        let replaces = stop.replaces.and_then(label).unwrap_or_default();
        let skips: Vec<String> = stop.skips.iter().rev().filter_map(|skip| label(*skip)).collect();
        let (paint, notes) = notes(graph, stop, style);
        let sign = match (node.present, &node.deprecated) {
            (false, _) => "?",
            (_, Some(_)) => "x",
            _ if stop.head => "*",
            _ => "o",
        };
        table.row(
            paint,
            [
                sign,
                &node.label,
                &replaces,
                &list(&skips, style.at_most(NAMED)),
                &stop.skip_range,
                &notes,
            ],
        );
    }
    text.push_str(&table.text(style, "  "));
}

/// Writes a table of the edges with their verdicts.
fn write_verdicts(text: &mut String, graph: &Graph, style: Style) {
    if graph.verdicts.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", style.paint(Paint::Bold, "upgrades"));
    let mut table = Table::new(&["FROM", "TO", "CRDS", "RIGHTS GAINED", "NEW IMAGES", "DETAILS"]);
    for ((from, to), verdict) in graph.verdicts.iter().rev() {
        let label = |position: usize| graph.node(position).map_or("", |node| node.label.as_str());
        let paint = match (&verdict.error, verdict.findings) {
            (Some(_), _) => Paint::Dim,
            (None, 0) => Paint::Plain,
            (None, _) => Paint::Bad,
        };
        let details = verdict.error.as_ref().or(verdict.finding.as_ref());
        table.row(
            paint,
            [
                label(*from),
                label(*to),
                &verdict.crds(),
                &verdict.rights_gained.to_string(),
                &verdict.new_images.to_string(),
                details.map_or("", String::as_str),
            ],
        );
    }
    text.push_str(&table.text(style, "  "));
    if graph.not_annotated > 0 {
        let _ = writeln!(
            text,
            "  and {} without a verdict",
            counted(graph.not_annotated, "edge")
        );
    }
}

fn notes(graph: &Graph, stop: &ChannelEntry, style: Style) -> (Paint, String) {
    let Some(node) = graph.node(stop.bundle) else {
        return (Paint::Plain, String::new());
    };
    let mut notes = Vec::new();
    if stop.head {
        notes.push("head".to_owned());
    }
    if node.deprecated.is_some() {
        notes.push("deprecated".to_owned());
    }
    let mut paint = if node.deprecated.is_some() {
        Paint::Warn
    } else {
        Paint::Plain
    };
    match graph.relation(node) {
        Relation::Free => {}
        Relation::Start => {
            paint = Paint::Bold;
            notes.push("installed".to_owned());
        }
        Relation::Next => {
            paint = Paint::Good;
            notes.push("next".to_owned());
        }
        Relation::Reachable => notes.push(match node.steps {
            Some(0 | 1) | None => "directly reachable".to_owned(),
            Some(steps) => format!("reachable in {}", counted(steps, "upgrade")),
        }),
        Relation::Unreachable => {
            paint = Paint::Dim;
            notes.push("not reachable".to_owned());
        }
    }
    if !stop.outside.is_empty() {
        notes.push(format!(
            "also from {} outside the channel",
            list(&stop.outside, style.at_most(NAMED))
        ));
    }
    (paint, notes.join(", "))
}

/// Returns the labels of bundles that no channel lists.
fn loose(graph: &Graph) -> Vec<String> {
    let listed: std::collections::BTreeSet<usize> = graph
        .channels
        .iter()
        .flat_map(|lane| &lane.entries)
        .map(|stop| stop.bundle)
        .collect();
    let all = graph.bundles.iter().enumerate();
    all.filter(|(position, _)| !listed.contains(position))
        .map(|(_, node)| node.label.clone())
        .collect()
}
