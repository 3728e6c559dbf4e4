//! HTTP servers that stop with a token: plain, and TLS with a reloadable certificate.
//!
//! The servers speak HTTP/1.1, and HTTP/2 over TLS. They disconnect clients that are slow in the handshake, in
//! sending a request head or in reading a response, and limit the number of connections; see [`Limits`]. After the
//! token is cancelled, requests in flight have [`DRAIN`] to finish.

mod accept;
mod activity;
mod app;
mod body;
mod connection;
mod descriptors;
mod idle;
mod limits;
mod stream;
mod table;

use std::{io, net::TcpListener, time::Duration};

use axum::Router;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use app::App;
pub use limits::Limits;
pub use table::Peer;

use crate::{
    address::BindAddress,
    tls::{ServingCert, TlsError},
};
use accept::Server;

/// Grace period for requests in flight at shutdown. With the pause before it, less than the ten seconds that
/// upstream's pods have.
pub const DRAIN: Duration = Duration::from_secs(6);

/// Error of a server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is unusable.
    #[error("{name} cannot listen on {address}")]
    Listen {
        /// Name of the server.
        name: String,
        /// Bind address.
        address: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The socket failed.
    #[error("server of {name} failed")]
    Failed {
        /// Name of the server.
        name: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The TLS configuration is invalid.
    #[error("{name} cannot serve TLS")]
    Tls {
        /// Name of the server.
        name: String,
        /// Cause.
        #[source]
        source: TlsError,
    },
}

/// Opens the listening socket of a server; returns `None` if its address is off.
///
/// # Errors
/// [`ServeError::Listen`].
pub fn listen(name: &str, address: BindAddress) -> Result<Option<TcpListener>, ServeError> {
    let listener = address.listen().map_err(|source| ServeError::Listen {
        name: name.to_owned(),
        address: address.to_string(),
        source,
    })?;
    if let Some(listener) = &listener {
        let address = listener
            .local_addr()
            .map(|address| address.to_string())
            .unwrap_or_default();
        tracing::info!(server = name, address, "listening");
    }
    Ok(listener)
}

/// Serves plain HTTP until the token is cancelled; returns at once if the address is off.
///
/// # Errors
/// The server cannot listen on the address, or it fails.
pub async fn plain(
    name: &str,
    address: BindAddress,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    match listen(name, address)? {
        Some(listener) => plain_on(name, listener, router, shutdown).await,
        None => Ok(()),
    }
}

/// Serves plain HTTP on an open socket until the token is cancelled.
///
/// # Errors
/// [`ServeError::Failed`].
pub async fn plain_on(
    name: &str,
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let server = Server::new(name, router.into(), None, Limits::default());
    run(server, listener, shutdown).await
}

/// Serves HTTPS on an open socket until the token is cancelled.
///
/// # Errors
/// [`ServeError::Tls`] or [`ServeError::Failed`].
pub async fn tls_on(
    name: &str,
    listener: TcpListener,
    app: impl Into<App>,
    certificate: &ServingCert,
    limits: Limits,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let config = certificate.server_config().map_err(|source| ServeError::Tls {
        name: name.to_owned(),
        source,
    })?;
    let server = Server::new(name, app.into(), Some(TlsAcceptor::from(config)), limits);
    run(server, listener, shutdown).await
}

async fn run(server: Server, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
    let name = server.name().to_owned();
    let failed = |source| ServeError::Failed { name, source };
    server.run(listener, shutdown).await.map_err(failed)
}

/// Returns a token that is cancelled `delay` after another one. A server with this token keeps serving while its
/// clients learn about the shutdown.
#[must_use]
pub fn cancelled_after(first: &CancellationToken, delay: Duration) -> CancellationToken {
    let (first, second) = (first.clone(), CancellationToken::new());
    let delayed = second.clone();
    tokio::spawn(async move {
        first.cancelled().await;
        tokio::time::sleep(delay).await;
        delayed.cancel();
    });
    second
}
