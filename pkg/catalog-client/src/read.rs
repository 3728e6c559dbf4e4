//! Decodes a response while it arrives and keeps only the package's own objects.

use std::io::{self, Read};

use futures::TryStreamExt;
use olm_fbc::{DecodeError, Limits, Meta, PackageBuilder, PackageContent, decode};
use olm_runtime::parsing;
use olm_text::name::{CatalogName, PackageName};
use reqwest::Response;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::{catalog_ref::CatalogRef, error::ClientError};

/// Partially read package.
#[derive(Debug)]
pub(crate) struct PackageReader {
    catalog: CatalogName,
    package: PackageName,
    builder: PackageBuilder,
    /// Maximum memory of the package, in bytes.
    limit: u64,
}

impl PackageReader {
    pub(crate) fn new(catalog: &CatalogRef, package: &PackageName, limit: u64) -> Self {
        Self {
            catalog: catalog.name.clone(),
            package: package.clone(),
            builder: PackageBuilder::new(package),
            limit,
        }
    }

    /// Returns the package, and its memory in bytes.
    pub(crate) fn finish(self) -> (PackageContent, u64) {
        let footprint = self.builder.footprint();
        let content = self.builder.finish();
        let memory = footprint.saturating_add(content.lifecycles.memory());
        (content, memory)
    }

    /// Adds the objects of a response of at most `limit` bytes.
    pub(crate) async fn read_response(self, response: Response, limit: u64) -> Result<Self, ClientError> {
        let catalog = self.catalog.clone();
        let reader = reader(response);
        tokio::task::spawn_blocking(move || self.decode(LimitedReader::new(reader, limit)))
            .await
            .map_err(|_| ClientError::Interrupted { catalog })?
    }

    fn decode<R: Read>(mut self, mut reader: LimitedReader<R>) -> Result<Self, ClientError> {
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

    /// Adds one meta, unless the package would exceed its memory limit.
    fn add(&mut self, meta: &Meta) -> Result<(), ClientError> {
        let estimate = self.builder.estimate(meta);
        if self.builder.footprint().saturating_add(estimate) > self.limit {
            return Err(self.too_large(self.limit));
        }
        let _permit = parsing::acquire(meta.blob.len() as u64);
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

/// Returns a response's body as a blocking reader, for use on blocking threads only.
pub(crate) fn reader(response: Response) -> impl Read + Send + 'static {
    let stream = response
        .bytes_stream()
        .map_err(|error| io::Error::other(error.without_url()));
    SyncIoBridge::new(StreamReader::new(Box::pin(stream)))
}

/// Reader that fails beyond a limit and records it.
pub(crate) struct LimitedReader<R> {
    inner: R,
    left: u64,
    limit: u64,
    exceeded: bool,
}

impl<R> LimitedReader<R> {
    pub(crate) fn new(inner: R, limit: u64) -> Self {
        Self {
            inner,
            left: limit,
            limit,
            exceeded: false,
        }
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if let Some(left) = self.left.checked_sub(read as u64) {
            self.left = left;
            return Ok(read);
        }
        self.exceeded = true;
        Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the response is too large",
        ))
    }
}
