//! Compression of responses that are not stored compressed.
//!
//! The levels are fast: compressing a response for one request must not cost more than it saves in transfer. Whole
//! catalogs are compressed better, once, when they are stored.

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};

use crate::storage::Encoding;

/// Minimum size of a compressed response in bytes; below it, compression hardly saves packets.
pub(super) const MIN_SIZE: usize = 1024;
/// gzip level: output a third smaller than the fastest level, which is hardly faster.
const GZIP_LEVEL: Compression = Compression::new(3);
/// zstd level.
const ZSTD_LEVEL: i32 = 1;

/// Incremental compressor.
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    /// Creates a compressor, `None` for the identity encoding.
    pub(super) fn new(encoding: Encoding) -> io::Result<Option<Self>> {
        Ok(match encoding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), GZIP_LEVEL))),
            Encoding::Zstd => Some(Self::Zstd(zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
        })
    }

    /// Compresses bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// Returns the compressed bytes that were not taken yet.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        }
    }

    /// Returns the last compressed bytes.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Compresses a whole text; `None` if it is sent as it is.
pub(super) fn compress_all(encoding: Encoding, text: &[u8]) -> io::Result<Option<Vec<u8>>> {
    if text.len() < MIN_SIZE {
        return Ok(None);
    }
    let Some(mut compressor) = Compressor::new(encoding)? else {
        return Ok(None);
    };
    compressor.write(text)?;
    compressor.finish().map(Some)
}
