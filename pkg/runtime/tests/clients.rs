//! Clients that hold connections without using them, seen over real sockets.
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
use hyper::client::conn::http2::{self, Connection, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use olm_runtime::{serve::Traffic, tls::Profile};
use rustls::crypto::ring;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

/// A busy machine may take so much longer than the server's limit of five seconds.
const PATIENCE: Duration = Duration::from_secs(12);

fn server(traffic: Traffic) -> Server {
    Server::start(
        Profile::default(),
        traffic,
        Router::new().route("/", get(async || "here")),
    )
}

/// Waits until the server closes the connection; returns what it sent until then, and how long that took.
async fn closed(mut stream: impl AsyncRead + Unpin) -> (Vec<u8>, Duration) {
    let (began, mut sent) = (Instant::now(), Vec::new());
    let read = timeout(PATIENCE, stream.read_to_end(&mut sent)).await;
    // A reset, or an end without TLS's farewell, closes a connection as well.
    assert!(read.is_ok(), "still open after {PATIENCE:?}");
    (sent, began.elapsed())
}

#[tokio::test]
async fn a_silent_client_is_closed_after_five_seconds() {
    let server = server(Traffic::default());
    let silent = [&[][..], &["http/1.1"], &["h2"]].map(|protocols| {
        let server = &server;
        async move {
            let stream = server
                .connect(ring::default_provider(), &rustls::version::TLS13, protocols)
                .await
                .unwrap();
            closed(stream).await.1
        }
    });
    let half_a_head = async {
        let mut stream = server
            .connect(ring::default_provider(), &rustls::version::TLS13, &[])
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

/// Opens a connection that speaks HTTP/1.1, and asks for a path.
async fn ask(server: &Server, path: &str) -> TlsStream<TcpStream> {
    let mut stream = server
        .connect(ring::default_provider(), &rustls::version::TLS13, &[])
        .await
        .unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn connections_without_requests_are_closed() {
    let server = server(Traffic {
        idle: Duration::from_millis(300),
        quiet: Duration::from_millis(300),
        ..Traffic::default()
    });
    let (read, took) = closed(ask(&server, "/").await).await;
    assert!(String::from_utf8_lossy(&read).ends_with("\r\n\r\nhere"));
    assert!(took > Duration::from_millis(200), "closed after {took:?}");

    let (mut send, connection) = over_http2(&server).await;
    let began = Instant::now();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(Body::empty()).unwrap();
    assert_eq!(send.send_request(request).await.unwrap().status(), 200);
    // With GOAWAY: the client sees no error.
    timeout(PATIENCE, connection).await.unwrap().unwrap().unwrap();
    assert!(began.elapsed() > Duration::from_millis(200));
}

/// Opens an HTTP/2 connection; the caller drives it.
async fn over_http2(
    server: &Server,
) -> (
    SendRequest<Body>,
    Connection<TokioIo<TlsStream<TcpStream>>, Body, TokioExecutor>,
) {
    let stream = server
        .connect(ring::default_provider(), &rustls::version::TLS13, &["h2"])
        .await
        .unwrap();
    http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap()
}

/// An answer without an end.
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
async fn a_client_that_takes_too_little_of_an_answer_is_cut_off() {
    let traffic = Traffic {
        stall: Duration::from_secs(1),
        ..Traffic::default()
    };
    let server = Server::start(Profile::default(), traffic, endless());
    let mut trickle = ask(&server, "/endless").await;
    let began = Instant::now();
    let cut = async {
        // It takes ten kilobytes a second.
        let mut bytes = [0; 1024];
        while began.elapsed() < Duration::from_secs(4) {
            trickle.read_exact(&mut bytes).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // What is still in the kernel's buffers comes, and then the end.
        timeout(PATIENCE, async {
            while trickle.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
        })
        .await
    };
    let mut fast = ask(&server, "/endless").await;
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
async fn a_stream_whose_window_stays_closed_is_cut_off() {
    let traffic = Traffic {
        stall: Duration::from_secs(1),
        ..Traffic::default()
    };
    let server = Server::start(Profile::default(), traffic, endless());
    let (mut send, connection) = over_http2(&server).await;
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/endless")
        .body(Body::empty())
        .unwrap();
    // The body is not read: its window stays closed, while pings are answered.
    let _answer = send.send_request(request).await.unwrap();
    let ended = timeout(PATIENCE, connection).await;
    assert!(ended.is_ok(), "a stream that stands still is still there");
}

#[tokio::test]
async fn the_idlest_and_then_the_slowest_give_way_to_a_new_client() {
    let traffic = Traffic {
        connections: 4,
        per_client: 4,
        ..Traffic::default()
    };
    let server = Server::start(Profile::default(), traffic, endless());
    let connect = async || {
        server
            .connect(ring::default_provider(), &rustls::version::TLS13, &[])
            .await
            .unwrap()
    };
    let (first, mut second) = (connect().await, connect().await);
    let slow = [ask(&server, "/endless").await, ask(&server, "/endless").await];
    // The first is idle longest; the others stay.
    let mut fifth = ask(&server, "/").await;
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

    // When all read slowly, one of them goes.
    let more = [ask(&server, "/endless").await, ask(&server, "/endless").await];
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut last = ask(&server, "/").await;
    last.read_exact(&mut here).await.unwrap();
    assert_eq!(&here, b"HTTP/1.1 200");
    drop((slow, more));
}

#[tokio::test]
async fn hundreds_of_silent_clients_keep_nobody_out() {
    let server = server(Traffic::default());
    let mut silent = Vec::new();
    for round in 0..20 {
        let some = (0..20).map(|_| server.connect(ring::default_provider(), &rustls::version::TLS13, &[]));
        silent.extend(futures::future::join_all(some).await.into_iter().flatten());
        let mut real = ask(&server, "/").await;
        let mut here = [0; 12];
        timeout(PATIENCE, real.read_exact(&mut here))
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
        open <= Traffic::DEFAULT.per_client,
        "{open} of {} are open",
        silent.len()
    );
}
