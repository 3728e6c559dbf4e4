//! Decisions of operator-controller: what a pass does with an extension, and with one of its revisions.
//!
//! The functions are pure: no API server, registry, catalog or clock. A pass gathers their arguments, and carries out what they
//! return.

pub mod extension;
pub mod numbers;
pub mod object_set;
