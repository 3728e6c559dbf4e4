//! TLS provider, and HTTP clients that use it.

use std::time::Duration;

use anyhow::{Context, Result};

/// Installs aws-lc-rs as the process's TLS provider; no-op after the first call.
pub fn install_provider() {
    // The error only means that a provider is installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Returns an HTTP client that trusts only `ca_pem` (no authority if `None`) and ignores proxies.
///
/// # Errors
/// The certificate is invalid.
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
