//! Interrupted transfers of layers resume.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Fixture, Host, Image, RecordedRequest, answer, cause};
use olm_image::{Error, RegistryError, Unpacked};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const MIB: usize = 1024 * 1024;

/// End of a response.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The response is complete.
    Complete,
    /// The connection closes after this number of bytes.
    Closed(usize),
    /// The connection is silent after this number of bytes.
    Silent(usize),
    /// The connection is silent before the response.
    Unanswered,
    /// The connection closes after the last byte of the blob, without the end of the response.
    Unended,
}

/// Host of one blob. Requests for bytes after the last one are refused.
struct Breaking {
    blob: Vec<u8>,
    /// Ranges are supported.
    ranges: bool,
    /// Returns the end of the response to a request, counted from 0.
    end: fn(usize) -> End,
    /// Offsets that were requested.
    asked: Mutex<Vec<Option<usize>>>,
}

impl Breaking {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let end = self.answer(&mut stream).await;
            if matches!(end, End::Silent(_) | End::Unanswered) {
                silent.push(stream);
                continue;
            }
            // An orderly shutdown: all bytes written arrive.
            let _ = stream.shutdown().await;
        }
    }

    async fn answer(&self, stream: &mut TcpStream) -> End {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
        let range = range.map(|range| range.trim_end_matches('-').parse::<usize>().unwrap());
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(range);
            asked.len() - 1
        };
        let size = self.blob.len();
        let from = range.filter(|_| self.ranges).unwrap_or_default();
        if from == size {
            let head = b"HTTP/1.1 416 Range Not Satisfiable\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head).await.unwrap();
            return End::Complete;
        }
        let status = match from {
            0 => "200 OK".to_owned(),
            from => format!(
                "206 Partial Content\r\ncontent-range: bytes {from}-{}/{size}",
                size - 1
            ),
        };
        let end = (self.end)(number);
        let (length, sent) = match end {
            End::Unanswered => return end,
            End::Complete => (size - from, size - from),
            End::Unended => (size - from + 1, size - from),
            End::Closed(bytes) | End::Silent(bytes) => (size - from, bytes),
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&self.blob[from..from + sent]).await.unwrap();
        end
    }
}

/// Pulls an image of one file from a registry that redirects to a breaking host; returns the requested offsets, too.
async fn pull(
    content: &[u8],
    ranges: bool,
    end: fn(usize) -> End,
) -> (Result<Unpacked, Error>, Vec<Option<usize>>, Fixture) {
    let image = Image::of(content);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let breaking = Arc::new(Breaking {
        blob: image.layer.clone(),
        ranges,
        end,
        asked: Mutex::default(),
    });
    tokio::spawn(breaking.clone().serve(listener));
    let host = Host::start(None, move |asked: &RecordedRequest| {
        if asked.path.contains(&image.layer_path()) {
            let target = format!("http://127.0.0.1:{port}/");
            return answer(307, &[("location", &target)], "");
        }
        image.serve(asked)
    });
    let name = host.address().to_string();
    let mut fixture = Fixture::plain(&[&name]);
    fixture.config.limits.read = Duration::from_secs(1);
    let pulled = fixture.pull(&format!("{name}/a/b:v1")).await;
    if let Ok(unpacked) = &pulled {
        assert!(std::fs::read(unpacked.root.join("a")).unwrap() == content);
    }
    let asked = breaking.asked.lock().unwrap().clone();
    (pulled, asked, fixture)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_transfer_resumes() {
    for ranges in [true, false] {
        let (pulled, asked, _fixture) = pull(&vec![7; 100_000], ranges, |number| match number {
            0 | 1 => End::Closed(10_000),
            _ => End::Complete,
        })
        .await;
        pulled.unwrap();
        let third = if ranges { 20_000 } else { 10_000 };
        assert_eq!(asked, [None, Some(10_000), Some(third)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_progresses_may_break_any_number_of_times() {
    let content = vec![7; 8 * MIB];
    let broken = |number| match number {
        0..8 => End::Closed(MIB),
        _ => End::Complete,
    };
    let (pulled, asked, _fixture) = pull(&content, true, broken).await;
    pulled.unwrap();
    assert_eq!(asked.len(), 9);

    // Without ranges the beginning is sent again, which is no progress.
    let (pulled, asked, _fixture) = pull(&content, false, |_| End::Closed(MIB)).await;
    let error = cause(pulled.unwrap_err());
    assert!(matches!(error, RegistryError::Transfer { .. }), "{error}");
    assert_eq!(asked.len(), 5);

    // Little progress does not count.
    let (pulled, asked, _fixture) = pull(&content, true, |_| End::Closed(1000)).await;
    assert!(pulled.is_err());
    assert_eq!(asked.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_transfer_resumes() {
    let (pulled, asked, _fixture) = pull(&vec![7; 100_000], true, |number| match number {
        0 => End::Silent(10_000),
        1 => End::Unanswered,
        _ => End::Complete,
    })
    .await;
    pulled.unwrap();
    assert_eq!(asked, [None, Some(10_000), Some(10_000)]);

    let (pulled, asked, _fixture) = pull(&vec![7; 100_000], true, |_| End::Unanswered).await;
    let error = cause(pulled.unwrap_err());
    assert!(matches!(error, RegistryError::Timeout { .. }), "{error}");
    assert_eq!(asked.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_with_its_last_byte_is_complete() {
    let (pulled, asked, _fixture) = pull(&vec![7; 100_000], true, |_| End::Unended).await;
    pulled.unwrap();
    assert_eq!(asked, [None]);
}
