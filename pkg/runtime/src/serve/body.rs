//! Response body that is produced at the client's pace and tracked by its connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::Activity;

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlightRequest {
    activity: Arc<Activity>,
    number: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl InFlightRequest {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        Self {
            number: activity.begin(),
            activity: activity.clone(),
            permit: None,
        }
    }

    /// Holds a permit until the response ends.
    pub(super) fn hold(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
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
    request: InFlightRequest,
}

impl PacedBody {
    pub(super) fn new(body: Body, request: InFlightRequest) -> Self {
        Self { body, request }
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
        let InFlightRequest { activity, number, .. } = &this.request;
        if !activity.frame_requested(*number, context.waker()) {
            return Poll::Pending;
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            activity.frame_accepted(*number, frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
