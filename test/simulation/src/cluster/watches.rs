//! The open watches of a run: their events wait until the scheduler delivers them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use http_body::Frame;
use http_body_util::{Either, StreamBody};
use olm_world::{Request, WatchRequest, line};
use serde_json::Value;
use tokio::time::Instant;
use tower::BoxError;

use super::{Cluster, OrEmpty as _};
use crate::net::AnswerBody;

/// A watch that a process holds open.
pub(crate) struct Watch {
    /// Number of the process.
    pub(crate) process: u32,
    request: Box<WatchRequest>,
    path: String,
    /// Sender of the response's body.
    body: mpsc::UnboundedSender<Result<Frame<Bytes>, BoxError>>,
    /// Resource version up to which events are in `queue` or delivered.
    position: u64,
    /// Events that are not delivered yet, as frames of the watch.
    queue: VecDeque<Value>,
    /// Time at which the server ends the watch.
    pub(crate) ends: Instant,
    /// Number of events that the watch keeps back while calls can be answered.
    pub(crate) lag: usize,
}

impl Cluster {
    /// Opens a watch of a process with this lag, and returns its answer with the first events.
    pub(super) fn open(
        &mut self,
        process: u32,
        watch: Box<WatchRequest>,
        request: &Request,
        lag: usize,
    ) -> http::Response<AnswerBody> {
        let (body, stream) = mpsc::unbounded();
        let seconds = parameter(&request.query, "timeoutSeconds").unwrap_or(300);
        let first = watch.start(self.server.world());
        let ended = first.is_err();
        let first = first.unwrap_or_else(|error| vec![error]);
        for frame in &first {
            // The process may have ended the watch.
            let _ = body.unbounded_send(Ok(Frame::data(Bytes::from(line(frame)))));
        }
        if ended {
            body.close_channel();
        }
        self.watches.push(Watch {
            process,
            position: watch.after,
            queue: VecDeque::new(),
            request: watch,
            path: request.path.clone(),
            body,
            ends: Instant::now() + Duration::from_secs(seconds),
            lag,
        });
        let response = http::Response::builder()
            .status(200)
            .header("content-type", "application/json");
        response
            .body(Either::Right(StreamBody::new(stream)))
            .unwrap_or_default_body()
    }

    /// Returns a hash of the open watches: their processes, counted from `oldest`, their paths and the number of events that they
    /// keep back.
    pub(crate) fn watching(&self, oldest: u32) -> u64 {
        let one = |watch: &Watch| {
            let mut hasher = DefaultHasher::new();
            let process = watch.process.saturating_sub(oldest);
            (process, &watch.path, watch.queue.len()).hash(&mut hasher);
            hasher.finish()
        };
        // The order of the watches differs between runs that are equal otherwise.
        self.watches.iter().map(one).fold(0, u64::wrapping_add)
    }

    /// Returns the number of events that the watch with index `at` has not delivered.
    pub(crate) fn behind(&self, at: usize) -> usize {
        self.watches.get(at).map_or(0, |watch| watch.queue.len())
    }

    /// Queues new events in the watches that select them.
    pub(crate) fn fan_out(&mut self) {
        let revision = self.revision();
        for watch in &mut self.watches {
            if watch.position < revision {
                watch
                    .queue
                    .extend(watch.request.frames(self.server.world().history(watch.position)));
                watch.position = revision;
            }
        }
    }

    /// Delivers the next event of the watch with index `at`, or all of its events.
    pub(crate) fn deliver(&mut self, at: usize, all: bool) {
        let Some(watch) = self.watches.get_mut(at) else {
            return;
        };
        let count = if all {
            watch.queue.len()
        } else {
            watch.queue.len().min(1)
        };
        let frames: Vec<Value> = watch.queue.drain(..count).collect();
        for frame in &frames {
            if self.bug.is_some_and(|bug| bug.hides(&watch.path, frame)) {
                continue;
            }
            // The process may have ended the watch.
            let _ = watch
                .body
                .unbounded_send(Ok(Frame::data(Bytes::from(line(frame)))));
        }
        let (process, path) = (watch.process, watch.path.clone());
        for frame in frames {
            let metadata = &frame["object"]["metadata"];
            self.log(|| {
                format!(
                    "p{process} watch {path} <- {} {} {}",
                    frame["type"], metadata["name"], metadata["resourceVersion"]
                )
            });
        }
    }

    /// Removes watches that their processes ended or whose time is up.
    pub(crate) fn end_watches(&mut self) {
        let now = Instant::now();
        self.watches
            .retain(|watch| !watch.body.is_closed() && watch.ends > now);
    }
}

/// Returns the number of a query parameter.
fn parameter(query: &str, name: &str) -> Option<u64> {
    let pair = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    pair?.parse().ok()
}
