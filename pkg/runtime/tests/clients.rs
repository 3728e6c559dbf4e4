//! Clients that hold connections without using them, over real sockets.
#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::Request,
    routing::get,
};
use common::Server;
use http_body_util::BodyExt as _;
use hyper::client::conn::http2::{self, Connection, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use olm_runtime::{serve::Limits, tls::Profile};
use rustls::crypto::aws_lc_rs;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

/// Timeout for the server's limit of five seconds on a busy machine.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(12);

fn server(limits: Limits) -> Server {
    Server::start(
        Profile::default(),
        limits,
        Router::new().route("/", get(async || "here")),
    )
}

/// Waits until the server closes the connection; returns the received bytes and the time until then.
async fn closed(mut stream: impl AsyncRead + Unpin) -> (Vec<u8>, Duration) {
    let (began, mut sent) = (Instant::now(), Vec::new());
    let read = timeout(CLOSE_TIMEOUT, stream.read_to_end(&mut sent)).await;
    // A reset or an end without TLS's close_notify closes a connection as well.
    assert!(read.is_ok(), "still open after {CLOSE_TIMEOUT:?}");
    (sent, began.elapsed())
}

#[tokio::test]
async fn a_silent_client_is_closed_after_five_seconds() {
    let server = server(Limits::default());
    let silent = [&[][..], &["http/1.1"], &["h2"]].map(|protocols| {
        let server = &server;
        async move {
            let stream = server
                .connect(aws_lc_rs::default_provider(), &rustls::version::TLS13, protocols)
                .await
                .unwrap();
            closed(stream).await.1
        }
    });
    let half_a_head = async {
        let mut stream = server
            .connect(aws_lc_rs::default_provider(), &rustls::version::TLS13, &[])
            .await
            .unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").await.unwrap();
        closed(stream).await.1
    };
    let no_handshake = async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        closed(stream).await.1
    };
    let (silent, half, none) = tokio::join!(futures::future::join_all(silent), half_a_head, no_handshake);
    for took in silent.into_iter().chain([half, none]) {
        assert!(took > Duration::from_secs(4), "closed after {took:?}");
    }
}

