//! Decodes a response while it arrives and keeps only the package's own objects.

use std::{
    io::{self, Read},
    sync::Arc,
};

use futures::{StreamExt as _, TryStreamExt as _};
use olm_fbc::{DecodeError, Limits, Meta, PackageBuilder, PackageContent, decode};
use olm_runtime::parsing;
use olm_text::name::{CatalogName, PackageName};
use reqwest::Response;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::{
    io::{StreamReader, SyncIoBridge},
    sync::CancellationToken,
};

use crate::{catalog_ref::CatalogRef, error::ClientError};

/// Slot of a read, also held by the thread that decodes: it goes on for a while after nobody waits for the read any more.
pub(crate) type Slot = Arc<OwnedSemaphorePermit>;

/// Partially read package.
#[derive(Debug)]
pub(crate) struct PackageReader {
    catalog: CatalogName,
    package: PackageName,
    builder: PackageBuilder,
    /// Maximum memory of the package, in bytes.
    limit: u64,
    _slot: Option<Slot>,
}

impl PackageReader {
    pub(crate) fn new(catalog: &CatalogRef, package: &PackageName, limit: u64, slot: Option<Slot>) -> Self {
        Self {
            catalog: catalog.name.clone(),
            package: package.clone(),
            builder: PackageBuilder::new(package),
            limit,
            _slot: slot,
        }
    }

    /// Returns the package, and its memory in bytes.
    pub(crate) fn finish(self) -> (PackageContent, u64) {
        let footprint = self.builder.footprint();
        let content = self.builder.finish();
        let memory = footprint.saturating_add(content.lifecycles.memory());
        (content, memory)
    }

    /// Adds the objects of a response of at most `limit` bytes. The response ends when this future is dropped: a slow one would keep
    /// the slot.
    pub(crate) async fn read_response(self, response: Response, limit: u64) -> Result<Self, ClientError> {
        let catalog = self.catalog.clone();
        let abandoned = CancellationToken::new();
        let _abandons = abandoned.clone().drop_guard();
        let reader = reader_until(response, abandoned.cancelled_owned());
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

/// Returns a response's body as a blocking reader, for use on blocking threads only. The body ends early when `end` does.
pub(crate) fn reader_until(
    response: Response,
    end: impl Future<Output = ()> + Send + 'static,
) -> impl Read + Send + 'static {
    let stream = response
        .bytes_stream()
        .map_err(|error| io::Error::other(error.without_url()))
        .take_until(end);
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

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, task::Poll, time::Duration};

    use futures::stream;
    use reqwest::Body;
    use tokio::{sync::Semaphore, time::timeout};

    use super::*;

    /// Reads a response until it is abandoned; returns the slots, of which there is one.
    async fn abandon(body: Body) -> Arc<Semaphore> {
        let catalog = CatalogRef {
            name: "c".into(),
            base_url: String::new(),
            digest: String::new(),
        };
        let slots = Arc::new(Semaphore::new(1));
        let slot = slots.clone().acquire_owned().await.ok().map(Arc::new);
        let reader = PackageReader::new(&catalog, &"p".into(), 1000, slot);
        let read = reader.read_response(axum::http::Response::new(body).into(), 1000);
        assert!(timeout(Duration::from_millis(50), read).await.is_err());
        slots
    }

    async fn freed(slots: &Semaphore) -> bool {
        timeout(Duration::from_secs(10), slots.acquire()).await.is_ok()
    }

    #[tokio::test]
    async fn a_thread_that_still_decodes_keeps_the_slot() {
        let (resume, resumed) = mpsc::channel::<()>();
        let body = stream::poll_fn(move |_| {
            let _ = resumed.recv();
            Poll::Ready(None::<io::Result<Vec<u8>>>)
        });
        let slots = abandon(Body::wrap_stream(body)).await;
        assert_eq!(slots.available_permits(), 0);
        drop(resume);
        assert!(freed(&slots).await);
    }

    #[tokio::test]
    async fn a_silent_response_frees_the_slot_once_it_is_abandoned() {
        let silent = stream::pending::<io::Result<Vec<u8>>>();
        assert!(freed(&*abandon(Body::wrap_stream(silent)).await).await);
    }
}
