//! Support bundle: an archive with the state of the controllers and without secrets.
//!
//! [`redact`] is pure. [`archive::Archive`] redacts everything that it takes; there is no other way into the file.

pub(crate) mod archive;
pub(crate) mod collect;
mod redact;
