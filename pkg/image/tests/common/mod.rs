//! Registries and hosts that misbehave as a test says, on real sockets, and images to serve there.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by several test binaries, which may fail loudly"
)]

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io::Write as _,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Response, StatusCode, header},
};
use olm_image::{Error, Filter, HostPolicy, ImageConfig, Puller, Reference, RegistryError, Unpacked};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// What a host was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub path: String,
    pub query: String,
    pub authorization: Option<String>,
    pub range: Option<String>,
    pub body: String,
    /// How often this path was asked for before.
    pub before: usize,
}

/// A host on a port of its own; ends with its task's runtime.
pub struct Host {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub type Answer = Response<Body>;

impl Host {
    /// Serves plain HTTP, or HTTPS with this configuration.
    pub fn start(
        tls: Option<rustls::ServerConfig>,
        answer: impl Fn(&Asked) -> Answer + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let log = asked.clone();
        let app = Router::new().fallback(move |request: Request| {
            let (log, answer) = (log.clone(), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let text = |name| {
                    let value = parts.headers.get(name)?;
                    Some(value.to_str().unwrap().to_owned())
                };
                let mut asked = Asked {
                    path: parts.uri.path().to_owned(),
                    query: parts.uri.query().unwrap_or_default().to_owned(),
                    authorization: text(header::AUTHORIZATION),
                    range: text(header::RANGE),
                    ..Asked::default()
                };
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                asked.body = String::from_utf8(body.to_vec()).unwrap();
                {
                    let mut log = log.lock().unwrap();
                    asked.before = log.iter().filter(|before| before.path == asked.path).count();
                    log.push(asked.clone());
                }
                Ok::<_, Infallible>(answer(&asked))
            }
        });
        let app = app.into_make_service();
        if let Some(config) = tls {
            let config = axum_server::tls_rustls::RustlsConfig::from_config(Arc::new(config));
            let server = axum_server::from_tcp_rustls(listener, config).unwrap();
            tokio::spawn(server.serve(app));
        } else {
            let server = axum_server::from_tcp(listener).unwrap();
            tokio::spawn(server.serve(app));
        }
        Self { address, asked }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Requests to paths that contain a text.
    pub fn asked_for(&self, part: &str) -> Vec<Asked> {
        let mut asked = self.asked();
        asked.retain(|asked| asked.path.contains(part));
        asked
    }
}

pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body.into()).unwrap()
}

pub fn not_found() -> Answer {
    answer(404, &[], "")
}

pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

/// An image of one layer, by what its parts are asked for.
#[derive(Clone)]
pub struct Image {
    pub manifest: Vec<u8>,
    pub layer: Vec<u8>,
    pub blobs: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// An image of one file, `a`, with this content.
    pub fn of(content: &[u8]) -> Self {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, "a", content).unwrap();
        Self::of_layer(tar.into_inner().unwrap())
    }

    pub fn of_layer(layer: Vec<u8>) -> Self {
        let config = json!({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}})
            .to_string()
            .into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(&config), "size": config.len()},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": sha256(&layer), "size": layer.len()}],
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

    /// The answer of a registry that has this image in every repository, by any tag.
    pub fn serve(&self, asked: &Asked) -> Answer {
        let Some((_, name)) = asked.path.rsplit_once('/') else {
            return not_found();
        };
        if asked.path.contains("/manifests/") {
            return answer(200, &[], self.manifest.clone());
        }
        match self.blobs.get(name) {
            Some(blob) => answer(200, &[], blob.clone()),
            None => not_found(),
        }
    }

    pub fn layer_path(&self) -> String {
        format!("/blobs/{}", sha256(&self.layer))
    }
}

/// A puller's surroundings that owe nothing to the machine's own.
pub struct Fixture {
    pub folder: TempDir,
    pub config: ImageConfig,
}

impl Fixture {
    /// Nothing is allowed but what a test adds.
    pub fn strict() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let conf = folder.path().join("registries.conf");
        std::fs::write(&conf, "").unwrap();
        let mut config = ImageConfig::new(folder.path().join("cache"));
        config.registries_conf = Some(conf);
        config.auth_file = Some(folder.path().join("auth.json"));
        config.certs_d = vec![folder.path().join("certs.d")];
        config.hosts = HostPolicy::new(Vec::new());
        config.limits.connect = Duration::from_secs(10);
        config.limits.request = Duration::from_secs(30);
        config.limits.retry_wait = Duration::from_millis(1);
        config.limits.retry_wait_longest = Duration::from_millis(1);
        Self { folder, config }
    }

    /// Loopback is allowed, and these hosts are asked by plain HTTP.
    pub fn plain(hosts: &[&str]) -> Self {
        let mut fixture = Self::strict();
        fixture.config.hosts = HostPolicy::new(vec!["loopback".parse().unwrap()]);
        fixture.config.plain_http = hosts.iter().map(|&host| host.to_owned()).collect();
        fixture
    }

    /// A name for a host on loopback.
    pub fn name(&mut self, name: &str, host: &Host) {
        self.config.hosts = self.config.hosts.clone().with_answer(name, host.address);
    }

    pub fn credentials(&self, entries: &serde_json::Value) {
        self.write("auth.json", json!({"auths": entries}).to_string());
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn puller(&self) -> Puller {
        Puller::new(self.config.clone())
    }

    pub async fn pull(&self, reference: &str) -> Result<Unpacked, Error> {
        pull(&self.puller(), reference).await
    }
}

pub async fn pull(puller: &Puller, reference: &str) -> Result<Unpacked, Error> {
    let reference: Reference = reference.parse()?;
    let canonical = puller.resolve(&reference).await?;
    puller
        .fetch_as("owner", &reference, &canonical, Filter::All)
        .await
}

/// What the registry, or the way to it, answered.
pub fn cause(error: Error) -> RegistryError {
    match error {
        Error::Resolve { source, .. } | Error::Pull { source, .. } => *source,
        other => panic!("{}", other.message()),
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

pub fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap()
}
