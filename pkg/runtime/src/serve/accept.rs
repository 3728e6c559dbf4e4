//! Accepting connections, and the state that those of one server share.

use std::{io, net::TcpListener, sync::Arc, time::Duration};

use axum::Router;
use socket2::SockRef;
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    DRAIN, Traffic,
    activity::{Activity, Protocol},
    connection::{self, Shared},
    stream::Watched,
    table::{Full, Peer, Place, Table},
};

/// Bytes of answers that the kernel holds for one connection while the client has not acknowledged them.
const SEND_BUFFER: usize = 128 * 1024;
/// Of these, bytes that the kernel holds while the client's window is closed.
const UNSENT: u32 = 32 * 1024;
/// Bytes of requests that the kernel holds for one connection.
const RECEIVE_BUFFER: usize = 64 * 1024;
/// Bytes that TLS holds for one connection while the kernel takes none. Less than a piece of an answer: whoever makes
/// the pieces sees that they are not taken.
const TLS_BUFFER: usize = 32 * 1024;
/// Pause after the system refused to accept a connection, and while every connection is busy.
const PAUSE: Duration = Duration::from_millis(50);
/// Time between two log lines that say that connections are closed for others.
const QUIET: Duration = Duration::from_mins(1);

/// One server.
pub(super) struct Server {
    what: String,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Server {
    pub(super) fn new(what: &str, router: Router, tls: Option<TlsAcceptor>, traffic: Traffic) -> Self {
        Self {
            what: what.to_owned(),
            tls,
            shared: Arc::new(Shared {
                router,
                traffic,
                table: Arc::new(Table::new(traffic.connections, traffic.per_client)),
                answers: Arc::new(Semaphore::new(traffic.answers)),
            }),
        }
    }

    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Accepts connections until `shutdown`, then waits for them to end, at most [`DRAIN`].
    pub(super) async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        bound(&listener)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let connections = TaskTracker::new();
        let mut told = None;
        while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(server = self.what, %error, "cannot accept a connection");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let activity = Arc::new(Activity::new());
            let peer = Peer::from(address.ip());
            let place = match self.place(peer, &activity).await {
                Ok(place) => place,
                Err(full) => {
                    if told.is_none_or(|told: Instant| told.elapsed() > QUIET) {
                        told = Some(Instant::now());
                        tracing::warn!(
                            server = self.what,
                            client = %address.ip(),
                            reason = ?full,
                            "connection refused: every connection is busy"
                        );
                    }
                    continue;
                }
            };
            let (tls, shared) = (self.tls.clone(), self.shared.clone());
            let shutdown = shutdown.clone();
            connections.spawn(serve(stream, peer, tls, shared, activity, place, shutdown));
        }
        drop(listener);
        connections.close();
        // Connections end themselves; this is for those that are in the hands of nobody.
        let _ = timeout(DRAIN + PAUSE, connections.wait()).await;
        Ok(())
    }

    /// A place for a new connection. If all connections are busy, new ones wait a moment, later ones in the kernel.
    async fn place(&self, peer: Peer, activity: &Arc<Activity>) -> Result<Place, Full> {
        let enter = || self.shared.table.enter(peer, activity);
        match enter() {
            Err(Full::All) => {
                sleep(PAUSE).await;
                enter()
            }
            entered => entered,
        }
    }
}

/// Bounds what the kernel holds for a connection. Accepted sockets inherit it.
fn bound(listener: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    // An answer's head and body are written apart: without this, the body waits for the head's acknowledgement, which a
    // peer puts off by 40 ms.
    socket.set_tcp_nodelay(true)
}

async fn serve(
    stream: TcpStream,
    peer: Peer,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
    place: Place,
    shutdown: CancellationToken,
) {
    let _place = place;
    let Some(tls) = tls else {
        let stream = Watched::new(stream, activity.clone());
        return connection::serve(stream, peer, Protocol::Http1, &shared, activity, shutdown).await;
    };
    let handshake = timeout(shared.traffic.head, tls.accept(stream));
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        () = activity.evicted() => return,
        () = shutdown.cancelled() => return,
    };
    let Ok(Ok(mut stream)) = shaken else {
        return;
    };
    let session = stream.get_mut().1;
    session.set_buffer_limit(Some(TLS_BUFFER));
    let protocol = match session.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let stream = Watched::new(stream, activity.clone());
    connection::serve(stream, peer, protocol, &shared, activity, shutdown).await;
}
