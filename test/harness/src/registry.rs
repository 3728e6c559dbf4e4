//! A real OCI registry (CNCF distribution) on a port of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use serde_json::{Value, json};

use crate::assets::Assets;
use crate::pki::Authority;
use crate::ports::Port;
use crate::process::{Process, Spawn};
use crate::scratch::Scratch;
use crate::tls;
use crate::wait::eventually;

const START_LIMIT: Duration = Duration::from_mins(1);

/// Options of a registry; the default serves plain HTTP without authentication.
#[derive(Clone, Debug, Default)]
pub struct RegistryOptions {
    /// Serve HTTPS with a certificate of a separate CA, see [`Registry::ca_pem`].
    pub tls: bool,
    /// Require basic auth; the text is an `htpasswd` file with bcrypt hashes.
    pub htpasswd: Option<String>,
    /// Require a token of this service. Excludes `htpasswd`.
    pub token: Option<TokenService>,
}

/// The token service to which a registry directs its clients.
#[derive(Clone, Debug)]
pub struct TokenService {
    /// Address.
    pub realm: String,
    /// Issuer in its tokens.
    pub issuer: String,
    /// Name of the registry for the token service.
    pub service: String,
    /// Public keys for its signatures, a JSON Web Key Set.
    pub jwks: String,
}

/// A running registry. Dropping it stops the process and removes the pushed images.
#[derive(Debug)]
pub struct Registry {
    process: Option<Process>,
    program: PathBuf,
    config: PathBuf,
    port: Port,
    ca_pem: Option<String>,
    scratch: Scratch,
}

impl Registry {
    /// Starts a registry that serves plain HTTP without authentication.
    ///
    /// # Errors
    /// The program cannot be found, built or started; the message has the tail of its log.
    pub async fn start() -> Result<Self> {
        Self::start_with(RegistryOptions::default()).await
    }

    /// Starts a registry with options.
    ///
    /// # Errors
    /// As [`Registry::start`].
    pub async fn start_with(options: RegistryOptions) -> Result<Self> {
        let assets = Assets::get().await?;
        let mut scratch = Scratch::new("registry")?;
        let storage = scratch.bulky_dir("storage")?;
        let port = Port::reserve()?;
        let mut http = json!({"addr": port.address(), "net": "tcp"});
        let mut ca_pem = None;
        if options.tls {
            let authority = Authority::new("test-registry")?;
            let serving = authority.server(&["127.0.0.1", "localhost"])?;
            let certificate = write(scratch.path(), "tls.crt", &serving.certificate)?;
            let key = write(scratch.path(), "tls.key", &serving.key)?;
            insert(&mut http, "tls", json!({"certificate": certificate, "key": key}));
            ca_pem = Some(authority.pem());
        }
        let mut config = json!({
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": false}},
            "storage": {
                "filesystem": {"rootdirectory": storage},
                "delete": {"enabled": true},
                "maintenance": {"uploadpurging": {"enabled": false}},
            },
            "http": http,
        });
        if let Some(htpasswd) = options.htpasswd {
            let path = write(scratch.path(), "htpasswd", &htpasswd)?;
            insert(
                &mut config,
                "auth",
                json!({"htpasswd": {"realm": "test", "path": path}}),
            );
        }
        if let Some(token) = options.token {
            let jwks = write(scratch.path(), "jwks.json", &token.jwks)?;
            let auth = json!({"token": {
                "realm": token.realm,
                "issuer": token.issuer,
                "service": token.service,
                "jwks": jwks,
            }});
            insert(&mut config, "auth", auth);
        }
        let config = write(scratch.path(), "config.yml", &config.to_string())?;
        let mut registry = Self {
            process: None,
            program: assets.registry,
            config,
            port,
            ca_pem,
            scratch,
        };
        registry.restart().await?;
        Ok(registry)
    }

    /// Returns `127.0.0.1:PORT`, the host part of image references.
    pub fn host(&self) -> String {
        self.port.address()
    }

    /// Returns the CA of its certificate, PEM, if it serves HTTPS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Returns `http://HOST` or `https://HOST`.
    pub fn url(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.host())
    }

    /// Stops the process; pushed images and the port stay.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts the process again on the same port with the pushed images, after stopping it if it runs.
    ///
    /// # Errors
    /// The process does not start; the message has the tail of its log.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop();
        let mut process = Spawn::new("registry", &self.program)
            .arg("serve")
            .arg(&self.config)
            .env("OTEL_TRACES_EXPORTER", "none")
            .spawn(self.scratch.path())?;
        let client = tls::http_client(self.ca_pem())?;
        let url = format!("{}/v2/", self.url());
        let ready = eventually(START_LIMIT, "the registry answers", async || {
            if let Err(ended) = process.check() {
                return Ok(Err(ended));
            }
            let status = client
                .get(&url)
                .timeout(Duration::from_secs(2))
                .send()
                .await?
                .status();
            // A registry with authentication answers 401.
            if !status.is_success() && status != 401 {
                bail!("{status}");
            }
            Ok(Ok(()))
        })
        .await;
        ready.unwrap_or_else(|timeout| Err(timeout.context(process.tail(30))))?;
        self.process = Some(process);
        Ok(())
    }

    /// Returns the log with one line per request, for tests that count pulls.
    ///
    /// # Errors
    /// The log is unreadable.
    pub fn access_log(&self) -> Result<String> {
        let path = self.scratch.path().join("registry.log");
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Returns a client for the registry.
    pub fn client(&self) -> oci_client::Client {
        tls::install_provider();
        let protocol = if self.ca_pem.is_some() {
            ClientProtocol::Https
        } else {
            ClientProtocol::Http
        };
        let roots = self.ca_pem.iter().map(|pem| Certificate {
            encoding: CertificateEncoding::Pem,
            data: pem.clone().into_bytes(),
        });
        oci_client::Client::new(ClientConfig {
            protocol,
            tls_certs_only: roots.collect(),
            platform_resolver: None,
            connect_timeout: Some(Duration::from_secs(10)),
            read_timeout: Some(Duration::from_mins(1)),
            ..ClientConfig::default()
        })
    }
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

fn write(dir: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
