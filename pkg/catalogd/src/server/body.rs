//! Bodies made piece by piece, at the client's pace.

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    compress::Compressor,
    piece::Piece,
    read::{ReadError, Source},
};

/// An answer in the making.
pub(super) struct Making {
    pub(super) source: Source,
    pub(super) compressor: Option<(Compressor, OwnedSemaphorePermit)>,
    /// Whether the source may have more.
    pub(super) more: bool,
}

impl Making {
    /// What is sent as it is read.
    pub(super) fn plain(source: Source) -> Self {
        Self {
            source,
            compressor: None,
            more: true,
        }
    }

    /// Appends until `out` has `enough` bytes, or a little more; whether there may be more. Blocks.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, enough: usize) -> Result<bool, ReadError> {
        let Some((compressor, _)) = &mut self.compressor else {
            self.more = self.more && self.source.fill(out, enough)?;
            return Ok(self.more);
        };
        let mut piece = Piece::new();
        let room = piece.room();
        let piece = piece.bytes();
        while self.more && out.len() + compressor.ready().len() < enough {
            piece.clear();
            self.more = self.source.fill(piece, room)?;
            compressor.write(piece).map_err(ReadError::Compress)?;
        }
        out.append(compressor.ready());
        if !self.more
            && let Some((compressor, _)) = self.compressor.take()
        {
            out.append(&mut compressor.finish().map_err(ReadError::Compress)?);
        }
        Ok(self.more)
    }

    /// The next piece, when making it is no work but copying it out of the page cache: that is less than two changes
    /// of threads are, and much less than sending it.
    fn at_once(&mut self) -> Option<Piece> {
        let Source::Plain(raw) = &mut self.source else {
            return None;
        };
        if self.compressor.is_some() {
            return None;
        }
        let mut piece = Piece::new();
        let room = piece.room();
        self.more = raw.read_cached(piece.bytes(), room)?;
        Some(piece)
    }

    /// `first`, and then all that is still to come.
    pub(super) fn stream(self, first: Bytes) -> Body {
        // What comes first was read already.
        let state = (Some(first).filter(|first| !first.is_empty()), self);
        Body::from_stream(stream::try_unfold(state, async |(first, mut making)| {
            if let Some(first) = first {
                return Ok(Some((first, (None, making))));
            }
            if !making.more {
                return Ok(None);
            }
            if let Some(piece) = making.at_once().filter(|piece| !piece.is_empty()) {
                return Ok(Some((piece.send(), (None, making))));
            }
            if !making.more {
                return Ok(None);
            }
            let read = tokio::task::spawn_blocking(move || {
                let mut piece = Piece::new();
                let room = piece.room();
                making.fill(piece.bytes(), room).map(|_| (piece, making))
            });
            match read.await {
                Ok(Ok((piece, making))) if piece.is_empty() && !making.more => Ok(None),
                Ok(Ok((piece, making))) => Ok(Some((piece.send(), (None, making)))),
                Ok(Err(error)) => {
                    let text = olm_runtime::telemetry::chain(&error);
                    tracing::error!(error = text, "an answer is cut off");
                    Err(std::io::Error::other(error))
                }
                Err(stopped) => Err(std::io::Error::other(stopped)),
            }
        }))
    }
}
