//! Errors of unpacking a layer.

use std::{io, path::PathBuf};

/// A layer was not applied; each cause has its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The layer ends early or is not an archive.
    #[error("the archive cannot be read")]
    Read(#[source] io::Error),
    /// The compression is not supported.
    #[error("the archive is compressed by {kind}, which is not supported; use gzip, zstd or none")]
    Compression {
        /// Name of the compression.
        kind: &'static str,
    },
    /// Too many entries.
    #[error("the image has more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: u64,
    },
    /// Too many files and directories on disk.
    #[error("the image unpacks to more than {limit} files and directories")]
    TooManyUnpacked {
        /// The limit.
        limit: u64,
    },
    /// Too long paths.
    #[error("the paths of the image have more than {limit} bytes together")]
    PathsTooLong {
        /// The limit.
        limit: u64,
    },
    /// Too much content.
    #[error("the image unpacks to more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// A file is too large.
    #[error("file {path} is larger than {limit} bytes")]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Too many directories above an entry.
    #[error("{path} is nested deeper than {limit} directories")]
    TooDeep {
        /// The entry.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// The compression ratio is that of a bomb.
    #[error("the layer unpacks to more than {limit} times its size")]
    Ratio {
        /// The limit.
        limit: u64,
    },
    /// The pull took too long or was cancelled.
    #[error("unpacking was stopped, because the pull took too long or was cancelled")]
    Stopped,
    /// A name leads out of the root or is invalid.
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
    /// A header is not reliable.
    #[error("the header of {path} is not supported: {cause}")]
    Header {
        /// The entry.
        path: PathBuf,
        /// The cause.
        cause: &'static str,
    },
    /// A hard link has a target that is not a file unpacked before it.
    #[error("hard link {path} leads to {target}, which is not a file unpacked before it")]
    HardLink {
        /// The link.
        path: PathBuf,
        /// Target of the link.
        target: PathBuf,
    },
    /// Symbolic links form a loop.
    #[error("the symbolic links at {path} form a loop")]
    Circle {
        /// Path below the root.
        path: PathBuf,
    },
    /// A file is in the place of a directory.
    #[error("{path} must be a directory but is not")]
    NotADirectory {
        /// Path below the root.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("the disk of the image cache is full: no room for {path}")]
    DiskFull {
        /// Path below the root.
        path: PathBuf,
    },
    /// The disk failed.
    #[error("{path} cannot be written")]
    Write {
        /// Path below the root.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
