//! Reading a catalog file as a stream of metas.

use crate::Meta;
use std::io::Read;

/// What a catalog file may cost. Everything in it is foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest single meta, in bytes of its source.
    pub max_meta_bytes: usize,
    /// Deepest nesting of a meta.
    pub max_depth: usize,
    /// Most metas in one file.
    pub max_documents: usize,
}

impl Default for Limits {
    /// 32 MiB, 100 levels, a million metas.
    fn default() -> Self {
        Self { max_meta_bytes: 32 * 1024 * 1024, max_depth: 100, max_documents: 1_000_000 }
    }
}

/// Why a catalog file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The reader failed.
    #[error("cannot read the catalog file")]
    Read {
        /// The reader's error.
        source: std::io::Error,
    },
}

impl DecodeError {
    /// Whether the same bytes fail again.
    pub fn terminal(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }
}

/// Reads the metas of one catalog file, JSON values one after another or YAML documents.
///
/// No more than one meta is in memory at a time. The iterator ends after the first error.
pub fn decode<R: Read>(reader: R, limits: &Limits) -> Decoder<R> {
    Decoder { reader, limits: *limits }
}

/// The iterator of [`decode`].
#[derive(Debug)]
pub struct Decoder<R> {
    reader: R,
    limits: Limits,
}

impl<R: Read> Iterator for Decoder<R> {
    type Item = Result<Meta, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = (&mut self.reader, self.limits);
        None
    }
}
