//! A connection's stream that reports its traffic.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;

/// A stream that reports its traffic to the connection's [`Activity`].
#[derive(Debug)]
pub(super) struct TrackedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Bytes that were read already and are read again first.
    ahead: Bytes,
}

impl<S> TrackedStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            activity,
            ahead: Bytes::new(),
        }
    }

    /// Puts bytes back that were read, so that the next read returns them first.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// Returns true if bytes that were put back are to be read.
    pub(super) fn has_bytes_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(_)) => self.activity.wrote(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.blocked(),
        }
        written
    }

    fn flushed(&self, flushed: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        match &flushed {
            Poll::Ready(Ok(())) => self.activity.sent(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.blocked(),
        }
        flushed
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead.split_to(length));
            // Part of the next request, whose time limit starts now, if it came with the request before.
            self.activity.received();
            if buffer.remaining() > 0 {
                // In one read with what follows, because hyper doubles its buffer of 8 KiB for a second read of the same head. The next
                // read meets the end of the stream again, and after an error that is the end as well.
                let _ = Pin::new(&mut self.stream).poll_read(context, buffer);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.flushed(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.flushed(ended)
    }
}
