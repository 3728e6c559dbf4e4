//! A certificate from files, read again when their content changes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    TlsError,
    resolver::{Live, certified_key},
};

/// How often the files are looked at.
const POLL: Duration = Duration::from_secs(5);

/// The two PEM files.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// Both files' bytes at one look.
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pair {
    async fn read(&self) -> Result<Content, TlsError> {
        Ok(Content {
            certificate: read(&self.certificate).await?,
            key: read(&self.key).await?,
        })
    }
}

impl Content {
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update((self.certificate.len() as u64).to_be_bytes());
        hash.update(&self.certificate);
        hash.update(&self.key);
        hash.finalize().into()
    }
}

async fn read(path: &PathBuf) -> Result<Vec<u8>, TlsError> {
    tokio::fs::read(path).await.map_err(|source| TlsError::Read {
        path: path.clone(),
        source,
    })
}

pub(super) async fn serve(pair: Pair, shutdown: CancellationToken) -> Result<Arc<Live>, TlsError> {
    let content = pair.read().await?;
    let live = Arc::new(Live::new(certified_key(&content.certificate, &content.key)?));
    tokio::spawn(watch(pair, content.digest(), live.clone(), shutdown));
    Ok(live)
}

async fn watch(pair: Pair, mut seen: [u8; 32], live: Arc<Live>, shutdown: CancellationToken) {
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let content = match pair.read().await {
            Ok(content) => content,
            Err(error) => {
                tracing::warn!(error = %crate::telemetry::chain(&error), "the former serving certificate stays");
                continue;
            }
        };
        let digest = content.digest();
        if digest == seen {
            continue;
        }
        // A pair read half-way through its replacement does not fit; the next look sees it whole.
        match certified_key(&content.certificate, &content.key) {
            Ok(key) => {
                live.swap(key);
                seen = digest;
                tracing::info!(file = %pair.certificate.display(), "serving certificate reloaded");
            }
            Err(error) => {
                tracing::warn!(error = %crate::telemetry::chain(&error), "the former serving certificate stays");
            }
        }
    }
}
