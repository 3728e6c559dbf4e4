//! Client side of the HTTP proxy: the real API server.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use olm_harness::tls;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::Proxy;

/// Headers that the proxy must not pass on.
const HOP_BY_HOP: [header::HeaderName; 5] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::TRANSFER_ENCODING,
    // The proxy reads the answers, so they must not be compressed.
    header::ACCEPT_ENCODING,
];

/// Clients for the real API server.
#[derive(Clone, Debug)]
pub struct Upstream {
    server: String,
    /// Client that authenticates with the certificate of the controller's user.
    with_certificate: reqwest::Client,
    /// Client for requests with a token of their own.
    without: reqwest::Client,
}

impl Upstream {
    /// Returns clients for the first cluster and user of a kubeconfig with embedded certificates.
    ///
    /// # Errors
    /// The file is unreadable, or lacks a server, an authority, or a client certificate.
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        tls::install_provider();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let config: Value =
            serde_saphyr::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        let field = |pointer: &str| {
            let value = config.pointer(pointer).and_then(Value::as_str);
            value.with_context(|| format!("{} has no {pointer}", path.display()))
        };
        let decode = |pointer: &str| {
            let decoded = STANDARD.decode(field(pointer)?);
            decoded.with_context(|| format!("{pointer} in {} is no base64", path.display()))
        };
        let authority = decode("/clusters/0/cluster/certificate-authority-data")?;
        let mut identity = decode("/users/0/user/client-certificate-data")?;
        identity.extend(decode("/users/0/user/client-key-data")?);
        let identity =
            reqwest::Identity::from_pem(&identity).context("cannot read the client certificate")?;
        let roots = reqwest::Certificate::from_pem_bundle(&authority).context("cannot read the authority")?;
        let builder = || {
            reqwest::Client::builder()
                .no_proxy()
                .no_gzip()
                .http1_only()
                .connect_timeout(Duration::from_secs(10))
                .tls_certs_only(roots.clone())
        };
        Ok(Self {
            server: field("/clusters/0/cluster/server")?.to_owned(),
            with_certificate: builder()
                .identity(identity)
                .build()
                .context("cannot make a client")?,
            without: builder().build().context("cannot make a client")?,
        })
    }

    /// Sends a request to the API server. The body of the answer is read later, as a stream.
    ///
    /// # Errors
    /// The API server cannot be reached.
    pub(crate) async fn send(
        &self,
        method: Method,
        path_and_query: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<reqwest::Response, reqwest::Error> {
        // If a request had a token and a certificate, the API server would prefer the certificate.
        let client = if headers.contains_key(header::AUTHORIZATION) {
            &self.without
        } else {
            &self.with_certificate
        };
        let mut passed = headers.clone();
        for name in HOP_BY_HOP {
            passed.remove(name);
        }
        let url = format!("{}{path_and_query}", self.server);
        client
            .request(method, url)
            .headers(passed)
            .body(body)
            .send()
            .await
    }
}

/// A kubeconfig file that points at a proxy. The file is removed with this value, so keep the value while programs read the file.
#[derive(Debug)]
pub struct Kubeconfig(NamedTempFile);

impl Kubeconfig {
    /// Writes a kubeconfig without credentials.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn pointing_at(proxy: &Proxy) -> Result<Self> {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": proxy.url()}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        });
        let mut file = NamedTempFile::with_suffix(".kubeconfig").context("cannot create a kubeconfig")?;
        file.write_all(config.to_string().as_bytes())
            .context("cannot write a kubeconfig")?;
        Ok(Self(file))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
