//! Misbehaving registries and hosts on real sockets, and images to serve there.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by several test binaries, which may fail loudly"
)]

use std::{io::Write as _, ops::Deref, path::Path, time::Duration};

use axum::http::StatusCode;
use olm_harness::stub;
pub use olm_harness::stub::{Answer, Image, RecordedRequest, answer, not_found, sha256};
use olm_image::{Error, Filter, HostPolicy, ImageConfig, Puller, Reference, RegistryError, Unpacked};
use serde_json::json;
use tempfile::TempDir;

/// Host of a test; failures to start it fail the test.
pub struct Host(stub::Host);

impl Host {
    pub fn start(
        tls: Option<rustls::ServerConfig>,
        answer: impl Fn(&RecordedRequest) -> Answer + Clone + Send + Sync + 'static,
    ) -> Self {
        Self(stub::Host::start(tls, answer).unwrap())
    }
}

impl Deref for Host {
    type Target = stub::Host;

    fn deref(&self) -> &stub::Host {
        &self.0
    }
}

/// Configuration that does not depend on the machine's own.
pub struct Fixture {
    pub folder: TempDir,
    pub config: ImageConfig,
}

impl Fixture {
    /// Allows no hosts except those that a test adds.
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
        config.limits.retry_wait_max = Duration::from_millis(1);
        Self { folder, config }
    }

    /// Allows loopback, and contacts these hosts by plain HTTP.
    pub fn plain(hosts: &[&str]) -> Self {
        let mut fixture = Self::strict();
        fixture.config.hosts = HostPolicy::new(vec!["loopback".parse().unwrap()]);
        fixture.config.plain_http = hosts.iter().map(|&host| host.to_owned()).collect();
        fixture
    }

    /// Adds a name for a host on loopback.
    pub fn name(&mut self, name: &str, host: &Host) {
        self.config.hosts = self.config.hosts.clone().with_answer(name, host.address());
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

/// Returns the error of the registry or of the connection to it.
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
