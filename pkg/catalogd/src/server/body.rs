//! Response bodies that are produced chunk by chunk, at the client's pace.

use std::{io, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    chunk::{CHUNK, Chunk},
    compress::Compressor,
    jobs::{Abandoned, Jobs},
    read::{ReadError, Source, unless_abandoned},
};

/// Response body in progress.
pub(super) struct StreamingBody {
    pub(super) source: Source,
    pub(super) compressor: Option<(Compressor, Arc<OwnedSemaphorePermit>)>,
    /// The source may have more bytes.
    pub(super) more: bool,
    jobs: Jobs,
}

impl StreamingBody {
    /// Creates an uncompressed body, whose reads are jobs.
    pub(super) fn uncompressed(source: Source, jobs: Jobs) -> Self {
        Self {
            source,
            compressor: None,
            more: true,
            jobs,
        }
    }

    /// Appends to `out` until it has at least `enough` bytes; returns whether there may be more. Blocks. After
    /// [`ReadError::TooManyLarge`] it can be repeated.
    pub(super) fn fill(
        &mut self,
        out: &mut Vec<u8>,
        enough: usize,
        abandoned: &Abandoned,
    ) -> Result<bool, ReadError> {
        let Some((compressor, _)) = &mut self.compressor else {
            self.more = self.more && self.source.fill(out, enough, abandoned)?;
            return Ok(self.more);
        };
        let mut chunk = Chunk::new();
        let capacity = chunk.capacity();
        let chunk = chunk.append();
        while self.more && out.len() + compressor.output().len() < enough {
            unless_abandoned(abandoned)?;
            chunk.clear();
            self.more = self.source.fill(chunk, capacity, abandoned)?;
            compressor.write(chunk).map_err(ReadError::Compress)?;
        }
        out.append(compressor.output());
        // A large object must not keep memory while its client reads.
        compressor.output().shrink_to(CHUNK);
        if !self.more
            && let Some((compressor, _)) = self.compressor.take()
        {
            out.append(&mut compressor.finish().map_err(ReadError::Compress)?);
        }
        Ok(self.more)
    }

    /// Returns the next chunk if it only has to be copied from the page cache. The copy costs less than two thread
    /// switches, and much less than sending it.
    fn next_cached(&mut self) -> Option<Chunk> {
        let Source::Plain(reader) = &mut self.source else {
            return None;
        };
        if self.compressor.is_some() {
            return None;
        }
        let mut chunk = Chunk::new();
        let (read, more) = reader.read_cached(chunk.overwrite())?;
        chunk.overwritten(read);
        self.more = more;
        Some(chunk)
    }

    /// Reads the next chunk on a blocking thread. Before a large object it waits until clients have read others.
    async fn next_read(mut self) -> Result<(Bytes, Self), io::Error> {
        loop {
            let (jobs, mut body) = (self.jobs.clone(), self);
            let read = jobs.run(move |abandoned| {
                let mut chunk = Chunk::new();
                let capacity = chunk.capacity();
                let filled = body.fill(chunk.append(), capacity, abandoned);
                body.source.release();
                (filled.map(|_| chunk), body)
            });
            let (filled, body) = read.await.map_err(io::Error::other)?;
            self = body;
            match filled {
                Ok(chunk) => {
                    let memory = self.source.take_memory(chunk.len());
                    return Ok((chunk.send(memory), self));
                }
                Err(ReadError::TooManyLarge { size }) => self.source.wait_for_memory(size).await,
                Err(error) => {
                    let text = olm_text::chain(&error);
                    tracing::error!(error = text, "a response is cut off");
                    return Err(io::Error::other(error));
                }
            }
        }
    }

    /// Returns a body of `first` followed by the remaining bytes.
    pub(super) fn into_body(mut self, first: Bytes) -> Body {
        self.source.release();
        // `first` was read already.
        let state = (Some(first).filter(|first| !first.is_empty()), self);
        Body::from_stream(stream::try_unfold(state, async |(first, mut body)| {
            if let Some(first) = first {
                return Ok(Some((first, (None, body))));
            }
            if !body.more {
                return Ok(None);
            }
            if let Some(chunk) = body.next_cached().filter(|chunk| !chunk.is_empty()) {
                return Ok(Some((chunk.send(None), (None, body))));
            }
            if !body.more {
                return Ok(None);
            }
            let (chunk, body) = body.next_read().await?;
            if chunk.is_empty() && !body.more {
                return Ok(None);
            }
            Ok::<_, io::Error>(Some((chunk, (None, body))))
        }))
    }
}
