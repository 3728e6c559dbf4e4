//! Compressing what is not stored compressed.
//!
//! At fast levels: an answer that is made for one request must not cost more to compress than it saves
//! to send. Whole catalogs are compressed better, once, when they are stored.

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};

use crate::storage::Encoding;

/// Shorter answers are sent as they are: compressed, they hardly fit fewer packets.
pub(super) const WORTHWHILE: usize = 1024;
/// gzip's level: a third smaller than the fastest, which is hardly faster.
const GZIP_LEVEL: Compression = Compression::new(3);
/// zstd's level.
const ZSTD_LEVEL: i32 = 1;

/// Compresses piece by piece.
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    /// A compressor into a form, `None` for what is sent as it is.
    pub(super) fn new(form: Encoding) -> io::Result<Option<Self>> {
        Ok(match form {
            Encoding::Identity => None,
            Encoding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), GZIP_LEVEL))),
            Encoding::Zstd => Some(Self::Zstd(zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
        })
    }

    /// Takes bytes in.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// What came out so far and was not taken yet.
    pub(super) fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        }
    }

    /// The rest.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// A whole text in a form, `None` when it is sent as it is.
pub(super) fn whole(form: Encoding, text: &[u8]) -> io::Result<Option<Vec<u8>>> {
    if text.len() < WORTHWHILE {
        return Ok(None);
    }
    let Some(mut compressor) = Compressor::new(form)? else {
        return Ok(None);
    };
    compressor.write(text)?;
    compressor.finish().map(Some)
}
