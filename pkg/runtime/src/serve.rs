//! HTTP servers that end with a token: plain, and TLS with a certificate that changes live.
//!
//! HTTP/1.1, and HTTP/2 over TLS. Who is slow to shake hands, to send the head of a request or to take an answer
//! is cut off, so that idle or stuck peers cannot hold connections for ever. After the token is cancelled, requests
//! under way have [`DRAIN`] to finish.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    time::Duration,
};

use axum::Router;
use axum_server::{
    Handle,
    accept::Accept,
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use crate::{
    address::BindAddress,
    tls::{ServingCert, TlsError},
};

/// How long a client may take to send the head of a request.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way may take to finish at shutdown: with the pause before it, less than the ten seconds
/// that upstream's pods are given.
pub const DRAIN: Duration = Duration::from_secs(6);
/// How long a client may take no byte of an answer.
const STALL: Duration = Duration::from_mins(1);
/// How often an HTTP/2 peer is asked whether it is there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
/// Largest head of a request by HTTP/2, in bytes.
const HEAD_BYTES: u32 = 64 * 1024;

/// How much patience an HTTPS server has, and how much one connection may ask of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// How long the head of a request may take, also the idle time between two requests.
    pub head: Duration,
    /// Most requests at once on one HTTP/2 connection.
    pub streams: u32,
}

impl Default for Traffic {
    /// For seldom and short requests, as those of scrapers are.
    fn default() -> Self {
        Self {
            head: HEADER_TIMEOUT,
            streams: 32,
        }
    }
}

/// Why a server did not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("{what} cannot listen on {address}")]
    Listen {
        /// Which server.
        what: String,
        /// Where.
        address: String,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The server stopped by itself.
    #[error("server of {what} broke")]
    Broke {
        /// Which server.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No TLS configuration could be made.
    #[error("{what} cannot serve TLS")]
    Tls {
        /// Which server.
        what: String,
        /// Why.
        #[source]
        source: TlsError,
    },
}

/// Opens the socket of a server, or nothing when its address is off.
///
/// # Errors
/// [`ServeError::Listen`].
pub fn listen(what: &str, address: BindAddress) -> Result<Option<TcpListener>, ServeError> {
    let listener = address.listen().map_err(|source| ServeError::Listen {
        what: what.to_owned(),
        address: address.to_string(),
        source,
    })?;
    if let Some(listener) = &listener {
        let address = listener
            .local_addr()
            .map(|address| address.to_string())
            .unwrap_or_default();
        tracing::info!(server = what, address, "listening");
    }
    Ok(listener)
}

/// Serves plain HTTP until the token is cancelled; returns at once when the address is off.
///
/// # Errors
/// The address cannot be listened on, or the server broke.
pub async fn plain(
    what: &str,
    address: BindAddress,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    match listen(what, address)? {
        Some(listener) => plain_on(what, listener, router, shutdown).await,
        None => Ok(()),
    }
}

/// Serves plain HTTP on an open socket until the token is cancelled.
///
/// # Errors
/// [`ServeError::Broke`].
pub async fn plain_on(
    what: &str,
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let broke = |source| ServeError::Broke {
        what: what.to_owned(),
        source,
    };
    let handle = ends_with(shutdown);
    let mut server = axum_server::from_tcp(listener)
        .map_err(broke)?
        .handle(handle)
        .http1_only();
    server
        .http_builder()
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    server.serve(router.into_make_service()).await.map_err(broke)
}

/// Serves HTTPS on an open socket until the token is cancelled.
///
/// # Errors
/// [`ServeError::Tls`] or [`ServeError::Broke`].
pub async fn tls_on(
    what: &str,
    listener: TcpListener,
    router: Router,
    certificate: &ServingCert,
    traffic: Traffic,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let broke = |source| ServeError::Broke {
        what: what.to_owned(),
        source,
    };
    let config = certificate.server_config().map_err(|source| ServeError::Tls {
        what: what.to_owned(),
        source,
    })?;
    let acceptor = RustlsAcceptor::new(RustlsConfig::from_config(config))
        .handshake_timeout(HANDSHAKE_TIMEOUT)
        .acceptor(Watched);
    let handle = ends_with(shutdown);
    let mut server = axum_server::from_tcp(listener)
        .map_err(broke)?
        .acceptor(acceptor)
        .handle(handle);
    let builder = server.http_builder();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(traffic.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .max_concurrent_streams(traffic.streams)
        .max_header_list_size(HEAD_BYTES);
    server.serve(router.into_make_service()).await.map_err(broke)
}

/// A token that is cancelled `delay` after another one. A server that ends with it is still there while those who
/// send it requests find out that it is about to go.
#[must_use]
pub fn later(first: &CancellationToken, delay: Duration) -> CancellationToken {
    let (first, second) = (first.clone(), CancellationToken::new());
    let ends = second.clone();
    tokio::spawn(async move {
        first.cancelled().await;
        tokio::time::sleep(delay).await;
        ends.cancel();
    });
    second
}

/// Puts the time limit on writing below TLS.
#[derive(Clone, Debug)]
struct Watched;

impl<S: Send + 'static> Accept<TcpStream, S> for Watched {
    type Stream = Pin<Box<TimeoutStream<TcpStream>>>;
    type Service = S;
    type Future = std::future::Ready<io::Result<(Self::Stream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // An answer's head and body are written apart: without this, the body waits for the head's acknowledgement,
        // which a peer puts off by 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            return std::future::ready(Err(error));
        }
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(STALL));
        std::future::ready(Ok((Box::pin(stream), service)))
    }
}

fn ends_with(shutdown: CancellationToken) -> Handle<SocketAddr> {
    let handle = Handle::new();
    let ending = handle.clone();
    tokio::spawn(async move {
        shutdown.cancelled().await;
        ending.graceful_shutdown(Some(DRAIN));
    });
    handle
}
