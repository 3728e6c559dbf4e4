//! Accept loop of a server, and the state that its connections share.

use std::{io, net::TcpListener, sync::Arc, time::Duration};

use socket2::SockRef;
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    App, DRAIN, Limits,
    activity::{Activity, Protocol},
    connection::{self, Shared},
    stream::TrackedStream,
    table::{ConnectionTable, Full, Peer, Slot},
};

/// Response bytes that the kernel buffers per connection until the client acknowledges them.
const SEND_BUFFER: usize = 128 * 1024;
/// Part of these bytes that the kernel buffers while the client's window is closed.
const MAX_UNSENT: u32 = 32 * 1024;
/// Request bytes that the kernel buffers per connection.
const RECEIVE_BUFFER: usize = 64 * 1024;
/// Bytes that TLS buffers per connection while the kernel accepts none, if there are few connections: a frame of a response
/// with its head, so that one system call sends both. The next frame is produced after this one was flushed, so its producer
/// notices a client that stalls.
const TLS_BUFFER: usize = 72 * 1024;
/// Bytes that TLS buffers for each further connection: memory must not grow with the number of clients that do not read.
const SMALL_TLS_BUFFER: usize = 32 * 1024;
/// Number of connections from which further ones have a small buffer.
const FEW_CONNECTIONS: usize = 64;
/// Pause after a failed accept, and while all connections are busy.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Minimum time between two log lines about refused connections.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// HTTP server: accepts connections and serves them within the limits.
pub(super) struct Server {
    name: String,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Server {
    pub(super) fn new(name: &str, app: App, tls: Option<TlsAcceptor>, limits: Limits) -> Self {
        Self {
            name: name.to_owned(),
            tls,
            shared: Arc::new(Shared {
                app,
                limits,
                table: Arc::new(ConnectionTable::new(limits.connections, limits.per_client)),
                permits: Arc::new(Semaphore::new(limits.requests)),
            }),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Accepts connections until `shutdown`, then waits for them to end, at most [`DRAIN`].
    pub(super) async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        limit_buffers(&listener)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let connections = TaskTracker::new();
        let mut logged = None;
        while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(server = self.name, %error, "connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let activity = Arc::new(Activity::new());
            let peer = Peer::from(address.ip());
            let slot = match self.reserve(peer, &activity).await {
                Ok(slot) => slot,
                Err(full) => {
                    if logged.is_none_or(|logged: Instant| logged.elapsed() > LOG_INTERVAL) {
                        logged = Some(Instant::now());
                        tracing::warn!(
                            server = self.name,
                            client = %address.ip(),
                            reason = ?full,
                            "connection refused: all connections are busy"
                        );
                    }
                    continue;
                }
            };
            let (tls, shared) = (self.tls.clone(), self.shared.clone());
            let shutdown = shutdown.clone();
            connections.spawn(serve(stream, peer, tls, shared, activity, slot, shutdown));
        }
        drop(listener);
        connections.close();
        // Connections stop by themselves; the timeout is for connections that do not.
        let _ = timeout(DRAIN + ACCEPT_PAUSE, connections.wait()).await;
        Ok(())
    }

    /// Reserves a slot for a new connection. If all connections are busy, the accept loop pauses, and further
    /// connections wait in the kernel.
    async fn reserve(&self, peer: Peer, activity: &Arc<Activity>) -> Result<Slot, Full> {
        let reserve = || self.shared.table.reserve(peer, activity);
        match reserve() {
            Err(Full::All) => {
                sleep(ACCEPT_PAUSE).await;
                reserve()
            }
            reserved => reserved,
        }
    }
}

/// Limits the kernel's buffers per connection. Accepted sockets inherit the limits.
fn limit_buffers(listener: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_tcp_notsent_lowat(MAX_UNSENT)?;
    // Head and body of a response are separate writes: with Nagle's algorithm the body would wait for the head's
    // acknowledgement, which peers delay by 40 ms.
    socket.set_tcp_nodelay(true)
}

async fn serve(
    stream: TcpStream,
    peer: Peer,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
    slot: Slot,
    shutdown: CancellationToken,
) {
    let _slot = slot;
    let Some(tls) = tls else {
        let stream = TrackedStream::new(stream, activity.clone());
        return connection::serve(stream, peer, Protocol::Http1, &shared, activity, shutdown).await;
    };
    // On the heap, like the stream below: on its way into the connection, each function keeps a place for what it passes on, which would
    // multiply the memory of every idle client.
    let handshake = Box::pin(timeout(shared.limits.head, tls.accept(stream)));
    let accepted = tokio::select! {
        accepted = handshake => accepted,
        () = activity.evicted() => return,
        () = shutdown.cancelled() => return,
    };
    let Ok(Ok(stream)) = accepted else {
        return;
    };
    let mut stream = Box::new(stream);
    let session = stream.get_mut().1;
    let few = shared.table.count() <= FEW_CONNECTIONS;
    session.set_buffer_limit(Some(if few { TLS_BUFFER } else { SMALL_TLS_BUFFER }));
    let protocol = match session.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let stream = TrackedStream::new(stream, activity.clone());
    connection::serve(stream, peer, protocol, &shared, activity, shutdown).await;
}
