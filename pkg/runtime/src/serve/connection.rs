//! One connection: protocol, requests, and shutdown.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use hyper::{
    Request,
    body::Incoming,
    server::conn::{http1, http2},
    service::{HttpService, service_fn},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    App, DRAIN, Limits,
    activity::{Activity, Decision, Protocol},
    body::{InFlightRequest, PacedBody},
    idle::IdleStream,
    stream::TrackedStream,
    table::{ConnectionTable, Peer},
};

/// Interval of pings to an HTTP/2 peer, and timeout of their answers.
const PING: Duration = Duration::from_secs(20);
/// Maximum size of a request head in bytes.
const MAX_HEAD: u32 = 64 * 1024;
/// Flow-control window for requests of one HTTP/2 connection, in bytes.
const WINDOW: u32 = 64 * 1024;
/// Bytes of one response that wait for an HTTP/2 client's window, beyond one frame.
const SEND_BUFFER: usize = 16 * 1024;
/// Time for an HTTP/2 client to close a connection after GOAWAY.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that a request waits for a permit if too many are in flight.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// State that the connections of one server share.
pub(super) struct Shared {
    pub(super) app: App,
    pub(super) limits: Limits,
    pub(super) table: Arc<ConnectionTable>,
    /// Permits for requests in flight.
    pub(super) permits: Arc<Semaphore>,
}

/// Serves one connection until it ends, or is ended.
pub(super) async fn serve<S>(
    stream: TrackedStream<S>,
    peer: Peer,
    protocol: Protocol,
    shared: &Arc<Shared>,
    activity: Arc<Activity>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    activity.opened(protocol);
    let limits = shared.limits;
    let service = {
        let (shared, activity) = (shared.clone(), activity.clone());
        service_fn(move |request: Request<Incoming>| handle(request, peer, shared.clone(), activity.clone()))
    };
    let supervisor = Supervisor {
        activity: &activity,
        limits: &limits,
        shutdown: &shutdown,
    };
    match protocol {
        Protocol::Http1 => {
            let mut stream = stream;
            loop {
                let mut idle = IdleStream::new(stream);
                let next = supervisor.run(Pin::new(&mut idle), Duration::ZERO).await;
                let Supervised::Completed(Some(next)) = next else {
                    return;
                };
                activity.buffered(true);
                let mut connection = Box::new(
                    http1::Builder::new()
                        .timer(TokioTimer::new())
                        // `Activity` enforces all timeouts.
                        .header_read_timeout(None)
                        .max_buf_size(MAX_HEAD as usize)
                        .serve_connection(TokioIo::new(next), service.clone()),
                );
                let served = supervisor.run(Pin::new(&mut *connection), Duration::ZERO);
                let Supervised::Released = served.await else {
                    return;
                };
                activity.buffered(false);
                let parts = connection.into_parts();
                stream = parts.io.into_inner();
                // A copy, because even without bytes the original holds hyper's buffer.
                stream.put_back(Bytes::copy_from_slice(&parts.read_buf));
            }
        }
        Protocol::Http2 => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING)
                .keep_alive_timeout(PING)
                .max_concurrent_streams(limits.http2_streams)
                .max_header_list_size(MAX_HEAD)
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_send_buf_size(SEND_BUFFER)
                .serve_connection(TokioIo::new(stream), service);
            supervisor.run(pin!(connection), CLOSE_TIMEOUT).await;
        }
    }
}

/// Handles one request once it has a permit.
async fn handle(
    mut request: Request<Incoming>,
    peer: Peer,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) -> Result<Response<PacedBody>, Infallible> {
    let in_flight = InFlightRequest::begin(&activity);
    let response = match shared.permit().await {
        Some(permit) => {
            in_flight.hold(permit);
            request.extensions_mut().insert(peer);
            shared.app.router.clone().oneshot(request.map(Body::new)).await?
        }
        None => shared.app.refusal.clone().oneshot(request.map(Body::new)).await?,
    };
    Ok(response.map(|body| PacedBody::new(body, in_flight)))
}

impl Shared {
    /// Waits for a permit for one more request. The slowest client is evicted in its favour.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        self.table.evict_slowest();
        timeout(PERMIT_TIMEOUT, self.permits.clone().acquire_owned())
            .await
            .ok()?
            .ok()
    }
}

/// A connection with a graceful shutdown.
pub(super) trait GracefulShutdown: Future {
    fn start_shutdown(self: Pin<&mut Self>);
}

