//! Content API with two catalogs: `example`, small, and `large`.

use std::{path::PathBuf, sync::Arc};

use axum::Router;
use olm_catalogd::{
    server::{CONNECTIONS, CONNECTIONS_PER_CLIENT, Metrics, Options, router_with, serve, traffic},
    storage::{Origin, Store, ValidCatalogName},
};
use olm_harness::pki::Authority;
use olm_runtime::{
    serve::{App, Limits},
    tls::ServingCert,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// `Fri, 02 Jan 2026 03:04:05 GMT`.
const STORED_AT: i64 = 1_767_323_045;
/// Number of bundles in `large`.
pub(crate) const BUNDLES: usize = 3000;

/// Returns the router of the API, and the folder that it serves.
pub(crate) fn api() -> (Router, TempDir) {
    api_of(&[
        ("example", "catalog.yaml", include_str!("catalog.yaml")),
        ("large", "catalog.json", &bundles()),
    ])
}

/// Returns the router of the API of these catalogs, given as name, file and content, and the folder that it serves.
pub(crate) fn api_of(catalogs: &[(&str, &str, &str)]) -> (Router, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("catalogs")).unwrap();
    for (name, file, content) in catalogs {
        let source = folder.path().join(name);
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join(file), content).unwrap();
        let origin = Origin {
            requested: "registry.example/catalog:v1".to_owned(),
            resolved: format!("registry.example/catalog@sha256:{:064x}", name.len()),
            unpacked_at: STORED_AT,
            verified: None,
        };
        store
            .store(
                &ValidCatalogName::new(*name).unwrap(),
                &source,
                origin,
                STORED_AT,
                &|| false,
            )
            .unwrap();
    }
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let options = Options {
        graphql: true,
        access: None,
    };
    (router_with(Arc::new(store), metrics, &options), folder)
}

/// Returns the objects of `large` as they are served.
pub(crate) fn bundles() -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for n in 0..BUNDLES {
        // The objects differ, so that a response is large even when compressed.
        let noise: String = (0..40_u32)
            .map(|at| {
                let mixed = (u32::try_from(n).unwrap() * 40 + at).wrapping_mul(2_654_435_761);
                format!("{mixed:08x}")
            })
            .collect();
        let package = n % 2;
        let _ = writeln!(
            text,
            "{{\"image\":\"{noise}\",\"name\":\"b{n}\",\"package\":\"p{package}\",\"schema\":\"olm.bundle\"}}"
        );
    }
    text
}

/// The API behind TLS on loopback.
pub(crate) struct Server {
    /// `https://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// Certificate of the authority.
    pub(crate) ca: String,
    /// File with the certificate of the authority.
    pub(crate) ca_file: PathBuf,
    shutdown: CancellationToken,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        let (router, folder) = api();
        Self::of(
            router.into(),
            traffic(CONNECTIONS, CONNECTIONS_PER_CLIENT),
            folder,
        )
    }

    /// Starts a server of an application, which may use the folder.
    pub(crate) fn of(app: App, traffic: Limits, folder: TempDir) -> Self {
        olm_runtime::tls::install_provider();
        let authority = Authority::new("content").unwrap();
        let pair = authority.server(&["127.0.0.1"]).unwrap();
        let certificate = ServingCert::fixed(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (ca, ca_file) = (authority.pem(), folder.path().join("ca.crt"));
        std::fs::write(&ca_file, &ca).unwrap();
        let shutdown = CancellationToken::new();
        let ending = shutdown.clone();
        tokio::spawn(async move {
            serve(listener, app, &certificate, traffic, ending).await.unwrap();
        });
        Self {
            url,
            ca,
            ca_file,
            shutdown,
            _folder: folder,
        }
    }

    /// Returns a client that trusts the server and decodes no bodies.
    pub(crate) fn client(&self) -> reqwest::ClientBuilder {
        let authority = reqwest::Certificate::from_pem(self.ca.as_bytes()).unwrap();
        reqwest::Client::builder().tls_certs_only([authority]).no_gzip()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
