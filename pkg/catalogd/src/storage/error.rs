//! What can go wrong with stored content.

use std::{io, path::PathBuf};

use olm_catalog_files::WalkError;

/// Why content could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system refused something.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file of the catalog cannot be parsed.
    #[error("error walking FBC root: file {file:?} of the catalog is not valid")]
    Decode {
        /// The file, relative to the catalog's root.
        file: String,
        /// What is wrong with it.
        #[source]
        source: olm_fbc::DecodeError,
    },
    /// The files of the catalog cannot be listed.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The catalog is larger than is accepted.
    #[error("error walking FBC root: the catalog has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is accepted.
        limit: u64,
    },
    /// Stored content is not what was written.
    #[error("stored content {} is damaged: {what}", path.display())]
    Damaged {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// The work was given up because the process ends.
    #[error("storing was interrupted")]
    Interrupted,
}

impl StorageError {
    /// Makes an [`StorageError::Io`] of an [`io::Error`].
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
