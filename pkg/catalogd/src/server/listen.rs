//! The HTTPS listener of the content API.
//!
//! HTTP/1.1 and HTTP/2. Who is slow to handshake, to send a request or to take an answer is cut
//! off, so that idle or stuck peers cannot hold connections for ever.

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
use olm_runtime::{
    serve::DRAIN,
    tls::{ServingCert, TlsError},
};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a request's head may take, also the idle time between two requests.
const HEAD: Duration = Duration::from_secs(30);
/// How long a client may take no byte of an answer.
const STALL: Duration = Duration::from_mins(1);
/// How often an HTTP/2 peer is asked whether it is there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
/// Most answers at once on one HTTP/2 connection.
const STREAMS: u32 = 100;
/// Largest head of a request, in bytes.
const HEAD_BYTES: u32 = 64 * 1024;

/// Why the server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The TLS configuration cannot be made.
    #[error("catalog server cannot serve TLS")]
    Tls(#[source] TlsError),
    /// The listener broke.
    #[error("catalog server broke")]
    Broke(#[source] io::Error),
}

/// Serves on an open socket until `shutdown`, then lets answers under way finish.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(
    listener: TcpListener,
    router: Router,
    certificate: &ServingCert,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let tls = certificate.server_config().map_err(ServeError::Tls)?;
    let acceptor = RustlsAcceptor::new(RustlsConfig::from_config(tls))
        .handshake_timeout(HANDSHAKE)
        .acceptor(Watched);
    let handle = Handle::<SocketAddr>::new();
    let ending = handle.clone();
    let waiting = tokio::spawn(async move {
        shutdown.cancelled().await;
        ending.graceful_shutdown(Some(DRAIN));
    });
    let mut server = axum_server::from_tcp(listener)
        .map_err(ServeError::Broke)?
        .acceptor(acceptor)
        .handle(handle);
    let builder = server.http_builder();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES);
    let ended = server
        .serve(router.into_make_service())
        .await
        .map_err(ServeError::Broke);
    waiting.abort();
    ended
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
