//! Errors of stored content.

use std::{io, path::PathBuf};

use olm_catalog_files::WalkError;

/// Failure to store or read content.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A system call failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file of the catalog cannot be parsed.
    #[error("error walking FBC root: file {file:?} of the catalog is not valid")]
    Decode {
        /// The file, relative to the catalog's root.
        file: String,
        /// The decode error.
        #[source]
        source: olm_fbc::DecodeError,
    },
    /// The files of the catalog cannot be listed.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The catalog exceeds a limit.
    #[error("error walking FBC root: the catalog has more than {limit} {what}")]
    TooLarge {
        /// The exceeded limit, as a noun.
        what: &'static str,
        /// Value of the limit.
        limit: u64,
    },
    /// Stored content differs from what was written.
    #[error("stored content {} is damaged: {what}", path.display())]
    Damaged {
        /// The folder or file.
        path: PathBuf,
        /// The kind of damage.
        what: &'static str,
    },
    /// The source of the files does not show which files the catalog has.
    #[error("the layers of the image cannot be stored as they are: {0}")]
    Unstreamable(String),
    /// The process is shutting down, or the content is no longer wanted.
    #[error("storing was interrupted")]
    Interrupted,
}

impl StorageError {
    /// Returns a conversion from [`io::Error`] to [`StorageError::Io`].
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
