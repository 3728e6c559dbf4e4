//! Graph in Graphviz's language.

use std::fmt::Write as _;

use super::misleads;
use super::model::{CrossEdge, Graph, Node, Relation};

/// Returns the graph as DOT; one cluster a channel.
pub fn dot(graph: &Graph) -> String {
    let mut text = format!(
        "digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];\n",
        escape(&graph.package)
    );
    for (number, lane) in graph.channels.iter().enumerate() {
        let _ = writeln!(
            text,
            "  subgraph cluster_{number} {{\n    label=\"{}\";",
            escape(&lane.title())
        );
        for stop in &lane.entries {
            let Some(node) = graph.node(stop.bundle) else {
                continue;
            };
            let _ = writeln!(
                text,
                "    c{number}b{} [label=\"{}\", tooltip=\"{}\"{}{}];",
                stop.bundle,
                escape(&node.label),
                escape(&node.name),
                if stop.head { ", peripheries=2" } else { "" },
                look(graph, node),
            );
        }
        for stop in &lane.entries {
            if let Some(from) = stop.replaces {
                let verdict = verdict(graph, from, stop.bundle);
                let look = if verdict.is_empty() {
                    String::new()
                } else {
                    format!(" [{verdict}]")
                };
                let _ = writeln!(text, "    c{number}b{from} -> c{number}b{}{look};", stop.bundle);
            }
            for from in &stop.skips {
                let _ = writeln!(
                    text,
                    "    c{number}b{from} -> c{number}b{} [style=dashed, {}, constraint=false];",
                    stop.bundle,
                    match verdict(graph, *from, stop.bundle) {
                        text if text.is_empty() => "color=gray50".to_owned(),
                        text => text,
                    }
                );
            }
        }
        text.push_str("  }\n");
    }
    for CrossEdge { from, to, how } in graph.cross_edges() {
        let ((lane, from), (to_lane, to)) = (from, to);
        let _ = writeln!(
            text,
            "  c{lane}b{from} -> c{to_lane}b{to} [style=dotted, color=darkorange3, label=\"{how}\", constraint=false];"
        );
    }
    text.push_str("}\n");
    text
}

/// Returns the attributes of an edge with a verdict; empty without one.
fn verdict(graph: &Graph, from: usize, to: usize) -> String {
    let Some(verdict) = graph.verdict(from, to) else {
        return String::new();
    };
    let colour = match (&verdict.error, verdict.findings) {
        (Some(_), _) => "gray50",
        (None, 0) => "forestgreen",
        (None, _) => "firebrick",
    };
    format!(
        "label=\"{}\", tooltip=\"{}\", color={colour}, fontsize=9",
        escape(&verdict.line()),
        escape(&verdict.details())
    )
}

fn look(graph: &Graph, node: &Node) -> String {
    let standing = graph.relation(node);
    let fill = match standing {
        Relation::Free => "",
        Relation::Start => ", fillcolor=lightblue",
        Relation::Next => ", fillcolor=palegreen3",
        Relation::Reachable => ", fillcolor=honeydew",
        Relation::Unreachable if node.deprecated.is_some() => ", fillcolor=gray95",
        Relation::Unreachable => ", fillcolor=gray95, fontcolor=gray50",
    };
    let edge = match (node.present, &node.deprecated) {
        (false, _) => ", color=gray50, fontcolor=gray50, style=\"rounded,dashed\"",
        (true, Some(_)) => ", color=darkorange3, fontcolor=darkorange3",
        (true, None) => "",
    };
    format!("{fill}{edge}")
}

/// Escapes text inside double quotes.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            c if misleads(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
