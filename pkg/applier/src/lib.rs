//! Server-side apply in phases: plan, ownership, collisions, probes, drift watches, teardown.
//!
//! [`plan`], [`probe`], [`workload`], [`account`], [`applied`], [`custom_resources`], [`left_behind`] and [`ownership`] are pure functions
//! on values. [`content`], [`engine`], [`namespaces`], [`stored`], [`watch`] and `pods` call the API server. The engine applies a revision
//! phase by phase: a phase starts when the previous
//! one has passed its probes. Teardown runs in the reverse order.

pub mod account;
pub mod applied;
pub mod content;
pub mod custom_resources;
pub mod engine;
pub mod left_behind;
pub mod namespaces;
pub mod ownership;
pub mod plan;
mod pods;
pub mod probe;
mod refusal;
pub mod stored;
pub mod watch;
pub mod workload;
