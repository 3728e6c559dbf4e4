//! Layers into files, checked while they come.
//!
//! A transfer that breaks off goes on where it ended, when the registry allows it.

use std::{io::SeekFrom, path::Path};

use reqwest::{StatusCode, header::CONTENT_RANGE};
use sha2::{Digest as _, Sha256, Sha512};
use tokio::{
    fs::File,
    io::{AsyncSeekExt, AsyncWriteExt},
    time::Instant,
};

use super::{Layer, RegistryError, Session, pace::Pace, retry::Attempts};
use crate::reference::{Algorithm, Digest};

/// What has come of a layer.
struct Part {
    file: File,
    hash: Hash,
    size: u64,
}

impl Session {
    /// Streams a layer into a new file, checking size and digest on the way.
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
        let mut part = Part {
            file: File::create_new(path).await.map_err(disk)?,
            hash: Hash::new(layer.digest.algorithm()),
            size: 0,
        };
        let mut attempts = Attempts::new(self.limits());
        while let Err(error) = self.go_on(layer, &what, &mut part).await {
            attempts.after(error).await?;
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

    /// Asks for what is missing.
    async fn go_on(&self, layer: &Layer, what: &str, part: &mut Part) -> Result<(), RegistryError> {
        let disk = |source| RegistryError::disk(self.host(), what, source);
        let mut response = self.blob(&layer.digest.to_string(), what, part.size).await?;
        let range = response
            .headers()
            .get(CONTENT_RANGE)
            .and_then(|value| value.to_str().ok());
        let goes_on = response.status() == StatusCode::PARTIAL_CONTENT
            && range.is_some_and(|range| range.starts_with(&format!("bytes {}-", part.size)));
        if part.size > 0 && !goes_on {
            // Everything again, or another part than asked for, which the digest will tell.
            part.file.set_len(0).await.map_err(disk)?;
            part.file.seek(SeekFrom::Start(0)).await.map_err(disk)?;
            part.hash = Hash::new(layer.digest.algorithm());
            part.size = 0;
        }
        let mut pace = Pace::new(self.limits().least_rate, Instant::now());
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| RegistryError::request(self.host(), what, error))?
        {
            part.size += bytes.len() as u64;
            if part.size > layer.size {
                return Err(RegistryError::TooLarge {
                    host: self.host().to_owned(),
                    what: what.to_owned(),
                    limit: layer.size,
                });
            }
            if !pace.keeps_up(bytes.len() as u64, Instant::now()) {
                return Err(RegistryError::TooSlow {
                    host: self.host().to_owned(),
                    what: what.to_owned(),
                    least: self.limits().least_rate,
                });
            }
            part.hash.update(&bytes);
            part.file.write_all(&bytes).await.map_err(disk)?;
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

/// A digest in the making.
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
