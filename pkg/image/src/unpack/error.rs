//! Why a layer is refused.

use std::{io, path::PathBuf};

/// A layer that was not applied; each cause has its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The layer ends early, or is no archive.
    #[error("the archive cannot be read")]
    Read(#[source] io::Error),
    /// A compression that is not supported.
    #[error("the archive is compressed by {kind}, which is not supported; use gzip, zstd or none")]
    Compression {
        /// Which.
        kind: &'static str,
    },
    /// Too many entries.
    #[error("the image has more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: u64,
    },
    /// Too much content.
    #[error("the image unpacks to more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// One file too large.
    #[error("file {path} is larger than {limit} bytes")]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Too many directories above an entry.
    #[error("{path} lies deeper than {limit} directories")]
    TooDeep {
        /// The entry.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// A bomb.
    #[error("the layer unpacks to more than {limit} times its size")]
    Ratio {
        /// The limit.
        limit: u64,
    },
    /// Time ran out, or nobody waits any more.
    #[error("unpacking was stopped, as the pull took too long or was given up")]
    Stopped,
    /// A name that leads out of the root, or is none.
    #[error("{name:?} is not a name inside the image")]
    Name {
        /// The name.
        name: PathBuf,
    },
    /// A device, pipe or unknown kind.
    #[error("{path} is a {kind}, which is not unpacked")]
    Special {
        /// The entry.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// A header that cannot be relied on.
    #[error("the header of {path} is not supported: {cause}")]
    Header {
        /// The entry.
        path: PathBuf,
        /// Why.
        cause: &'static str,
    },
    /// A hard link to something that is no file unpacked before.
    #[error("hard link {path} leads to {target}, which is no file unpacked before it")]
    HardLink {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Symbolic links that lead in a circle.
    #[error("the symbolic links at {path} lead in a circle")]
    Circle {
        /// Below the root.
        path: PathBuf,
    },
    /// A file where a directory must be.
    #[error("{path} is needed as a directory but is none")]
    NotADirectory {
        /// Below the root.
        path: PathBuf,
    },
    /// No room on the disk.
    #[error("the disk of the image cache is full: no room for {path}")]
    DiskFull {
        /// Below the root.
        path: PathBuf,
    },
    /// The disk.
    #[error("{path} cannot be written")]
    Write {
        /// Below the root.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}
