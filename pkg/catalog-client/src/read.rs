//! Decodes an answer while it arrives, keeping only the package's own objects.

use std::io::{self, Read};

use futures::TryStreamExt;
use olm_fbc::{DecodeError, Limits, PackageBuilder, PackageContent, decode};
use reqwest::Response;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::{client::CatalogRef, error::ClientError};

/// A package in the making.
#[derive(Debug)]
pub(crate) struct Reading {
    catalog: String,
    package: String,
    builder: PackageBuilder,
    /// Bytes of the objects taken.
    bytes: u64,
    /// At most so many.
    limit: u64,
}

impl Reading {
    pub(crate) fn new(catalog: &CatalogRef, package: &str, limit: u64) -> Self {
        Self {
            catalog: catalog.name.clone(),
            package: package.to_owned(),
            builder: PackageBuilder::new(package),
            bytes: 0,
            limit,
        }
    }

    /// The package, and the bytes its objects had.
    pub(crate) fn finish(self) -> (PackageContent, u64) {
        (self.builder.finish(), self.bytes)
    }

    /// Takes an answer in, of at most `limit` bytes.
    pub(crate) async fn absorb(self, response: Response, limit: u64) -> Result<Self, ClientError> {
        let catalog = self.catalog.clone();
        let reader = reader(response);
        tokio::task::spawn_blocking(move || self.decode(Capped::new(reader, limit)))
            .await
            .map_err(|_| ClientError::Interrupted { catalog })?
    }

    fn decode<R: Read>(mut self, mut reader: Capped<R>) -> Result<Self, ClientError> {
        let mut metas = decode(&mut reader, &Limits::default());
        let failed: DecodeError = loop {
            match metas.next() {
                None => return Ok(self),
                Some(Err(error)) => break error,
                Some(Ok(meta)) => {
                    let taken = self.builder.add(&meta).map_err(|source| ClientError::Content {
                        catalog: self.catalog.clone(),
                        source,
                    })?;
                    if taken {
                        self.bytes = self.bytes.saturating_add(meta.blob.len() as u64);
                    }
                    if self.bytes > self.limit {
                        return Err(self.too_large(self.limit));
                    }
                }
            }
        };
        drop(metas);
        Err(if reader.exceeded {
            self.too_large(reader.limit)
        } else {
            ClientError::Decode {
                catalog: self.catalog,
                source: failed,
            }
        })
    }

    fn too_large(&self, limit: u64) -> ClientError {
        ClientError::TooLarge {
            catalog: self.catalog.clone(),
            package: self.package.clone(),
            limit,
        }
    }
}

/// An answer's body for code that blocks. To be read off the runtime's own threads.
pub(crate) fn reader(response: Response) -> impl Read + Send + 'static {
    let stream = response
        .bytes_stream()
        .map_err(|error| io::Error::other(error.without_url()));
    SyncIoBridge::new(StreamReader::new(Box::pin(stream)))
}

/// A reader that fails beyond a limit, and then says so.
pub(crate) struct Capped<R> {
    inner: R,
    left: u64,
    limit: u64,
    exceeded: bool,
}

impl<R> Capped<R> {
    pub(crate) fn new(inner: R, limit: u64) -> Self {
        Self {
            inner,
            left: limit,
            limit,
            exceeded: false,
        }
    }
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if let Some(left) = self.left.checked_sub(read as u64) {
            self.left = left;
            return Ok(read);
        }
        self.exceeded = true;
        Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the answer is too large",
        ))
    }
}
