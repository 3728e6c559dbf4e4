//! The canonical form of a meta.
