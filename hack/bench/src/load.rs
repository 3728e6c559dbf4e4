//! Load generator: a client with keep-alive connections, HTTP/1.1 over TLS.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Server under load, and the CA that the client trusts.
#[derive(Clone)]
pub(crate) struct Target {
    /// `host:port`.
    pub(crate) address: String,
    tls: TlsConnector,
}

/// A request: a GET, or a POST if it has a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Ask {
    pub(crate) fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn header(mut self, key: &str, value: &str) -> Self {
        self.headers.push((key.to_owned(), value.to_owned()));
        self
    }
}

/// An answer. The body is empty if only its length was requested.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Length of the body, in bytes.
    pub(crate) length: u64,
}

/// An open connection.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Target {
    /// Returns a target. The client trusts only the CA in `ca`, which is PEM.
    pub(crate) fn new(address: impl Into<String>, ca: &[u8]) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca) {
            roots.add(certificate.context("the CA is no PEM")?)?;
        }
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            address: address.into(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Opens an HTTP connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        self.connect_from(Ipv4Addr::UNSPECIFIED).await
    }

    /// Opens an HTTP connection from this address, see [`Target::stream`].
    pub(crate) async fn connect_from(&self, source: Ipv4Addr) -> Result<Connection> {
        let (sender, connection) = handshake(TokioIo::new(self.stream(source).await?)).await?;
        tokio::spawn(connection);
        Ok(Connection {
            sender,
            host: self.address.clone(),
        })
    }

    /// Opens a TLS connection without HTTP, from this address of the machine; the unspecified address leaves the choice to the
    /// kernel.
    pub(crate) async fn stream(&self, source: Ipv4Addr) -> Result<TlsStream<TcpStream>> {
        let context = || format!("cannot connect to {} from {source}", self.address);
        let mut addresses = tokio::net::lookup_host(&self.address)
            .await
            .with_context(context)?;
        let address = addresses.find(SocketAddr::is_ipv4).with_context(context)?;
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((source, 0))).with_context(context)?;
        let stream = socket.connect(address).await.with_context(context)?;
        stream.set_nodelay(true)?;
        let host = self
            .address
            .rsplit_once(':')
            .map_or("", |(host, _)| host)
            .to_owned();
        Ok(self.tls.connect(ServerName::try_from(host)?, stream).await?)
    }

    /// Sends one request over a new connection.
    pub(crate) async fn get(&self, ask: &Ask) -> Result<Answer> {
        self.connect().await?.get(ask, true).await
    }
}

impl Connection {
    /// Returns true unless the server has closed the connection.
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and reads the answer. If `keep` is false, the body is discarded.
    pub(crate) async fn get(&mut self, ask: &Ask, keep: bool) -> Result<Answer> {
        let method = if ask.body.is_empty() {
            Method::GET
        } else {
            Method::POST
        };
        let mut request = Request::builder()
            .method(method)
            .uri(&ask.path)
            .header("host", &self.host);
        for (key, value) in &ask.headers {
            request = request.header(key, value);
        }
        self.sender.ready().await?;
        let answer = self
            .sender
            .send_request(request.body(Full::new(ask.body.clone()))?)
            .await?;
        let (parts, mut incoming) = answer.into_parts();
        let (mut body, mut length) = (Vec::new(), 0);
        while let Some(frame) = incoming.frame().await {
            if let Ok(data) = frame?.into_data() {
                length += data.len() as u64;
                if keep {
                    body.extend_from_slice(&data);
                }
            }
        }
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
            length,
        })
    }
}

/// Result of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// Answers per second.
    pub(crate) per_second: f64,
    pub(crate) bytes_per_second: f64,
    /// Time within which half of the answers arrived.
    pub(crate) p50: Duration,
    /// Time within which 99 of 100 answers arrived.
    pub(crate) p99: Duration,
    /// Time of the slowest answer.
    pub(crate) worst: Duration,
    pub(crate) requests: usize,
}

/// Sends the requests `asks` in turn over each of `connections` parallel connections, for `time`. Any status other than `wanted`
/// is an error.
pub(crate) async fn load(
    target: &Target,
    asks: &[Ask],
    connections: usize,
    time: Duration,
    wanted: StatusCode,
) -> Result<Load> {
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut connection = target.connect().await?;
        // The handshake and the first read from disk are not part of the measurement.
        if let Some(ask) = asks.first() {
            connection.get(ask, false).await?;
        }
        open.push(connection);
    }
    let (start, asks) = (Instant::now(), Arc::new(asks.to_vec()));
    let mut tasks = Vec::new();
    for (number, mut connection) in open.into_iter().enumerate() {
        let asks = asks.clone();
        tasks.push(tokio::spawn(async move {
            let (mut times, mut bytes) = (Vec::new(), 0);
            // Each connection begins with another request.
            for ask in asks.iter().cycle().skip(number * asks.len() / connections) {
                if start.elapsed() >= time {
                    break;
                }
                let before = Instant::now();
                let answer = connection.get(ask, false).await?;
                if answer.status != wanted {
                    bail!("{} for {}", answer.status, ask.path);
                }
                times.push(before.elapsed());
                bytes += answer.length;
            }
            Ok((times, bytes))
        }));
    }
    let (mut times, mut bytes) = (Vec::new(), 0_u64);
    for task in tasks {
        let (own, length) = task.await??;
        times.extend(own);
        bytes += length;
    }
    let took = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
    Ok(Load {
        per_second: ratio(times.len() as u64, took),
        bytes_per_second: ratio(bytes, took),
        p50: at(50).copied().unwrap_or_default(),
        p99: at(99).copied().unwrap_or_default(),
        worst: times.last().copied().unwrap_or_default(),
        requests: times.len(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(number: u64, seconds: f64) -> f64 {
    number as f64 / seconds
}
