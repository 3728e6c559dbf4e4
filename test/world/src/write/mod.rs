//! Writes.

mod create;
mod defaults;
mod delete;
mod metadata;
mod names;
mod owners;
mod patch;
mod prepare;
mod update;
mod validate;

/// Kind of the request that writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// POST.
    Create,
    /// PUT, merge patch or JSON patch.
    Update,
    /// Server-side apply: the object has its managers already.
    Apply,
}

pub(crate) use defaults::{structs, zero};
pub(crate) use delete::{CRD_CLEANUP, FOREGROUND, ORPHAN};
