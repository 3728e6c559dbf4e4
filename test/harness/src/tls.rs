//! The TLS provider, and HTTP clients that use it.

use std::time::Duration;

use anyhow::{Context, Result};

/// Makes ring the process's TLS provider; calling it again does nothing.
pub fn install_provider() {
    // An error says that someone else has installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// An HTTP client that trusts only `ca_pem` (nobody when `None`) and goes through no proxy.
///
/// # Errors
/// When the certificate cannot be read.
pub fn http_client(ca_pem: Option<&str>) -> Result<reqwest::Client> {
    install_provider();
    let roots = match ca_pem {
        Some(pem) => reqwest::Certificate::from_pem_bundle(pem.as_bytes()).context("cannot read the CA")?,
        None => Vec::new(),
    };
    reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only(roots)
        .connect_timeout(Duration::from_secs(10))
        .build()
        .context("cannot make an HTTP client")
}