/// Opens an HTTP/1.1 connection and requests a path.
async fn request(server: &Server, path: &str) -> TlsStream<TcpStream> {
    let mut stream = server
        .connect(aws_lc_rs::default_provider(), &rustls::version::TLS13, &[])
        .await
        .unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn connections_without_requests_are_closed() {
    let server = server(Limits {
        idle: Duration::from_millis(300),
        http2_idle: Duration::from_millis(300),
        ..Limits::default()
    });
    let (read, took) = closed(request(&server, "/").await).await;
    assert!(String::from_utf8_lossy(&read).ends_with("\r\n\r\nhere"));
    assert!(took > Duration::from_millis(200), "closed after {took:?}");

    let (mut send, connection) = connect_http2(&server, None).await;
    let began = Instant::now();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(Body::empty()).unwrap();
    assert_eq!(send.send_request(request).await.unwrap().status(), 200);
    // The server sends GOAWAY: the client sees no error.
    timeout(CLOSE_TIMEOUT, connection)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(began.elapsed() > Duration::from_millis(200));
}

/// Reads one response of [`server`].
async fn response(stream: &mut TlsStream<TcpStream>) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\nhere") {
        let count = timeout(CLOSE_TIMEOUT, stream.read_buf(&mut read)).await;
        assert!(
            count.unwrap().unwrap() > 0,
            "ended after {}",
            String::from_utf8_lossy(&read)
        );
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn an_idle_connection_answers_again() {
    let server = server(Limits::default());
    let mut stream = request(&server, "/").await;
    assert!(response(&mut stream).await.starts_with("HTTP/1.1 200"));
    for pause in [1_500, 100, 2_500] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        // A head in two parts, the second of which comes when the connection has its buffers again.
        stream.write_all(b"G").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream
            .write_all(b"ET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .unwrap();
        assert!(
            response(&mut stream).await.starts_with("HTTP/1.1 200"),
            "after {pause} ms"
        );
    }
    // The connection ends while it is idle, with TLS's close_notify.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    stream.shutdown().await.unwrap();
    let (sent, _) = closed(stream).await;
    assert!(sent.is_empty());
}

#[tokio::test]
async fn half_a_head_behind_a_request_is_completed_or_closed() {
    let server = server(Limits::default());
    let head = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let (half, other_half) = head.split_at(7);
    let mut stream = request(&server, "/").await;
    response(&mut stream).await;
    stream.write_all(half).await.unwrap();
    for _ in 0..2 {
        // One record, so that the server reads the next half while it answers.
        stream.write_all(&[other_half, half].concat()).await.unwrap();
        response(&mut stream).await;
        // The connection releases its buffers meanwhile.
        tokio::time::sleep(Duration::from_millis(2_500)).await;
    }
    let (sent, took) = closed(stream).await;
    assert!(sent.is_empty(), "{}", String::from_utf8_lossy(&sent));
    assert!(took > Duration::from_secs(3), "closed after {took:?}");
}

/// Opens an HTTP/2 connection with this flow-control window for each response; the caller drives it.
async fn connect_http2(
    server: &Server,
    window: Option<u32>,
) -> (
    SendRequest<Body>,
    Connection<TokioIo<TlsStream<TcpStream>>, Body, TokioExecutor>,
) {
    let stream = server
        .connect(aws_lc_rs::default_provider(), &rustls::version::TLS13, &["h2"])
        .await
        .unwrap();
    http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap()
}

/// Serves an endless response.
fn endless() -> Router {
    let body = || {
        let piece = Bytes::from_static(&[b'x'; 16 * 1024]);
        Body::from_stream(futures::stream::repeat(Ok::<_, Infallible>(piece)))
    };
    Router::new()
        .route("/", get(async || "here"))
        .route("/endless", get(async move || body()))
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_disconnected() {
    let limits = Limits {
        stall: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(Profile::default(), limits, endless());
    let mut trickle = request(&server, "/endless").await;
    let began = Instant::now();
    let cut = async {
        // The client reads ten kilobytes per second.
        let mut bytes = [0; 1024];
        while began.elapsed() < Duration::from_secs(4) {
            trickle.read_exact(&mut bytes).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // The rest of the kernel's buffers arrives, then the end.
        timeout(CLOSE_TIMEOUT, async {
            while trickle.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
        })
        .await
    };
    let mut fast = request(&server, "/endless").await;
    let reads = async {
        let mut bytes = vec![0; 64 * 1024];
        while began.elapsed() < Duration::from_secs(4) {
            fast.read_exact(&mut bytes).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (cut, ()) = tokio::join!(cut, reads);
    assert!(cut.is_ok(), "a client that took 10 KiB/s is still there");
}

#[tokio::test]
async fn a_stream_whose_window_stays_closed_is_closed() {
    let limits = Limits {
        stall: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(Profile::default(), limits, endless());
    let (mut send, connection) = connect_http2(&server, None).await;
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/endless")
        .body(Body::empty())
        .unwrap();
    // The body is not read: its window stays closed, while pings are answered.
    let _answer = send.send_request(request).await.unwrap();
    let ended = timeout(CLOSE_TIMEOUT, connection).await;
    assert!(ended.is_ok(), "a stream that stands still is still there");
}

/// Serves a response that is in memory as a whole.
fn buffered(bytes: usize) -> Router {
    let body = Bytes::from(vec![b'x'; bytes]);
    Router::new().route("/", get(async move || Body::from(body)))
}

#[tokio::test]
async fn a_client_that_reads_a_buffered_response_too_slowly_is_disconnected() {
    const SIZE: usize = 64 * 1024 * 1024;
    let limits = Limits {
        stall: Duration::from_secs(1),
        // More than the kernel buffers for the client.
        min_bytes: SIZE as u64 / 2,
        ..Limits::default()
    };
    let server = Server::start(Profile::default(), limits, buffered(SIZE));
    let mut trickle = request(&server, "/").await;
    let (began, mut received) = (Instant::now(), 0);
    let cut = timeout(CLOSE_TIMEOUT, async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = trickle.read(&mut bytes).await {
            received += read;
            if began.elapsed() < Duration::from_secs(4) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    assert!(cut.await.is_ok(), "still open after {CLOSE_TIMEOUT:?}");
    assert!(received < SIZE, "a client that took 1 MiB/s got everything");
}

#[tokio::test]
async fn a_buffered_response_whose_window_stays_closed_is_closed() {
    let limits = Limits {
        stall: Duration::from_secs(1),
        ..Limits::default()
    };
    for (bytes, window) in [(8 * 1024 * 1024, None), (32 * 1024, Some(1024))] {
        let server = Server::start(Profile::default(), limits, buffered(bytes));
        let (mut send, connection) = connect_http2(&server, window).await;
        let connection = tokio::spawn(connection);
        let request = Request::get("https://localhost/").body(Body::empty()).unwrap();
        let _answer = send.send_request(request).await.unwrap();
        let ended = timeout(CLOSE_TIMEOUT, connection).await;
        assert!(ended.is_ok(), "a response of {bytes} bytes is still there");
    }
}

#[tokio::test]
async fn a_slow_client_gets_the_whole_of_a_buffered_response() {
    const SIZE: usize = 1024 * 1024;
    let limits = Limits {
        http2_idle: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = Server::start(Profile::default(), limits, buffered(SIZE));
    let (mut send, connection) = connect_http2(&server, Some(64 * 1024)).await;
    tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(Body::empty()).unwrap();
    let mut body = send.send_request(request).await.unwrap().into_body();
    let (began, mut received) = (Instant::now(), 0);
    while let Some(frame) = body.frame().await {
        received += frame.unwrap().into_data().unwrap().len();
        // Longer than an idle connection stays open, and has to close after GOAWAY.
        let due = Duration::from_millis(received as u64 * 7_000 / SIZE as u64);
        tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
    }
    assert_eq!(received, SIZE);
}

#[tokio::test]
async fn idle_then_slow_connections_are_evicted_for_a_new_client() {
    let limits = Limits {
        connections: 4,
        per_client: 4,
        ..Limits::default()
    };
    let server = Server::start(Profile::default(), limits, endless());
    let connect = async || {
        server
            .connect(aws_lc_rs::default_provider(), &rustls::version::TLS13, &[])
            .await
            .unwrap()
    };
    let (first, mut second) = (connect().await, connect().await);
    let slow = [
        request(&server, "/endless").await,
        request(&server, "/endless").await,
    ];
    // The first connection is idle longest; the others stay.
    let mut fifth = request(&server, "/").await;
    let mut here = [0; 12];
    fifth.read_exact(&mut here).await.unwrap();
    assert_eq!(&here, b"HTTP/1.1 200");
    let (sent, took) = closed(first).await;
    assert!(sent.is_empty() && took < Duration::from_secs(3), "{took:?}");
    second
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    second.read_exact(&mut here).await.unwrap();
    assert_eq!(&here, b"HTTP/1.1 200");

    // If all clients read slowly, one of them is disconnected.
    let more = [
        request(&server, "/endless").await,
        request(&server, "/endless").await,
    ];
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut last = request(&server, "/").await;
    last.read_exact(&mut here).await.unwrap();
    assert_eq!(&here, b"HTTP/1.1 200");
    drop((slow, more));
}

#[tokio::test]
async fn hundreds_of_silent_clients_lock_nobody_out() {
    let server = server(Limits::default());
    let mut silent = Vec::new();
    for round in 0..20 {
        let some =
            (0..20).map(|_| server.connect(aws_lc_rs::default_provider(), &rustls::version::TLS13, &[]));
        silent.extend(futures::future::join_all(some).await.into_iter().flatten());
        let mut real = request(&server, "/").await;
        let mut here = [0; 12];
        timeout(CLOSE_TIMEOUT, real.read_exact(&mut here))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&here, b"HTTP/1.1 200", "in round {round}");
    }
    let mut open = 0;
    for stream in &mut silent {
        let mut byte = [0];
        if timeout(Duration::from_millis(5), stream.read(&mut byte))
            .await
            .is_err()
        {
            open += 1;
        }
    }
    assert!(
        open <= Limits::DEFAULT.per_client,
        "{open} of {} are open",
        silent.len()
    );
}
