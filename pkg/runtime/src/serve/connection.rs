//! One connection: its protocol, its requests, and its end.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
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
    DRAIN, Traffic,
    activity::{Activity, Protocol, Verdict},
    body::{Answer, UnderWay},
    stream::Watched,
    table::{Peer, Table},
};

/// Interval of pings to an HTTP/2 peer, and time that the peer has to answer one.
const PING: Duration = Duration::from_secs(20);
/// Largest head of a request, in bytes.
const HEAD_BYTES: u32 = 64 * 1024;
/// Bytes of requests that one HTTP/2 connection may have on their way.
const WINDOW: u32 = 64 * 1024;
/// Bytes of one answer that wait for an HTTP/2 client's window, beyond one piece.
const SEND_BUFFER: usize = 16 * 1024;
/// Time that an HTTP/2 client has to close a connection after it was told to.
const FAREWELL: Duration = Duration::from_secs(5);
/// Time that a request waits for its turn when too many are under way.
const TURN: Duration = Duration::from_secs(1);

/// State that the connections of one server share.
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) traffic: Traffic,
    pub(super) table: Arc<Table>,
    /// Requests that may still come under way.
    pub(super) answers: Arc<Semaphore>,
}

/// Serves one connection until it ends, or is ended.
pub(super) async fn serve<S>(
    stream: Watched<S>,
    peer: Peer,
    protocol: Protocol,
    shared: &Arc<Shared>,
    activity: Arc<Activity>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    activity.opened(protocol);
    let traffic = shared.traffic;
    let io = TokioIo::new(stream);
    let service = {
        let (shared, activity) = (shared.clone(), activity.clone());
        service_fn(move |request: Request<Incoming>| answer(request, peer, shared.clone(), activity.clone()))
    };
    match protocol {
        Protocol::Http1 => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                // `Activity` knows all of these times.
                .header_read_timeout(None)
                .max_buf_size(HEAD_BYTES as usize)
                .serve_connection(io, service);
            supervise(connection, &activity, &traffic, &shutdown, Duration::ZERO).await;
        }
        Protocol::Http2 => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING)
                .keep_alive_timeout(PING)
                .max_concurrent_streams(traffic.streams)
                .max_header_list_size(HEAD_BYTES)
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_send_buf_size(SEND_BUFFER)
                .serve_connection(io, service);
            supervise(connection, &activity, &traffic, &shutdown, FAREWELL).await;
        }
    }
}

/// Answers one request, when it is its turn.
async fn answer(
    mut request: Request<Incoming>,
    peer: Peer,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) -> Result<Response<Answer>, Infallible> {
    let mut under_way = UnderWay::begin(&activity);
    let response = match shared.turn().await {
        Some(turn) => {
            under_way.hold(turn);
            request.extensions_mut().insert(peer);
            shared.router.clone().oneshot(request.map(Body::new)).await?
        }
        None => busy(),
    };
    Ok(response.map(|body| Answer::new(body, under_way)))
}

/// The answer to a request that does not get its turn.
fn busy() -> Response {
    let retry = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
    (
        StatusCode::SERVICE_UNAVAILABLE,
        retry,
        "Too many requests under way\n",
    )
        .into_response()
}

impl Shared {
    /// Waits for the right to answer one request more. Slow clients give way.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = self.answers.clone().try_acquire_owned() {
            return Some(turn);
        }
        self.table.relieve();
        timeout(TURN, self.answers.clone().acquire_owned())
            .await
            .ok()?
            .ok()
    }
}

/// A connection that can be ended as its protocol has it.
trait Leave: Future {
    fn leave(self: Pin<&mut Self>);
}

impl<I, S> Leave for http1::Connection<I, S>
where
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::ResBody: http_body::Body + 'static,
    <S::ResBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    fn leave(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, E> Leave for http2::Connection<I, S, E>
where
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::ResBody: http_body::Body + 'static,
    <S::ResBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, S::ResBody>,
{
    fn leave(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Why a connection is ended from this side.
enum End {
    /// It ended by itself.
    Itself,
    Judged(Verdict),
    Shutdown,
    Evicted,
}

/// Drives a connection until it ends, or until its time is up. A connection that leaves has `farewell` to do so.
async fn supervise(
    connection: impl Leave,
    activity: &Activity,
    traffic: &Traffic,
    shutdown: &CancellationToken,
    farewell: Duration,
) {
    let mut connection = pin!(connection);
    let mut alarm = pin!(sleep_until(activity.due(traffic)));
    let mut evicted = pin!(activity.evicted());
    let mut stopping = pin!(shutdown.cancelled());
    let end = poll_fn(|context| {
        if connection.as_mut().poll(context).is_ready() {
            return Poll::Ready(End::Itself);
        }
        let due = activity.due(traffic);
        if due < alarm.deadline() {
            alarm.as_mut().reset(due);
        }
        while alarm.as_mut().poll(context).is_ready() {
            match activity.judge(traffic) {
                Verdict::Keep(due) => alarm.as_mut().reset(due),
                verdict => return Poll::Ready(End::Judged(verdict)),
            }
        }
        if evicted.as_mut().poll(context).is_ready() {
            return Poll::Ready(End::Evicted);
        }
        stopping.as_mut().poll(context).map(|()| End::Shutdown)
    });
    let grace = match end.await {
        End::Itself | End::Judged(Verdict::Cut) => return,
        End::Judged(_) => farewell,
        End::Shutdown => DRAIN,
        End::Evicted => Duration::ZERO,
    };
    connection.as_mut().leave();
    // Without grace, the farewell is sent if that can be done at once.
    let _ = timeout(grace, connection).await;
}
