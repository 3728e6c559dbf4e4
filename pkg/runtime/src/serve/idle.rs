//! An HTTP/1.1 connection between two requests, without the buffers of HTTP.
//!
//! hyper keeps 16 KiB of buffers for as long as it serves a connection, which is most of what an idle client costs. A connection that
//! has been idle for [`RELEASE`] therefore leaves hyper, and returns with the first byte of its next request.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{connection::GracefulShutdown, stream::TrackedStream};

/// Time without a request after which a connection releases its buffers. A client that sends requests in a row never waits so long.
pub(super) const RELEASE: Duration = Duration::from_secs(1);

/// Future of the next request of an idle connection: its stream with the first byte ahead; `None` if the connection has ended.
#[derive(Debug)]
pub(super) struct IdleStream<S> {
    /// `None` after completion.
    stream: Option<TrackedStream<S>>,
    closing: bool,
}

impl<S> IdleStream<S> {
    pub(super) fn new(stream: TrackedStream<S>) -> Self {
        Self {
            stream: Some(stream),
            closing: false,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for IdleStream<S> {
    type Output = Option<TrackedStream<S>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        if stream.has_bytes_ahead() {
            return Poll::Ready(this.stream.take());
        }
        if !this.closing {
            let mut byte = [0];
            let mut buffer = ReadBuf::new(&mut byte);
            let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
            if read.is_err() {
                return Poll::Ready(None);
            }
            if !buffer.filled().is_empty() {
                stream.put_back(Bytes::copy_from_slice(buffer.filled()));
                return Poll::Ready(this.stream.take());
            }
            this.closing = true;
        }
        // An error of the shutdown ends the connection as well.
        let _ = ready!(Pin::new(stream).poll_shutdown(context));
        Poll::Ready(None)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> GracefulShutdown for IdleStream<S> {
    fn start_shutdown(mut self: Pin<&mut Self>) {
        self.closing = true;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;
    use crate::serve::activity::Activity;

    fn connected() -> (DuplexStream, IdleStream<DuplexStream>) {
        let (client, server) = duplex(64);
        let stream = TrackedStream::new(server, Arc::new(Activity::new()));
        (client, IdleStream::new(stream))
    }

    #[tokio::test]
    async fn the_next_request_is_read_whole() {
        let (mut client, mut idle) = connected();
        let waiting = futures::poll!(&mut idle);
        assert!(waiting.is_pending());
        client.write_all(b"GET /").await.unwrap();
        let mut stream = idle.await.unwrap();
        let mut read = [0; 8];
        assert_eq!(
            stream.read(&mut read).await.unwrap(),
            5,
            "one read for the whole head"
        );
        assert_eq!(&read[..5], b"GET /");
    }

    #[tokio::test]
    async fn both_sides_can_end_the_connection() {
        let (client, idle) = connected();
        drop(client);
        assert!(idle.await.is_none());
        let (mut client, mut idle) = connected();
        assert!(futures::poll!(&mut idle).is_pending());
        Pin::new(&mut idle).start_shutdown();
        assert!(idle.await.is_none());
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    }
}
