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
