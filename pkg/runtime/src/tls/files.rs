//! Certificate from files, reloaded when their content changes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    TlsError,
    resolver::{CertificateResolver, certified_key},
};

/// Interval of checks of the files.
const POLL: Duration = Duration::from_secs(5);

/// Paths of the two PEM files.
#[derive(Clone, Debug)]
pub(super) struct CertificateFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// Content of both files at one time.
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
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

pub(super) async fn load_and_watch(
    files: CertificateFiles,
    shutdown: CancellationToken,
) -> Result<Arc<CertificateResolver>, TlsError> {
    load_and_watch_every(POLL, files, shutdown).await
}

async fn load_and_watch_every(
    poll: Duration,
    files: CertificateFiles,
    shutdown: CancellationToken,
) -> Result<Arc<CertificateResolver>, TlsError> {
    let content = files.read().await?;
    let resolver = Arc::new(CertificateResolver::new(certified_key(
        &content.certificate,
        &content.key,
    )?));
    tokio::spawn(watch(poll, files, content.digest(), resolver.clone(), shutdown));
    Ok(resolver)
}

async fn watch(
    poll: Duration,
    files: CertificateFiles,
    mut loaded: [u8; 32],
    resolver: Arc<CertificateResolver>,
    shutdown: CancellationToken,
) {
    let mut ticks = interval(poll);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let content = match files.read().await {
            Ok(content) => content,
            Err(error) => {
                tracing::warn!(error = %olm_text::chain(&error), "the former serving certificate stays in use");
                continue;
            }
        };
        let digest = content.digest();
        if digest == loaded {
            continue;
        }
        // A pair read during its replacement does not match; the next check reads it completely.
        match certified_key(&content.certificate, &content.key) {
            Ok(key) => {
                resolver.swap(key);
                loaded = digest;
                tracing::info!(file = %files.certificate.display(), "serving certificate reloaded");
            }
            Err(error) => {
                tracing::warn!(error = %olm_text::chain(&error), "the former serving certificate stays in use");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::tls::issue;

    fn write(files: &CertificateFiles) -> Vec<u8> {
        let names = ["localhost".to_owned()];
        let issued = issue("test", &names, SystemTime::now(), Duration::from_hours(1)).unwrap();
        std::fs::write(&files.certificate, &issued.certificate_pem).unwrap();
        std::fs::write(&files.key, &issued.key_pem).unwrap();
        let chain = crate::tls::authorities(issued.certificate_pem.as_bytes()).unwrap();
        chain[0].to_vec()
    }

    #[tokio::test]
    async fn a_new_pair_is_presented_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let poll = Duration::from_millis(5);
        let first = write(&files);
        let shutdown = CancellationToken::new();
        let resolver = load_and_watch_every(poll, files.clone(), shutdown.clone())
            .await
            .unwrap();
        assert_eq!(resolver.current(), first);

        std::fs::write(&files.key, "nonsense").unwrap();
        tokio::time::sleep(poll * 4).await;
        assert_eq!(resolver.current(), first);

        let second = write(&files);
        for _ in 0..4000 {
            if resolver.current() == second {
                break;
            }
            tokio::time::sleep(poll).await;
        }
        assert_eq!(resolver.current(), second);
        shutdown.cancel();
    }
}
