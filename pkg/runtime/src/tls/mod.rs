//! Serving certificates that change while the server runs.
//!
//! A [`ServingCert`] provides rustls with the current certificate. It is read from files, which are polled because
//! mounted Secrets change by a swap of symlinks that file notification misses. Otherwise it is self-managed, in a
//! Secret that all replicas share.

mod files;
mod issue;
mod managed;
mod profile;
mod resolver;
mod roots;
mod trust;

use std::{path::PathBuf, sync::Arc};

use kube::Client;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

pub use issue::{Issued, issue};
pub use managed::{CATALOGD_OWN_CERT, OPERATOR_CONTROLLER_OWN_CERT, OwnCertificate, UI_OWN_CERT, own_ca};
pub use profile::{GroupName, MinVersion, Profile, ProfileError, ProfileName, SuiteName, unsupported};
pub use trust::{
    authorities, authorities_in, certificate_files, client_config, client_config_with, is_trusted,
    with_identity,
};

use resolver::CertificateResolver;

/// Installs aws-lc-rs as the process's TLS provider; no-op if a provider is installed.
pub fn install_provider() {
    // The error only means that a provider is installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Certificate of a server, current at every handshake, and its TLS profile. Clones share it.
#[derive(Clone, Debug)]
pub struct ServingCert {
    resolver: Arc<CertificateResolver>,
    profile: Profile,
}

impl ServingCert {
    /// Returns a certificate from two PEM files, reloaded when they change, until `shutdown`.
    ///
    /// If a later version is unusable, the error is logged and the former certificate stays in use.
    ///
    /// # Errors
    /// The files are unusable at the start.
    pub async fn from_files(
        certificate: PathBuf,
        key: PathBuf,
        shutdown: CancellationToken,
    ) -> Result<Self, TlsError> {
        files::load_and_watch(files::CertificateFiles { certificate, key }, shutdown)
            .await
            .map(Self::new)
    }

    /// Returns a self-managed certificate in a Secret: created if missing, adopted if present, renewed long before
    /// it expires, until `shutdown`.
    ///
    /// # Errors
    /// The Secret can be neither read nor created.
    pub async fn own(
        client: Client,
        own: OwnCertificate,
        shutdown: CancellationToken,
    ) -> Result<Self, TlsError> {
        managed::load_and_renew(client, own, shutdown)
            .await
            .map(Self::new)
    }

    /// Returns a certificate that never changes.
    ///
    /// # Errors
    /// The PEM texts are no certificate chain with its key.
    pub fn fixed(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, TlsError> {
        let key = resolver::certified_key(certificate_pem, key_pem)?;
        Ok(Self::new(Arc::new(CertificateResolver::new(key))))
    }

    fn new(resolver: Arc<CertificateResolver>) -> Self {
        Self {
            resolver,
            profile: Profile::default(),
        }
    }

    /// Sets the TLS profile; intermediate by default.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Returns the server's TLS configuration; HTTP/2 is preferred to HTTP/1.1.
    ///
    /// # Errors
    /// The provider lacks a protocol version.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let mut config = self
            .profile
            .server()?
            .with_no_client_auth()
            .with_cert_resolver(self.resolver.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Error of a certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is unreadable.
    #[error("TLS file {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The text is no PEM, or has no such block.
    #[error("no usable PEM {what}")]
    Pem {
        /// `certificate` or `private key`.
        what: &'static str,
        /// Cause.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The PEM text contains no certificate.
    #[error("no certificate found in the PEM text")]
    NoCertificate,
    /// The directory of authorities is empty.
    #[error("no certificates found in {directory:?}")]
    NoAuthorities {
        /// The directory.
        directory: PathBuf,
    },
    /// Certificate and key do not match, or the key's type is unknown.
    #[error("certificate and private key cannot be used together")]
    Unusable(#[source] rustls::Error),
    /// The TLS provider is incomplete.
    #[error("TLS provider cannot be used")]
    Provider(#[source] rustls::Error),
    /// The certificate cannot be issued.
    #[error("certificate cannot be made")]
    Issue(#[source] rcgen::Error),
    /// The API server refused the Secret.
    #[error("Secret {namespace}/{name} with the serving certificate cannot be {action}")]
    Secret {
        /// Namespace of the Secret.
        namespace: String,
        /// Name of the Secret.
        name: String,
        /// `read` or `written`.
        action: &'static str,
        /// Answer of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Secret does not exist, and its creation is forbidden.
    #[error(
        "Secret {namespace}/{name} for the serving certificate does not exist, and this process may not create it: apply the manifests \
         of config again, or create the Secret empty"
    )]
    SecretMissing {
        /// Namespace of the Secret.
        namespace: String,
        /// Name of the Secret.
        name: String,
    },
    /// The API server did not answer in time, or other replicas kept changing the Secret.
    #[error("Secret {namespace}/{name} with the serving certificate could not be read or written in time")]
    SecretTimeout {
        /// Namespace of the Secret.
        namespace: String,
        /// Name of the Secret.
        name: String,
    },
}
