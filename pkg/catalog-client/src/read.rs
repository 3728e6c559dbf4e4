//! Decodes an answer while it arrives, keeping only the package's own objects.

use std::io::{self, Read};

use futures::TryStreamExt;
use olm_fbc::{DecodeError, Limits, Meta, PackageBuilder, PackageContent, decode, footprint};
use olm_runtime::parsing;
use reqwest::Response;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::{client::CatalogRef, error::ClientError};

/// A package in the making.
#[derive(Debug)]
pub(crate) struct Reading {
    catalog: String,
    package: String,
    builder: PackageBuilder,
    /// Most memory that the package may take, in bytes.
    limit: u64,
}

impl Reading {
    pub(crate) fn new(catalog: &CatalogRef, package: &str, limit: u64) -> Self {
        Self {
            catalog: catalog.name.clone(),
            package: package.to_owned(),
            builder: PackageBuilder::new(package),
            limit,
        }
    }

    /// Returns the package, and the memory that it takes in bytes.
    pub(crate) fn finish(self) -> (PackageContent, u64) {
        let footprint = self.builder.footprint();
        (self.builder.finish(), footprint)
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
                    if self.builder.wants(&meta) {
                        self.add(&meta)?;
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

    /// Adds one meta, unless the package would take too much memory with it.
    fn add(&mut self, meta: &Meta) -> Result<(), ClientError> {
        let estimate = footprint::of_text(&meta.blob);
        if self.builder.footprint().saturating_add(estimate) > self.limit {
            return Err(self.too_large(self.limit));
        }
        let _turn = parsing::acquire(meta.blob.len() as u64);
        self.builder.add(meta).map_err(|source| ClientError::Content {
            catalog: self.catalog.clone(),
            source,
        })?;
        Ok(())
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
