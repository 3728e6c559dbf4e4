//! Server-side apply in phases: plan, ownership, collisions, probes, drift watches, teardown.
//!
//! [`plan`], [`probe`], [`account`], [`same`] and [`ownership`] are pure: they take values and the caller's facts and give values. [`engine`], [`stored`]
//! and [`watch`] speak to the API server. A revision is applied phase by phase; a phase is begun only when the one before it has passed its
//! probes, and it is taken down in the reverse order.

pub mod account;
pub mod engine;
pub mod ownership;
pub mod plan;
pub mod probe;
pub mod same;
pub mod stored;
pub mod watch;
