//! Downloads layers into files, verified while they are received.
//!
//! An interrupted or silent transfer resumes where it ended, if the registry supports ranges.

use std::{io::SeekFrom, path::Path};

use reqwest::{StatusCode, header::CONTENT_RANGE};
use sha2::{Digest as _, Sha256, Sha512};
use tokio::{
    fs::File,
    io::{AsyncSeekExt, AsyncWriteExt},
    time::Instant,
};

use super::{Layer, RegistryError, Session, rate::RateMonitor, retry::Attempts};
use crate::reference::{Algorithm, Digest};

/// New bytes of a layer after which its transfer may fail as often again. Proxies close connections after some time or size, so that
/// the number of failures of a whole layer depends on its size.
const PROGRESS: u64 = 1024 * 1024;

/// Received part of a layer.
struct PartialLayer {
    file: File,
    hash: Hash,
    size: u64,
    /// Largest size so far: a registry without ranges starts the layer again.
    furthest: u64,
}

impl Session {
    /// Streams a layer into a new file, verifying size and digest on the way.
    pub(crate) async fn download(&self, layer: &Layer, path: &Path, limit: u64) -> Result<(), RegistryError> {
        let what = format!("layer {}", layer.digest);
        let host = || self.host().to_owned();
        if layer.size > limit {
            return Err(RegistryError::TooLarge {
                host: host(),
                what,
                limit,
            });
        }
        let disk = |source| RegistryError::disk(self.host(), &what, source);
        let mut part = PartialLayer {
            file: File::create_new(path).await.map_err(disk)?,
            hash: Hash::new(layer.digest.algorithm()),
            size: 0,
            furthest: 0,
        };
        let mut attempts = Attempts::new(self.limits());
        let mut counted_from = 0;
        while let Err(error) = self.resume(layer, &what, &mut part).await {
            if part.furthest - counted_from >= PROGRESS {
                counted_from = part.furthest;
                attempts = Attempts::new(self.limits());
            }
            attempts.wait_after(error).await?;
        }
        part.file.flush().await.map_err(disk)?;
        let actual = part.hash.finish();
        if actual != layer.digest {
            return Err(RegistryError::Digest {
                host: host(),
                what,
                actual: actual.to_string(),
            });
        }
        Ok(())
    }

    /// Requests the missing bytes.
    async fn resume(&self, layer: &Layer, what: &str, part: &mut PartialLayer) -> Result<(), RegistryError> {
        let disk = |source| RegistryError::disk(self.host(), what, source);
        let mut response = self.blob(&layer.digest.to_string(), what, part.size).await?;
        let range = response
            .headers()
            .get(CONTENT_RANGE)
            .and_then(|value| value.to_str().ok());
        let resumed = response.status() == StatusCode::PARTIAL_CONTENT
            && range.is_some_and(|range| range.starts_with(&format!("bytes {}-", part.size)));
        if part.size > 0 && !resumed {
            // The response has all bytes again, or another range, which the digest reveals.
            part.file.set_len(0).await.map_err(disk)?;
            part.file.seek(SeekFrom::Start(0)).await.map_err(disk)?;
            part.hash = Hash::new(layer.digest.algorithm());
            part.size = 0;
        }
        let mut rate = RateMonitor::new(self.limits().min_rate, Instant::now());
        loop {
            let bytes = match response.chunk().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                // The registry would refuse a request for bytes after the last one.
                Err(_) if part.size == layer.size => break,
                Err(error) => return Err(RegistryError::request(self.host(), what, error)),
            };
            part.size += bytes.len() as u64;
            if part.size > layer.size {
                return Err(RegistryError::TooLarge {
                    host: self.host().to_owned(),
                    what: what.to_owned(),
                    limit: layer.size,
                });
            }
            if !rate.record(bytes.len() as u64, Instant::now()) {
                return Err(RegistryError::TooSlow {
                    host: self.host().to_owned(),
                    what: what.to_owned(),
                    least: self.limits().min_rate,
                });
            }
            part.hash.update(&bytes);
            part.file.write_all(&bytes).await.map_err(disk)?;
            let new = part.size.saturating_sub(part.furthest);
            part.furthest += new;
            self.count_received(new);
        }
        if part.size < layer.size {
            return Err(RegistryError::Truncated {
                host: self.host().to_owned(),
                what: what.to_owned(),
            });
        }
        Ok(())
    }
}

/// Incremental digest.
enum Hash {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hash {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Sha512(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> Digest {
        match self {
            Self::Sha256(hash) => Digest::from_hash(Algorithm::Sha256, &hash.finalize()),
            Self::Sha512(hash) => Digest::from_hash(Algorithm::Sha512, &hash.finalize()),
        }
    }
}
