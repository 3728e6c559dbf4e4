//! HTTP servers that end with a token: plain, and TLS with a certificate that changes live.
//!
//! HTTP/1.1, and HTTP/2 over TLS. A client that is slow to shake hands, to send the head of a request or to read an
//! answer is cut off, and the number of connections is capped, see [`Traffic`]. After the token is cancelled, requests
//! under way have [`DRAIN`] to finish.

mod accept;
mod activity;
mod body;
mod connection;
mod descriptors;
mod stream;
mod table;
mod traffic;

use std::{io, net::TcpListener, time::Duration};

use axum::Router;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use table::Peer;
pub use traffic::Traffic;

use crate::{
    address::BindAddress,
    tls::{ServingCert, TlsError},
};
use accept::Server;

/// Time that requests under way have to finish at shutdown: with the pause before it, less than the ten seconds that
/// upstream's pods are given.
pub const DRAIN: Duration = Duration::from_secs(6);

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
        /// Reason from the operating system.
        #[source]
        source: io::Error,
    },
    /// The socket cannot be used.
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
    let server = Server::new(what, router, None, Traffic::default());
    run(server, listener, shutdown).await
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
    let config = certificate.server_config().map_err(|source| ServeError::Tls {
        what: what.to_owned(),
        source,
    })?;
    let server = Server::new(what, router, Some(TlsAcceptor::from(config)), traffic);
    run(server, listener, shutdown).await
}

async fn run(server: Server, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
    let what = server.what().to_owned();
    let broke = |source| ServeError::Broke { what, source };
    server.run(listener, shutdown).await.map_err(broke)
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
