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
    serve_every(POLL, pair, shutdown).await
}

async fn serve_every(poll: Duration, pair: Pair, shutdown: CancellationToken) -> Result<Arc<Live>, TlsError> {
    let content = pair.read().await?;
    let live = Arc::new(Live::new(certified_key(&content.certificate, &content.key)?));
    tokio::spawn(watch(poll, pair, content.digest(), live.clone(), shutdown));
    Ok(live)
}

async fn watch(poll: Duration, pair: Pair, mut seen: [u8; 32], live: Arc<Live>, shutdown: CancellationToken) {
    let mut ticks = interval(poll);
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::tls::issue;

    fn write(pair: &Pair) -> Vec<u8> {
        let names = ["localhost".to_owned()];
        let issued = issue("test", &names, SystemTime::now(), Duration::from_hours(1)).unwrap();
        std::fs::write(&pair.certificate, &issued.certificate_pem).unwrap();
        std::fs::write(&pair.key, &issued.key_pem).unwrap();
        let chain = crate::tls::authorities(issued.certificate_pem.as_bytes()).unwrap();
        chain[0].to_vec()
    }

    #[tokio::test]
    async fn another_pair_is_presented_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let pair = Pair {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let poll = Duration::from_millis(5);
        let first = write(&pair);
        let ends = CancellationToken::new();
        let live = serve_every(poll, pair.clone(), ends.clone()).await.unwrap();
        assert_eq!(live.presented(), first);

        std::fs::write(&pair.key, "nonsense").unwrap();
        tokio::time::sleep(poll * 4).await;
        assert_eq!(live.presented(), first);

        let second = write(&pair);
        for _ in 0..4000 {
            if live.presented() == second {
                break;
            }
            tokio::time::sleep(poll).await;
        }
        assert_eq!(live.presented(), second);
        ends.cancel();
    }
}
