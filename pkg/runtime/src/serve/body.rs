//! Response body that is produced at the client's pace and tracked by its connection.
//!
//! hyper drops a body when it accepted the last frame, of whatever size. Frames are therefore small, and [`Activity`] tracks a
//! response until its last frame is sent.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::{Activity, Protocol};

/// Maximum size of a frame in bytes.
const MAX_FRAME: usize = 64 * 1024;
/// Bytes at the end of the data that are a frame of their own over HTTP/2, where hyper accepts a frame as soon as the client's
/// window has room for its first byte: the window then has room for everything before these bytes. Less than the 256 bytes from
/// which h2 writes a frame separately.
const HTTP2_TAIL: usize = 128;

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlightRequest {
    activity: Arc<Activity>,
    number: u64,
}

impl InFlightRequest {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        Self {
            number: activity.begin(),
            activity: activity.clone(),
        }
    }

    /// Holds a permit until the response is sent.
    pub(super) fn hold(&self, permit: OwnedSemaphorePermit) {
        self.activity.hold(self.number, permit);
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.activity.end(self.number);
    }
}

/// Response body. The next frame is produced after the connection accepted the previous one.
#[derive(Debug)]
pub(super) struct PacedBody {
    body: Body,
    /// Data of the body that was not passed on yet.
    rest: Bytes,
    /// Bytes at the end of the data that are a frame of their own.
    tail: usize,
    request: InFlightRequest,
}

impl PacedBody {
    pub(super) fn new(body: Body, request: InFlightRequest) -> Self {
        let tail = match request.activity.protocol() {
            Protocol::Http1 => 0,
            Protocol::Http2 => HTTP2_TAIL,
        };
        Self {
            body,
            rest: Bytes::new(),
            tail,
            request,
        }
    }

    /// Returns the next piece of the data, empty if there is none.
    fn next_piece(&mut self) -> Bytes {
        match self.rest.len() {
            length if length > MAX_FRAME => self.rest.split_to(MAX_FRAME),
            length if length > self.tail => self.rest.split_to(length - self.tail),
            // A copy, because a client that does not read must not keep the whole data in memory.
            _ => Bytes::copy_from_slice(&mem::take(&mut self.rest)),
        }
    }
}

impl http_body::Body for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let number = this.request.number;
        if !this.request.activity.frame_requested(number, context.waker()) {
            return Poll::Pending;
        }
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => {
                        this.request.activity.frame_accepted(number, 0);
                        return Poll::Ready(Some(Ok(trailers)));
                    }
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = this.next_piece();
        this.request.activity.frame_accepted(number, piece.len());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint() + SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use futures::task::noop_waker_ref;
    use http_body::Body as _;

    use super::*;

    /// Returns the frames of a response of `data`.
    fn frames(protocol: Protocol, data: &Bytes) -> Vec<Bytes> {
        let activity = Arc::new(Activity::new());
        activity.opened(protocol);
        let mut body = PacedBody::new(Body::from(data.clone()), InFlightRequest::begin(&activity));
        let mut frames: Vec<Bytes> = Vec::new();
        while !body.is_end_stream() {
            let left = data.len() - frames.iter().map(Bytes::len).sum::<usize>();
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            let mut context = Context::from_waker(noop_waker_ref());
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) else {
                panic!("no frame with {left} bytes left");
            };
            frames.push(frame.into_data().unwrap());
            activity.sent();
        }
        assert_eq!(frames.concat(), data.as_ref());
        frames
    }

    #[test]
    fn data_is_passed_on_in_small_frames_without_copies() {
        let data = Bytes::from(vec![b'x'; 2 * MAX_FRAME + 1000]);
        let sizes = |protocol, data| frames(protocol, data).iter().map(Bytes::len).collect::<Vec<_>>();
        assert_eq!(sizes(Protocol::Http1, &data), [MAX_FRAME, MAX_FRAME, 1000]);
        let parts = frames(Protocol::Http1, &data);
        assert_eq!(parts[2].as_ptr(), data[2 * MAX_FRAME..].as_ptr());
        let last = 1000 - HTTP2_TAIL;
        let expected = [MAX_FRAME, MAX_FRAME, last, HTTP2_TAIL];
        assert_eq!(sizes(Protocol::Http2, &data), expected);
        assert_eq!(sizes(Protocol::Http2, &data.slice(..HTTP2_TAIL)), [HTTP2_TAIL]);
    }

    #[test]
    fn the_last_frame_over_http2_keeps_no_data_in_memory() {
        let data = Bytes::from(vec![b'x'; MAX_FRAME]);
        let mut parts = frames(Protocol::Http2, &data);
        let last = parts.pop().unwrap();
        drop(parts);
        assert!(data.is_unique(), "{} bytes share them", last.len());
    }
}
