//! Answers of queries, whose memory is limited in total.
//!
//! A query reserves the memory of the largest answer before it runs. Afterwards each chunk of its answer holds as much of it as the
//! chunk has bytes, until the client has read it: clients that do not read make further queries wait, and take no further memory.

use std::{
    convert::Infallible,
    io::{self, Write},
};

use async_graphql::{Response, Value};
use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::row::MAX_BYTES;
use crate::{
    server::{
        cache::{self, EncodedBody},
        chunk::CHUNK,
        compress::{Compressor, MIN_SIZE},
    },
    storage::Encoding,
};

/// Bytes in chunks, at most [`MAX_BYTES`]. They grow without a copy, and are freed as they are sent.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    list: Vec<Vec<u8>>,
    size: usize,
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size + bytes.len() > MAX_BYTES as usize {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.size += bytes.len();
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.list.last().is_none_or(|last| last.len() >= CHUNK) {
                // Most answers are smaller than a chunk.
                let capacity = if self.list.is_empty() { 0 } else { CHUNK };
                self.list.push(Vec::with_capacity(capacity));
            }
            let Some(last) = self.list.last_mut() else { break };
            let (now, later) = rest.split_at(rest.len().min(CHUNK - last.len()));
            last.extend_from_slice(now);
            rest = later;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Chunks {
    /// Writes a response of the library as a line of JSON. Each value is dropped when its text is written, so that all values and
    /// their text never take memory side by side.
    pub(super) fn of(response: Response) -> io::Result<Self> {
        let mut out = Self::default();
        out.write_all(b"{\"data\":")?;
        out.value(response.data)?;
        if !response.errors.is_empty() {
            out.write_all(b",\"errors\":")?;
            serde_json::to_writer(&mut out, &response.errors)?;
        }
        out.write_all(b"}\n")?;
        Ok(out)
    }

    /// Writes a value. The limits of a query bound the depth.
    fn value(&mut self, value: Value) -> io::Result<()> {
        match value {
            Value::Object(fields) => {
                self.write_all(b"{")?;
                for (at, (name, value)) in fields.into_iter().enumerate() {
                    if at > 0 {
                        self.write_all(b",")?;
                    }
                    serde_json::to_writer(&mut *self, name.as_str())?;
                    self.write_all(b":")?;
                    self.value(value)?;
                }
                self.write_all(b"}")
            }
            Value::List(elements) => {
                self.write_all(b"[")?;
                for (at, element) in elements.into_iter().enumerate() {
                    if at > 0 {
                        self.write_all(b",")?;
                    }
                    self.value(element)?;
                }
                self.write_all(b"]")
            }
            single => Ok(serde_json::to_writer(self, &single)?),
        }
    }

    /// Encodes the bytes. They hold their part of `memory` from here on; the rest of it is free again.
    pub(super) fn encode(self, encoding: Encoding, mut memory: OwnedSemaphorePermit) -> io::Result<Answer> {
        let (chunks, encoding) = self.compress(encoding)?;
        let mut list = chunks.list;
        if list.len() > 1 && chunks.size <= cache::max_size(encoding) {
            list = vec![list.concat()];
        }
        Ok(Answer {
            chunks: list.into_iter().map(|bytes| hold(bytes, &mut memory)).collect(),
            size: chunks.size,
            encoding,
        })
    }

    /// Compresses the bytes unless they are few. Each chunk is dropped when it is compressed.
    fn compress(self, encoding: Encoding) -> io::Result<(Self, Encoding)> {
        if self.size < MIN_SIZE {
            return Ok((self, Encoding::Identity));
        }
        let Some(mut compressor) = Compressor::new(encoding)? else {
            return Ok((self, Encoding::Identity));
        };
        let mut out = Self::default();
        for chunk in self.list {
            compressor.write(&chunk)?;
            out.write_all(compressor.output())?;
            compressor.output().clear();
        }
        out.write_all(&compressor.finish()?)?;
        Ok((out, encoding))
    }
}

/// Bytes with their part of the memory of answers.
struct Held {
    bytes: Box<[u8]>,
    _memory: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns bytes that hold their part of `memory` until they are dropped.
fn hold(bytes: Vec<u8>, memory: &mut OwnedSemaphorePermit) -> Bytes {
    let part = bytes.len().min(memory.num_permits());
    Bytes::from_owner(Held {
        bytes: bytes.into_boxed_slice(),
        _memory: memory.split(part),
    })
}

/// Encoded answer.
#[derive(Debug)]
pub(super) struct Answer {
    chunks: Vec<Bytes>,
    pub(super) size: usize,
    pub(super) encoding: Encoding,
}

impl Answer {
    /// Returns the answer for the cache, `None` if it is too large.
    pub(super) fn cacheable(&self) -> Option<EncodedBody> {
        match self.chunks.as_slice() {
            [bytes] => Some(EncodedBody {
                bytes: bytes.clone(),
                encoding: self.encoding,
            }),
            _ => None,
        }
    }

    /// Returns the body, which frees each chunk when it is sent.
    pub(super) fn into_body(mut self) -> Body {
        if self.chunks.len() == 1 {
            return Body::from(self.chunks.pop().unwrap_or_default());
        }
        Body::from_stream(stream::iter(self.chunks.into_iter().map(Ok::<_, Infallible>)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_graphql::ServerError;
    use http_body_util::BodyExt as _;
    use tokio::sync::Semaphore;

    use super::{super::schema::object, *};

    fn text(chunks: &Chunks) -> Vec<u8> {
        chunks.list.concat()
    }

    #[test]
    fn a_response_is_written_as_the_library_does() {
        let data = object(vec![
            ("text", Value::String("\"\u{1}\u{e4}".to_owned())),
            ("none", object(vec![])),
            (
                "list",
                Value::List(vec![
                    Value::Null,
                    1.into(),
                    true.into(),
                    object(vec![("a", 2.5.into())]),
                ]),
            ),
            ("empty", Value::List(vec![])),
        ]);
        for errors in [vec![], vec![ServerError::new("failed", None)]] {
            let make = || {
                let mut response = Response::new(data.clone());
                response.errors.clone_from(&errors);
                response
            };
            let mut expected = serde_json::to_vec(&make()).unwrap();
            expected.push(b'\n');
            assert_eq!(text(&Chunks::of(make()).unwrap()), expected);
        }
    }

    #[test]
    fn answers_are_limited_however_they_are_escaped() {
        let quotes = Value::String("\"".repeat(MAX_BYTES as usize / 2));
        let refused = Chunks::of(Response::new(quotes)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
    }

    #[tokio::test]
    async fn chunks_free_their_memory_as_they_are_sent() {
        let total = MAX_BYTES as usize;
        for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
            let memory = Arc::new(Semaphore::new(total));
            let permit = memory.clone().acquire_many_owned(MAX_BYTES).await.unwrap();
            let mut chunks = Chunks::default();
            let mut noise: u32 = 1;
            while chunks.size < 3_000_000 {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                chunks.write_all(&noise.to_be_bytes()).unwrap();
            }
            let answer = chunks.encode(encoding, permit).unwrap();
            assert_eq!(answer.encoding, encoding);
            assert!(answer.cacheable().is_none());
            let mut left = answer.size;
            let mut body = answer.into_body();
            assert_eq!(memory.available_permits(), total - left);
            while let Some(frame) = body.frame().await {
                let bytes = frame.unwrap().into_data().unwrap();
                assert!((1..=CHUNK).contains(&bytes.len()));
                assert_eq!(memory.available_permits(), total - left);
                left -= bytes.len();
                drop(bytes);
                assert_eq!(memory.available_permits(), total - left);
            }
            assert_eq!(left, 0);
        }
    }

    #[tokio::test]
    async fn small_answers_come_in_one_piece_for_the_cache() {
        let memory = Arc::new(Semaphore::new(MAX_BYTES as usize));
        for size in [10, MIN_SIZE, CHUNK + 1, cache::max_size(Encoding::Identity)] {
            let permit = memory.clone().acquire_many_owned(MAX_BYTES).await.unwrap();
            let mut chunks = Chunks::default();
            chunks.write_all(&vec![b'a'; size]).unwrap();
            let answer = chunks.encode(Encoding::Gzip, permit).unwrap();
            assert_eq!(answer.encoding == Encoding::Gzip, size >= MIN_SIZE);
            assert!(answer.cacheable().is_some());
            drop(answer);
            assert_eq!(memory.available_permits(), MAX_BYTES as usize);
        }
    }
}
