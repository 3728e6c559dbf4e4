//! The ClusterObjectSet controller: applies one revision of an extension and keeps it in repair, archives it, or removes it.
//!
//! [`reconcile`] lists the steps: [`gather`] reads the objects, from the revision or its Secrets; [`olm_decide::object_set`] and
//! [`action`] are pure; [`act`] writes; [`report`] writes the status.

mod act;
mod action;
mod content;
mod context;
mod controller;
mod error;
mod gather;
mod gone;
mod reconcile;
mod report;
mod unwatched;
mod written;

pub(crate) use context::{Recorder, SharedWatch};
pub(crate) use controller::run_recorded;
pub use controller::{Options, run};
pub use error::Error;
