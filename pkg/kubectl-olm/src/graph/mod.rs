//! The upgrade graph of a package, and four ways to draw it.
//!
//! [`Graph`] is plain data, and the only input of every format. Names are untrusted: each format escapes them by its
//! own rules.

mod build;
mod dot;
mod layout;
mod mermaid;
mod model;
mod svg;
mod text;

pub(crate) use build::build;
pub(crate) use dot::dot;
pub(crate) use mermaid::mermaid;
pub(crate) use model::{Graph, Start};
pub(crate) use svg::svg;
pub(crate) use text::text;
