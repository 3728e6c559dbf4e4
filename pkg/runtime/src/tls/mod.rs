//! Serving certificates that change while the server runs.
//!
//! A [`ServingCert`] hands rustls whatever certificate is current: read from files that are
//! looked at every few seconds (mounted Secrets change by a swap of symlinks, which file
//! notification misses), or made here and kept in a Secret that all replicas share.

mod files;
mod issue;
mod own;
mod profile;
mod resolver;
mod trust;

use std::{path::PathBuf, sync::Arc};

use kube::Client;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

pub use issue::{Issued, issue};
pub use own::{CATALOGD_OWN_CERT, OPERATOR_CONTROLLER_OWN_CERT, OwnCertificate, own_ca};
pub use profile::{GroupName, MinVersion, Profile, ProfileError, ProfileName, SuiteName, left_out};
pub use trust::{authorities, authorities_in, client_config, client_config_with, with_identity};

use crate::args::Checked;
use resolver::Live;

/// Installs ring as the process's TLS provider; harmless when one is installed already.
pub fn install_provider() {
    // The error only says that a provider is there.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The certificate a server presents, current at every handshake, and the TLS it is presented with. Clones share it.
#[derive(Clone, Debug)]
pub struct ServingCert {
    live: Arc<Live>,
    profile: Profile,
}

impl ServingCert {
    /// A certificate from two PEM files, read again when they change, until `shutdown`.
    ///
    /// A pair that cannot be used later on is logged, and the former one stays.
    ///
    /// # Errors
    /// The files cannot be used at the start.
    pub async fn from_files(
        certificate: PathBuf,
        key: PathBuf,
        shutdown: CancellationToken,
    ) -> Result<Self, TlsError> {
        files::serve(files::Pair { certificate, key }, shutdown)
            .await
            .map(Self::of)
    }

    /// A certificate of an own authority in a Secret: made when missing, adopted when there,
    /// renewed long before it expires, until `shutdown`.
    ///
    /// # Errors
    /// The Secret can neither be read nor made.
    pub async fn own(
        client: Client,
        own: OwnCertificate,
        shutdown: CancellationToken,
    ) -> Result<Self, TlsError> {
        own::serve(client, own, shutdown).await.map(Self::of)
    }

    /// What a server presents by its flags: the files' certificate when there are files, else `own`; in the profile asked
    /// for.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files) and [`own`](Self::own).
    pub async fn by_flags(
        checked: &Checked,
        client: Client,
        own: OwnCertificate,
        shutdown: CancellationToken,
    ) -> Result<Self, TlsError> {
        let certificate = match checked.tls_files.clone() {
            Some((certificate, key)) => Self::from_files(certificate, key, shutdown).await?,
            None => Self::own(client, own, shutdown).await?,
        };
        Ok(certificate.with_profile(checked.tls_profile.clone()))
    }

    /// A certificate that never changes.
    ///
    /// # Errors
    /// The PEM texts are no certificate chain with its key.
    pub fn fixed(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, TlsError> {
        let key = resolver::certified_key(certificate_pem, key_pem)?;
        Ok(Self::of(Arc::new(Live::new(key))))
    }

    fn of(live: Arc<Live>) -> Self {
        Self {
            live,
            profile: Profile::default(),
        }
    }

    /// The same certificate, presented by another profile than the intermediate one.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The server's TLS with this certificate and its profile; HTTP/2 is preferred to HTTP/1.1.
    ///
    /// # Errors
    /// The provider lacks a protocol version.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let mut config = self
            .profile
            .server()?
            .with_no_client_auth()
            .with_cert_resolver(self.live.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// What can go wrong with a serving certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("TLS file {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not PEM, or not the PEM that is needed.
    #[error("no usable PEM {what}")]
    Pem {
        /// `certificate` or `private key`.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The PEM text holds no certificate.
    #[error("no certificate found in the PEM text")]
    NoCertificate,
    /// A directory of authorities is empty.
    #[error("no certificates found in {directory:?}")]
    NoAuthorities {
        /// The directory.
        directory: PathBuf,
    },
    /// Certificate and key do not fit, or the key's kind is unknown.
    #[error("certificate and private key cannot be used together")]
    Unusable(#[source] rustls::Error),
    /// The TLS provider is incomplete.
    #[error("TLS provider cannot be used")]
    Provider(#[source] rustls::Error),
    /// A certificate cannot be made.
    #[error("certificate cannot be made")]
    Issue(#[source] rcgen::Error),
    /// The API server refused the Secret.
    #[error("Secret {namespace}/{name} with the serving certificate cannot be {action}")]
    Secret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// `read` or `written`.
        action: &'static str,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not answer in time, or other replicas kept changing the Secret.
    #[error("Secret {namespace}/{name} with the serving certificate could not be settled in time")]
    Unsettled {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}
