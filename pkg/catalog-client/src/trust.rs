//! Certificate authorities that the client trusts for catalogd.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use olm_runtime::tls;

/// Timeout of a provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(20);

/// Future of a provider of authorities: PEM text, `None` if there is none yet.
pub type CaFuture = Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send>>;

/// Authorities trusted besides the system's.
#[derive(Clone)]
pub enum Trust {
    /// The system's authorities alone.
    System,
    /// PEM files (`*.crt`, `*.pem`) of a directory, read again after TLS failures.
    Directory(PathBuf),
    /// PEM text, requested again after TLS failures.
    Provider(Arc<dyn Fn() -> CaFuture + Send + Sync>),
}

impl Trust {
    /// Trusts authorities from a function, such as one that reads a Secret.
    pub fn provider<F, Fut>(provide: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        Self::Provider(Arc::new(move || Box::pin(provide())))
    }

    /// Returns a TLS configuration with the current authorities.
    pub(crate) async fn config(&self, profile: &tls::Profile) -> Result<rustls::ClientConfig, String> {
        let text = |error: tls::TlsError| olm_text::chain(&error);
        let extra = match self {
            Self::System => Vec::new(),
            Self::Directory(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || tls::authorities_in(&path))
                    .await
                    .map_err(|_| "reading was interrupted".to_owned())?
                    .map_err(text)?
            }
            Self::Provider(provide) => {
                let provided = tokio::time::timeout(PROVIDER_TIMEOUT, provide())
                    .await
                    .map_err(|_| "they were not provided in time".to_owned())??;
                match provided {
                    Some(pem) => tls::authorities(pem.as_bytes()).map_err(text)?,
                    None => Vec::new(),
                }
            }
        };
        tls::client_config_with(&extra, profile).map_err(text)
    }
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System => f.write_str("System"),
            Self::Directory(path) => f.debug_tuple("Directory").field(path).finish(),
            Self::Provider(_) => f.write_str("Provider"),
        }
    }
}
