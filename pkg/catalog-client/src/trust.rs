//! Whom the client trusts to be catalogd.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use olm_runtime::tls;

/// How long a provider may take.
const PROVIDE: Duration = Duration::from_secs(20);

/// What a provider of authorities returns: PEM text, `None` when there is none yet.
pub type CaFuture = Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send>>;

/// The authorities trusted besides the system's.
#[derive(Clone)]
pub enum Trust {
    /// Only the system's.
    System,
    /// PEM files (`*.crt`, `*.pem`) of a directory, read again when TLS fails.
    Directory(PathBuf),
    /// PEM text, asked for again when TLS fails.
    Provider(Arc<dyn Fn() -> CaFuture + Send + Sync>),
}

impl Trust {
    /// Authorities from a function, such as one that reads a Secret.
    pub fn provider<F, Fut>(provide: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        Self::Provider(Arc::new(move || Box::pin(provide())))
    }

    /// A client's TLS with the authorities as they are now.
    pub(crate) async fn config(&self, profile: &tls::Profile) -> Result<rustls::ClientConfig, String> {
        let told = |error: tls::TlsError| olm_text::chain(&error);
        let extra = match self {
            Self::System => Vec::new(),
            Self::Directory(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || tls::authorities_in(&path))
                    .await
                    .map_err(|_| "reading was interrupted".to_owned())?
                    .map_err(told)?
            }
            Self::Provider(provide) => {
                let provided = tokio::time::timeout(PROVIDE, provide())
                    .await
                    .map_err(|_| "they were not provided in time".to_owned())??;
                match provided {
                    Some(pem) => tls::authorities(pem.as_bytes()).map_err(told)?,
                    None => Vec::new(),
                }
            }
        };
        tls::client_config_with(&extra, profile).map_err(told)
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
