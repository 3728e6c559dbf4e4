//! HTTP servers that end with a token: plain, and TLS with a certificate that changes live.
//!
//! HTTP/1.1, and HTTP/2 over TLS; a client has [`HEADER_TIMEOUT`] to send its request's head and
//! [`HANDSHAKE_TIMEOUT`] for the TLS handshake. After the token is cancelled, requests under way
//! have [`DRAIN`] to finish.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use axum::Router;
use axum_server::{
    Handle,
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::rt::TokioTimer;
use tokio_util::sync::CancellationToken;

use crate::{
    address::BindAddress,
    tls::{ServingCert, TlsError},
};

/// How long a client may take to send the head of a request.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way may take to finish at shutdown: less than the ten seconds that pods are given.
pub const DRAIN: Duration = Duration::from_secs(8);
/// How often an HTTP/2 peer is asked whether it is there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
/// Most requests at once on one HTTP/2 connection.
const STREAMS: u32 = 32;
/// Largest head of a request by HTTP/2, in bytes.
const HEAD_BYTES: u32 = 64 * 1024;

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
    let acceptor =
        RustlsAcceptor::new(RustlsConfig::from_config(config)).handshake_timeout(HANDSHAKE_TIMEOUT);
    let handle = ends_with(shutdown);
    let mut server = axum_server::from_tcp(listener)
        .map_err(broke)?
        .acceptor(acceptor)
        .handle(handle);
    let builder = server.http_builder();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES);
    server.serve(router.into_make_service()).await.map_err(broke)
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
