//! The body of an answer, made at the pace of its client and accounted to its connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::Activity;

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    number: u64,
    turn: Option<OwnedSemaphorePermit>,
}

impl UnderWay {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        Self {
            number: activity.begin(),
            activity: activity.clone(),
            turn: None,
        }
    }

    /// Holds a turn until the answer ends.
    pub(super) fn hold(&mut self, turn: OwnedSemaphorePermit) {
        self.turn = Some(turn);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.activity.end(self.number);
    }
}

/// An answer's body. A piece is not made before the client's connection took the one before it.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    under_way: UnderWay,
}

impl Answer {
    pub(super) fn new(body: Body, under_way: UnderWay) -> Self {
        Self { body, under_way }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let UnderWay { activity, number, .. } = &this.under_way;
        if !activity.asked(*number, context.waker()) {
            return Poll::Pending;
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            activity.took(*number, frame.data_ref().map_or(0, Bytes::len));
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
