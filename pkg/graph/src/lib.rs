//! The upgrade graph of a package, and three ways to draw it.
//!
//! [`Graph`] is plain data, and the only input of every format. Names are untrusted: each format escapes them by its
//! own rules.

mod build;
mod dot;
mod layout;
mod mermaid;
mod model;
mod standing;
mod svg;
mod verdict;

pub use build::build;
pub use dot::dot;
pub use mermaid::mermaid;
pub use model::{ChannelEntry, CrossEdge, Graph, GraphChannel, Node, Relation, Start};
pub use standing::{Outlook, Standing};
pub use svg::svg;
pub use verdict::EdgeVerdict;

/// Returns true for characters of an untrusted text that can hide or reorder others.
fn misleads(character: char) -> bool {
    character.is_control() || olm_text::changes_direction(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_format_passes_on_marks_of_writing_direction() {
        let name = "a\u{202e}b\u{2066}c\x1b";
        let lane = GraphChannel {
            name: name.to_owned(),
            default: true,
            deprecated: None,
            entries: Vec::new(),
        };
        let graph = Graph {
            package: name.into(),
            catalog: "c".into(),
            deprecated: None,
            start: None,
            bundles: Vec::new(),
            channels: vec![lane],
            verdicts: std::collections::BTreeMap::new(),
            not_annotated: 0,
        };
        for drawn in [mermaid(&graph), dot(&graph), svg(&graph)] {
            assert!(!drawn.contains(|c| c != '\n' && misleads(c)), "{drawn:?}");
            assert!(drawn.contains('b'), "{drawn}");
        }
    }
}
