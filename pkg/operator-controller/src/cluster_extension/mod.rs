//! The ClusterExtension controller: from a spec to a revision, and from revisions to a status.
//!
//! [`controller`] wires the triggers, [`reconcile`] runs the [`steps`] of one pass and writes the status: [`gather`]
//! reads, [`olm_decide::extension`] is pure, [`act`] writes.

mod account;
mod act;
mod apply;
mod call;
mod context;
mod controller;
mod delays;
mod desired;
mod failed;
mod failure;
mod followed;
mod foreign_status;
mod gather;
mod hold_watches;
mod namespace_selections;
mod namespace_waiters;
mod pass;
mod reconcile;
mod renewal;
mod revisions;
mod rollback;
mod secrets;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use call::{CallError, call, chain};
pub(crate) use context::Context;
pub(crate) use controller::{follow_revisions, run};
pub(crate) use gather::stores::Stores;
#[cfg(test)]
pub(crate) use gather::stores::Writers;
