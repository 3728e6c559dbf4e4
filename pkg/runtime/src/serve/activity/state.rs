//! State of one connection, without a clock: the caller passes the time of each event, and gets deadlines.

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use crate::serve::{Limits, idle::RELEASE};

/// Timeout without a deadline.
const NO_DEADLINE: Duration = Duration::from_hours(24);

/// HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Protocol {
    Http1,
    Http2,
}

/// Decision about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Decision {
    /// The connection stays open, with the next deadline.
    Keep(Instant),
    /// The connection stays open without the buffers of HTTP.
    Release,
    /// The connection is closed gracefully.
    Close,
    /// The connection is dropped.
    Abort,
}

/// Eviction order of connections when a new one needs a slot; the smallest is closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::serve) enum EvictionOrder {
    /// No request for a second or more, since this time.
    Idle(Instant),
    /// The client reads this many bytes per second, and the server waits for the client.
    Slow(u64),
    /// No request for less than a second, since this time: the client may be about to send one.
    Fresh(Instant),
}

/// Progress of one response, to find clients that read too slowly.
#[derive(Debug)]
pub(super) struct ResponseProgress {
    began: Instant,
    /// Bytes that the connection accepted since the beginning.
    bytes: u64,
    /// Time since when the server waits for the client: from a frame that the connection accepted until it asks for the next one.
    /// `None` while the server produces a frame.
    waiting: Option<Instant>,
    /// Sum of the waits for the client within the current window of [`Limits::stall`], without the one in progress.
    waited: Duration,
    /// Bytes that the connection accepted within the current window.
    accepted: u64,
    /// True if all frames were accepted, and are being sent.
    ended: bool,
    /// Permit that the response holds until it is sent.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

impl ResponseProgress {
    /// Returns the time left in the window if the client keeps the server waiting.
    fn left(&self, now: Instant, stall: Duration) -> Duration {
        let waiting = self.waiting.map_or(Duration::ZERO, |since| now - since);
        stall.saturating_sub(self.waited + waiting)
    }
}

/// State of one connection.
#[derive(Debug)]
pub(super) struct State {
    pub(super) protocol: Protocol,
    /// True while the connection has the buffers of HTTP.
    pub(super) buffered: bool,
    /// Time since when no request is in flight.
    pub(super) idle: Instant,
    /// Time of the first bytes since then.
    received: Option<Instant>,
    /// Number of requests so far, which is also the number of the last response.
    requests: u64,
    /// Time since when the socket accepts no bytes, because the kernel's buffer is full.
    blocked: Option<Instant>,
    /// Responses in progress, by number.
    pub(super) responses: BTreeMap<u64, ResponseProgress>,
    /// True from a frame that the connection accepted until the kernel has all bytes, whether or not the socket blocks.
    pub(super) unsent: bool,
}

impl State {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            protocol: Protocol::Http1,
            buffered: false,
            idle: now,
            received: None,
            requests: 0,
            blocked: None,
            responses: BTreeMap::new(),
            unsent: false,
        }
    }

    pub(super) fn received(&mut self, now: Instant) {
        if self.responses.is_empty() {
            self.received.get_or_insert(now);
        }
    }

    pub(super) fn blocked(&mut self, now: Instant) {
        self.blocked.get_or_insert(now);
    }

    pub(super) fn wrote(&mut self, now: Instant) {
        if self.blocked.take().is_some() && self.responses.is_empty() {
            self.idle = now;
        }
    }

    pub(super) fn begin(&mut self, now: Instant) -> u64 {
        self.requests += 1;
        self.received = None;
        let response = ResponseProgress {
            began: now,
            bytes: 0,
            waiting: None,
            waited: Duration::ZERO,
            accepted: 0,
            ended: false,
            permit: None,
        };
        self.responses.insert(self.requests, response);
        self.requests
    }

    /// The connection asks for the next frame of a response.
    pub(super) fn frame_requested(&mut self, response: u64, now: Instant) {
        if let Some(response) = self.responses.get_mut(&response)
            && let Some(since) = response.waiting.take()
        {
            response.waited += now - since;
        }
    }

    /// The connection waits for its client before it accepts the next frame.
    pub(super) fn wait_for_client(&mut self, response: u64, bytes: u64, now: Instant) {
        if let Some(response) = self.responses.get_mut(&response) {
            response.bytes += bytes;
            response.accepted += bytes;
            response.waiting.get_or_insert(now);
        }
    }

    /// The connection accepted all frames of a response, or dropped it. The response remains while the client keeps its last
    /// frame from being sent.
    pub(super) fn end(&mut self, response: u64, now: Instant) {
        let sending = match self.protocol {
            Protocol::Http1 => self.unsent,
            // Responses share the connection, so `unsent` may be another one's.
            Protocol::Http2 => self.blocked.is_some(),
        };
        if !sending {
            self.remove(now, |number, _| number == response);
        } else if let Some(response) = self.responses.get_mut(&response) {
            response.ended = true;
            response.waiting.get_or_insert(now);
        }
    }

    /// The kernel has all bytes.
    pub(super) fn sent(&mut self, now: Instant) {
        self.wrote(now);
        self.unsent = false;
        self.remove(now, |_, response| response.ended);
    }

    fn remove(&mut self, now: Instant, chosen: impl Fn(u64, &ResponseProgress) -> bool) {
        let before = self.responses.len();
        self.responses
            .retain(|number, response| !chosen(*number, response));
        if self.responses.is_empty() && before > 0 {
            self.idle = now;
        }
    }

    /// Decides if the connection stays open.
    pub(super) fn decide(&mut self, now: Instant, limits: &Limits) -> Decision {
        for response in self.responses.values_mut() {
            if response.left(now, limits.stall).is_zero() {
                if response.accepted < limits.min_bytes {
                    return Decision::Abort;
                }
                response.waiting = response.waiting.map(|_| now);
                (response.waited, response.accepted) = (Duration::ZERO, 0);
            }
        }
        let (deadline, decision) = self.deadline(now, limits);
        if deadline > now {
            Decision::Keep(deadline)
        } else {
            decision
        }
    }

    /// Returns the next deadline and its consequence if no event precedes it.
    pub(super) fn deadline(&self, now: Instant, limits: &Limits) -> (Instant, Decision) {
        if self.blocked.is_some() || !self.responses.is_empty() {
            let blocked = self.blocked.map(|since| since + limits.stall);
            let waiting = self
                .responses
                .values()
                .filter(|response| response.waiting.is_some());
            let slow = waiting
                .map(|response| now + response.left(now, limits.stall))
                .min();
            let deadline = blocked.into_iter().chain(slow).min();
            return (deadline.unwrap_or(now + NO_DEADLINE), Decision::Abort);
        }
        match (self.protocol, self.requests, self.received) {
            (_, 0, None) => (self.idle + limits.head, Decision::Close),
            (Protocol::Http1, 0, Some(_)) => (self.idle + limits.head, Decision::Abort),
            (Protocol::Http1, _, Some(received)) => (received + limits.head, Decision::Abort),
            (Protocol::Http1, _, None) if self.buffered && RELEASE < limits.idle => {
                (self.idle + RELEASE, Decision::Release)
            }
            (Protocol::Http1, _, None) => (self.idle + limits.idle, Decision::Close),
            (Protocol::Http2, _, _) => (self.idle + limits.http2_idle, Decision::Close),
        }
    }

    /// Returns the eviction order of the connection; `None` if it must not be evicted.
    pub(super) fn eviction_order(&self, now: Instant) -> Option<EvictionOrder> {
        /// Shorter waits do not distinguish idle or slow clients from active ones.
        const GRACE: Duration = Duration::from_secs(1);
        if self.responses.is_empty() && self.blocked.is_none() {
            let fresh = now - self.idle < GRACE;
            return Some(if fresh {
                EvictionOrder::Fresh(self.idle)
            } else {
                EvictionOrder::Idle(self.idle)
            });
        }
        if self.responses.is_empty() {
            return self
                .blocked
                .filter(|since| now - *since >= GRACE)
                .map(|_| EvictionOrder::Slow(0));
        }
        let rate = |response: &ResponseProgress| {
            let age = now - response.began;
            let slow = age >= GRACE && response.waiting.is_some();
            slow.then(|| response.bytes / age.as_secs().max(1))
        };
        // One response in progress is enough to keep the connection.
        let rates: Option<Vec<u64>> = self.responses.values().map(rate).collect();
        rates?.into_iter().max().map(EvictionOrder::Slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits::DEFAULT;

    /// A connection with a manual clock.
    struct Clock {
        state: State,
        now: Instant,
    }

    impl Clock {
        fn new(protocol: Protocol) -> Self {
            let now = Instant::now();
            let state = State {
                protocol,
                ..State::new(now)
            };
            Self { state, now }
        }

        fn pass(&mut self, seconds: u64) -> Instant {
            self.now += Duration::from_secs(seconds);
            self.now
        }

        fn decision(&mut self) -> Decision {
            self.state.decide(self.now, &LIMITS)
        }

        fn stays(&mut self) -> bool {
            matches!(self.decision(), Decision::Keep(deadline) if deadline > self.now)
        }
    }

    #[test]
    fn a_request_is_due_five_seconds_after_the_handshake() {
        let mut silent = Clock::new(Protocol::Http1);
        silent.pass(4);
        assert!(silent.stays());
        silent.pass(1);
        assert_eq!(silent.decision(), Decision::Close);
        let mut half = Clock::new(Protocol::Http1);
        let now = half.pass(4);
        half.state.received(now);
        half.pass(1);
        assert_eq!(half.decision(), Decision::Abort, "half a head");
        let mut preface = Clock::new(Protocol::Http2);
        preface.pass(5);
        assert_eq!(preface.decision(), Decision::Close);
    }

    #[test]
    fn idle_connections_leave() {
        for (protocol, seconds) in [(Protocol::Http1, 30), (Protocol::Http2, 60)] {
            let mut clock = Clock::new(protocol);
            let response = clock.state.begin(clock.now);
            let now = clock.pass(1000);
            assert!(clock.stays(), "the response takes its time");
            clock.state.end(response, now);
            clock.pass(seconds - 1);
            assert!(clock.stays());
            clock.pass(1);
            assert_eq!(clock.decision(), Decision::Close);
        }
    }

    #[test]
    fn buffers_are_released_after_a_second_between_two_requests() {
        let mut clock = Clock::new(Protocol::Http1);
        clock.state.buffered = true;
        let response = clock.state.begin(clock.now);
        let now = clock.pass(5);
        assert!(clock.stays(), "a response is under way");
        clock.state.end(response, now);
        assert_eq!(clock.decision(), Decision::Keep(now + RELEASE));
        clock.pass(1);
        assert_eq!(clock.decision(), Decision::Release);
        clock.state.buffered = false;
        assert_eq!(clock.decision(), Decision::Keep(now + LIMITS.idle));
        clock.state.buffered = true;
        clock.state.received(clock.now);
        assert!(clock.stays(), "half a head needs them");
    }

    #[test]
    fn only_time_in_which_the_server_waits_counts() {
        let mut clock = Clock::new(Protocol::Http1);
        let response = clock.state.begin(clock.now);
        for _ in 0..100 {
            // The client is fast; producing the response takes ten minutes.
            let now = clock.pass(600);
            clock.state.wait_for_client(response, 1024, now);
            let now = clock.pass(1);
            clock.state.frame_requested(response, now);
            if clock.state.responses[&response].waited < LIMITS.stall {
                assert!(clock.stays());
            } else {
                break;
            }
        }
        assert_eq!(
            clock.decision(),
            Decision::Abort,
            "60 KiB in 60 seconds of waiting"
        );
    }

    #[test]
    fn a_client_that_takes_the_least_stays() {
        let mut clock = Clock::new(Protocol::Http2);
        let response = clock.state.begin(clock.now);
        for _ in 0..100 {
            clock
                .state
                .wait_for_client(response, LIMITS.min_bytes / 4, clock.now);
            let now = clock.pass(15);
            assert!(clock.stays());
            clock.state.frame_requested(response, now);
        }
        clock.state.wait_for_client(response, LIMITS.min_bytes, clock.now);
        clock.pass(59);
        assert!(clock.stays());
        // Regardless of earlier progress, two windows without a byte are too slow.
        clock.pass(60);
        clock.decision();
        clock.pass(60);
        assert_eq!(clock.decision(), Decision::Abort);
    }

    #[test]
    fn a_response_lasts_until_its_last_frame_is_sent() {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let mut clock = Clock::new(protocol);
            let response = clock.state.begin(clock.now);
            clock.state.wait_for_client(response, 1000, clock.now);
            clock.state.unsent = true;
            clock.state.blocked(clock.now);
            clock.state.end(response, clock.now);
            for _ in 0..12 {
                // A byte now and then is no progress.
                let now = clock.pass(5);
                clock.state.wrote(now);
                clock.state.blocked(now);
            }
            let order = clock.state.eviction_order(clock.now);
            assert_eq!(order, Some(EvictionOrder::Slow(16)), "{protocol:?}");
            assert_eq!(clock.decision(), Decision::Abort, "{protocol:?}");
            clock.state.sent(clock.now);
            assert!(clock.state.responses.is_empty(), "{protocol:?}");
            assert_eq!(clock.state.idle, clock.now);
        }
        // Over HTTP/2, other responses do not delay the end of one that nothing blocks.
        let mut clock = Clock::new(Protocol::Http2);
        let response = clock.state.begin(clock.now);
        clock.state.unsent = true;
        clock.state.end(response, clock.now);
        assert!(clock.state.responses.is_empty());
    }

    #[test]
    fn idle_connections_are_evicted_before_slow_ones() {
        let mut idle = Clock::new(Protocol::Http1);
        let later = idle.pass(1);
        let mut slow = Clock::new(Protocol::Http1);
        let response = slow.state.begin(slow.now);
        slow.state.wait_for_client(response, 1000, slow.now);
        assert_eq!(slow.state.eviction_order(slow.now), None, "it may be quick");
        let now = slow.pass(10);
        let fresh = Clock::new(Protocol::Http1);
        let mut orders = [
            fresh.state.eviction_order(fresh.now).unwrap(),
            slow.state.eviction_order(now).unwrap(),
            EvictionOrder::Idle(later),
            idle.state.eviction_order(now).unwrap(),
        ];
        orders.sort();
        assert_eq!(orders[0], idle.state.eviction_order(now).unwrap());
        assert_eq!(orders[2], EvictionOrder::Slow(100));
        assert_eq!(
            orders[3],
            EvictionOrder::Fresh(fresh.now),
            "its client may be about to ask"
        );
        slow.state.frame_requested(response, now);
        assert_eq!(slow.state.eviction_order(now), None, "the server is at work");
    }
}
