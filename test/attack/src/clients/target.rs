//! Client side of the attacks: TLS connections to catalogd from any loopback address, and a minimal HTTP client.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use olm_runtime::tls::{authorities, client_config};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::World;

/// Timeout of a response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a response's head.
const MAX_HEAD: usize = 16 * 1024;

/// Addresses of catalogd's servers, and the TLS configuration for them.
pub(super) struct Target {
    pub(super) content: SocketAddr,
    pub(super) metrics: SocketAddr,
    connector: TlsConnector,
}

pub(super) type Stream = TlsStream<TcpStream>;

impl Target {
    pub(super) async fn new(world: &World, metrics: &str) -> Result<Self> {
        let secrets: Api<Secret> = Api::namespaced(world.plane.client(), world.system_namespace());
        let secret = secrets.get("catalogd-service-own-cert").await?;
        let ca = secret.data.as_ref().and_then(|data| data.get("ca.crt"));
        let ca = authorities(&ca.context("no ca.crt")?.0)?;
        let mut config = client_config(&ca)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let url = world.catalogd.url();
        let content = url.trim_start_matches("https://");
        Ok(Self {
            content: content.parse()?,
            metrics: metrics.parse()?,
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Opens a connection from the address 127.0.0.`last` and completes the TLS handshake.
    pub(super) async fn connect(&self, last: u8, to: SocketAddr) -> Result<Stream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into())?;
        let name = ServerName::from(to.ip());
        let stream = timeout(TIMEOUT, async {
            let tcp = socket.connect(to).await?;
            self.connector.connect(name, tcp).await
        });
        Ok(stream.await.context("no handshake in time")??)
    }
}

/// Sends a GET request, with a bearer token if one is given.
pub(super) async fn send(stream: &mut Stream, path: &str, token: Option<&str>) -> Result<()> {
    let mut head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
    if let Some(token) = token {
        head.push_str("authorization: Bearer ");
        head.push_str(token);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    Ok(stream.write_all(head.as_bytes()).await?)
}

/// Reads a response with a `Content-Length` to its end. Returns the status.
pub(super) async fn receive(stream: &mut Stream) -> Result<u16> {
    timeout(TIMEOUT, read(stream))
        .await
        .context("no answer in time")?
}

async fn read(stream: &mut Stream) -> Result<u16> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        ensure!(bytes.len() < MAX_HEAD, "the answer's head does not end");
        ensure!(stream.read_buf(&mut bytes).await? > 0, "closed without an answer");
    };
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("an answer without a length")?.trim().parse()?;
    while bytes.len() < end + length {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "closed within an answer");
    }
    let status = head.split_whitespace().nth(1).context("no status")?;
    Ok(status.parse()?)
}