impl<I, S> GracefulShutdown for http1::Connection<I, S>
where
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::ResBody: http_body::Body + 'static,
    <S::ResBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    fn start_shutdown(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, E> GracefulShutdown for http2::Connection<I, S, E>
where
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::ResBody: http_body::Body + 'static,
    <S::ResBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, S::ResBody>,
{
    fn start_shutdown(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Reason for the end of a connection.
enum EndReason<T> {
    /// The connection ended by itself.
    Completed(T),
    Decided(Decision),
    Shutdown,
    Evicted,
}

/// Result of driving a connection.
enum Supervised<T> {
    /// The connection ended by itself.
    Completed(T),
    /// The connection is idle and must release its buffers.
    Released,
    /// The connection was closed.
    Closed,
}

/// Drives the connection of one client.
struct Supervisor<'a> {
    activity: &'a Activity,
    limits: &'a Limits,
    shutdown: &'a CancellationToken,
}

impl Supervisor<'_> {
    /// Drives a connection until it ends, is idle, or must be closed. A graceful close has `close_timeout`.
    async fn run<C: GracefulShutdown>(
        &self,
        mut connection: Pin<&mut C>,
        close_timeout: Duration,
    ) -> Supervised<C::Output> {
        let Self { activity, limits, .. } = self;
        let mut alarm = pin!(sleep_until(activity.deadline(limits)));
        let mut evicted = pin!(activity.evicted());
        let mut stopping = pin!(self.shutdown.cancelled());
        let reason = poll_fn(|context| {
            if let Poll::Ready(output) = connection.as_mut().poll(context) {
                return Poll::Ready(EndReason::Completed(output));
            }
            let deadline = activity.deadline(limits);
            if deadline < alarm.deadline() {
                alarm.as_mut().reset(deadline);
            }
            while alarm.as_mut().poll(context).is_ready() {
                match activity.decide(limits) {
                    Decision::Keep(deadline) => alarm.as_mut().reset(deadline),
                    decision => return Poll::Ready(EndReason::Decided(decision)),
                }
            }
            if evicted.as_mut().poll(context).is_ready() {
                return Poll::Ready(EndReason::Evicted);
            }
            stopping.as_mut().poll(context).map(|()| EndReason::Shutdown)
        });
        let grace = match reason.await {
            EndReason::Completed(output) => return Supervised::Completed(output),
            EndReason::Decided(Decision::Release) => return Supervised::Released,
            EndReason::Decided(Decision::Abort) => return Supervised::Closed,
            EndReason::Decided(_) => close_timeout,
            EndReason::Shutdown => DRAIN,
            EndReason::Evicted => Duration::ZERO,
        };
        connection.as_mut().start_shutdown();
        // Without grace period, only an immediate write sends the shutdown.
        let _ = timeout(grace, connection).await;
        Supervised::Closed
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::{Router, routing::get};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::{Instant, sleep},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_response_holds_its_permit_and_is_paced_until_its_last_byte() {
        let router = Router::new().route("/", get(async || vec![b'x'; 32 * 1024]));
        let shared = Arc::new(Shared {
            app: router.into(),
            limits: Limits::DEFAULT,
            table: Arc::new(ConnectionTable::new(1, 1)),
            permits: Arc::new(Semaphore::new(1)),
        });
        let (mut client, stream) = duplex(1024);
        let task = {
            let (shared, activity) = (shared.clone(), Arc::new(Activity::new()));
            let stream = TrackedStream::new(stream, activity.clone());
            let peer = Peer::from(IpAddr::from([192, 0, 2, 1]));
            let shutdown = CancellationToken::new();
            async move { serve(stream, peer, Protocol::Http1, &shared, activity, shutdown).await }
        };
        let task = tokio::spawn(task);
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        client.write_all(request).await.unwrap();
        let began = Instant::now();
        // The client takes 3 KiB in each minute.
        while let Ok(1..) = client.read(&mut [0; 512]).await {
            sleep(Duration::from_secs(10)).await;
            let is_held = shared.permits.available_permits() == 0;
            assert!(is_held || task.is_finished(), "after {:?}", began.elapsed());
        }
        task.await.unwrap();
        assert_eq!(shared.permits.available_permits(), 1);
        assert!(began.elapsed() < 3 * Limits::DEFAULT.stall);
    }
}
