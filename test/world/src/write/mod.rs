//! Writes.

mod create;
mod defaults;
mod delete;
mod metadata;
mod names;
mod patch;
mod prepare;
mod update;
mod validate;

pub(crate) use defaults::structs;
pub(crate) use delete::{CRD_CLEANUP, FOREGROUND, ORPHAN};
