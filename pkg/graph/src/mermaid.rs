//! Graph as a Mermaid flowchart, for READMEs and issues.

use std::fmt::Write as _;

use super::misleads;
use super::model::{CrossEdge, Graph, Node, Relation};

/// Returns the graph as a flowchart from left to right; one subgraph a channel.
pub fn mermaid(graph: &Graph) -> String {
    let mut text = format!(
        "%% upgrade graph of package {}\nflowchart LR\n",
        graph.package.replace(misleads, " ")
    );
    let mut classes = Vec::new();
    for (number, lane) in graph.channels.iter().enumerate() {
        let _ = writeln!(text, "  subgraph c{number}[\"{}\"]", escape(&lane.title()));
        for stop in &lane.entries {
            let Some(node) = graph.node(stop.bundle) else {
                continue;
            };
            let id = format!("c{number}b{}", stop.bundle);
            let label = escape(&node.label);
            // A head has double sides.
            let _ = if stop.head {
                writeln!(text, "    {id}[[\"{label}\"]]")
            } else {
                writeln!(text, "    {id}[\"{label}\"]")
            };
            if let Some(class) = class(graph, node) {
                classes.push(format!("  class {id} {class}"));
            }
        }
        for stop in &lane.entries {
            let to = format!("c{number}b{}", stop.bundle);
            if let Some(from) = stop.replaces {
                let _ = match graph.verdict(from, stop.bundle) {
                    None => writeln!(text, "    c{number}b{from} --> {to}"),
                    Some(verdict) => writeln!(
                        text,
                        "    c{number}b{from} -->|\"{}\"| {to}",
                        escape(&verdict.line())
                    ),
                };
            }
            for from in &stop.skips {
                let _ = match graph.verdict(*from, stop.bundle) {
                    None => writeln!(text, "    c{number}b{from} -. skips .-> {to}"),
                    Some(verdict) => writeln!(
                        text,
                        "    c{number}b{from} -.->|\"skips, {}\"| {to}",
                        escape(&verdict.line())
                    ),
                };
            }
        }
        text.push_str("  end\n");
    }
    for CrossEdge { from, to, how } in graph.cross_edges() {
        let ((lane, from), (to_lane, to)) = (from, to);
        let _ = writeln!(text, "  c{lane}b{from} -. {how} .-> c{to_lane}b{to}");
    }
    text.push_str(
        "  classDef deprecated stroke:#b45309,stroke-dasharray:4\n  classDef missing stroke-dasharray:2,color:#888\n  \
         classDef start fill:#bfdbfe,stroke:#1d4ed8\n  classDef next fill:#4ade80,stroke:#15803d\n  \
         classDef reachable fill:#dcfce7,stroke:#15803d\n  classDef unreachable fill:#f3f4f6,color:#888\n",
    );
    for class in classes {
        text.push_str(&class);
        text.push('\n');
    }
    text
}

fn class(graph: &Graph, node: &Node) -> Option<&'static str> {
    Some(match graph.relation(node) {
        Relation::Start => "start",
        Relation::Next => "next",
        _ if !node.present => "missing",
        _ if node.deprecated.is_some() => "deprecated",
        Relation::Reachable => "reachable",
        Relation::Unreachable => "unreachable",
        Relation::Free => return None,
    })
}

/// Escapes text inside double quotes; Mermaid knows HTML's entities with `#` for `&`.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' => {
                let _ = write!(escaped, "#{};", u32::from(c));
            }
            c if misleads(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
