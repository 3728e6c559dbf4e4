//! Registries and hosts with scripted answers, on real sockets, and images to serve from them.
//!
//! Unlike the real registry of [`crate::Registry`], these hosts can lie, answer slowly or stop in the middle.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// Maximum length of a recorded request body in bytes.
const BODY_LIMIT: usize = 1 << 20;

/// A recorded request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Path of the URL.
    pub path: String,
    /// Query of the URL; empty for none.
    pub query: String,
    /// Value of the header `Authorization`.
    pub authorization: Option<String>,
    /// Value of the header `Range`.
    pub range: Option<String>,
    /// Body of the request.
    pub body: String,
    /// Number of earlier requests for this path.
    pub before: usize,
}

/// Answer of a host.
pub type Answer = Response<Body>;

/// A host on a port of its own, which stops with its runtime.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl Host {
    /// Serves plain HTTP, or HTTPS with this configuration.
    ///
    /// # Errors
    /// No port is available.
    pub fn start(
        tls: Option<rustls::ServerConfig>,
        answer: impl Fn(&RecordedRequest) -> Answer + Clone + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), tls, answer)
    }

    /// Serves at an address of the loopback network; port 0 is any.
    ///
    /// # Errors
    /// The port is not available.
    pub fn start_at(
        address: SocketAddr,
        tls: Option<rustls::ServerConfig>,
        answer: impl Fn(&RecordedRequest) -> Answer + Clone + Send + Sync + 'static,
    ) -> Result<Self> {
        anyhow::ensure!(address.ip().is_loopback(), "{address} is not on loopback");
        let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        listener
            .set_nonblocking(true)
            .context("cannot make a listener asynchronous")?;
        let address = listener.local_addr().context("a listener has no address")?;
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let log = requests.clone();
        let app = Router::new().fallback(move |request: Request| {
            let (log, answer) = (log.clone(), answer.clone());
            async move { Ok::<_, Infallible>(answer(&record(&log, request).await)) }
        });
        let app = app.into_make_service();
        if let Some(config) = tls {
            let config = axum_server::tls_rustls::RustlsConfig::from_config(Arc::new(config));
            let server = axum_server::from_tcp_rustls(listener, config).context("cannot serve HTTPS")?;
            tokio::spawn(server.serve(app));
        } else {
            let server = axum_server::from_tcp(listener).context("cannot serve HTTP")?;
            tokio::spawn(server.serve(app));
        }
        Ok(Self { address, requests })
    }

    /// Returns the address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the requests for paths that contain `part`.
    pub fn requests_for(&self, part: &str) -> Vec<RecordedRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.path.contains(part));
        requests
    }
}

async fn record(log: &Mutex<Vec<RecordedRequest>>, request: Request) -> RecordedRequest {
    let (parts, body) = request.into_parts();
    let text = |name| {
        let value: &HeaderValue = parts.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut recorded = RecordedRequest {
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        authorization: text(header::AUTHORIZATION),
        range: text(header::RANGE),
        ..RecordedRequest::default()
    };
    let body = axum::body::to_bytes(body, BODY_LIMIT).await.unwrap_or_default();
    recorded.body = String::from_utf8_lossy(&body).into_owned();
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    recorded.before = log.iter().filter(|before| before.path == recorded.path).count();
    log.push(recorded.clone());
    recorded
}

/// Returns a response with status, headers and body. Invalid statuses and headers are ignored.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    let mut response = Response::new(body.into());
    if let Ok(status) = StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Returns an empty response with status 404.
pub fn not_found() -> Answer {
    answer(404, &[], "")
}

/// Returns the digest of bytes as registries write it: `sha256:HEX`.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// An image of one layer, with its parts by name.
#[derive(Clone, Debug)]
pub struct Image {
    /// The manifest.
    pub manifest: Vec<u8>,
    /// The layer as transferred.
    pub layer: Vec<u8>,
    /// Config and layer by their digests.
    pub blobs: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// Returns an image of one file, `a`, with this content.
    pub fn of(content: &[u8]) -> Self {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // Writing to memory does not fail.
        let _ = archive.append_data(&mut header, "a", content);
        Self::of_layer(archive.into_inner().unwrap_or_default())
    }

    /// Returns an image of a layer, unchecked: a tar, plain or compressed.
    pub fn of_layer(layer: Vec<u8>) -> Self {
        Self::labelled(layer, &[])
    }

    /// Variant of [`Image::of_layer`] with labels in the image's config.
    pub fn labelled(layer: Vec<u8>, labels: &[(&str, &str)]) -> Self {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": []},
        })
        .to_string()
        .into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": sha256(&config), "size": config.len(),
            },
            "layers": [{
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                "digest": sha256(&layer), "size": layer.len(),
            }],
        })
        .to_string()
        .into_bytes();
        let blobs = [config, layer.clone()].map(|blob| (sha256(&blob), blob)).into();
        Self {
            manifest,
            layer,
            blobs,
        }
    }

    /// Returns the digest of the manifest.
    pub fn digest(&self) -> String {
        sha256(&self.manifest)
    }

    /// Answers like a registry with this image in every repository, under any tag.
    pub fn serve(&self, request: &RecordedRequest) -> Answer {
        let Some((_, name)) = request.path.rsplit_once('/') else {
            return not_found();
        };
        if request.path.contains("/manifests/") {
            return answer(200, &[], self.manifest.clone());
        }
        match self.blobs.get(name) {
            Some(blob) => answer(200, &[], blob.clone()),
            None => not_found(),
        }
    }

    /// Returns the end of the layer's URL path.
    pub fn layer_path(&self) -> String {
        format!("/blobs/{}", sha256(&self.layer))
    }
}
