//! The state of one connection: requests under way, and who waits for whom since when.
//!
//! [`State`] is plain: it is told of events with their time, and says what is due. [`Activity`] shares it between the
//! connection, its answers and the table of connections.

use std::{collections::BTreeMap, task::Waker, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::Traffic;

/// Time after which nothing is due.
const FAR: Duration = Duration::from_hours(24);

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Decision about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays; nothing is due before this time.
    Keep(Instant),
    /// It is closed as the protocol has it.
    Leave,
    /// It is dropped.
    Cut,
}

/// How much a connection is worth when another one needs its place. The least is closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// Without a request for a second and more, since then.
    Idle(Instant),
    /// Its client takes this many bytes a second, and the server waits for it.
    Slow(u64),
    /// Without a request for less than a second, since then: its client may be about to ask.
    Fresh(Instant),
}

/// One answer under way.
#[derive(Clone, Copy, Debug)]
struct Pace {
    began: Instant,
    /// Bytes that the connection took.
    bytes: u64,
    /// Time since when the connection asks for no more bytes.
    waiting: Option<Instant>,
    /// Since the window began: time waited, bytes taken.
    waited: Duration,
    taken: u64,
}

impl Pace {
    /// The time left until the window ends, if the client goes on to let the server wait.
    fn left(&self, now: Instant, stall: Duration) -> Duration {
        let waiting = self.waiting.map_or(Duration::ZERO, |since| now - since);
        stall.saturating_sub(self.waited + waiting)
    }
}

#[derive(Debug)]
pub(super) struct State {
    protocol: Protocol,
    /// Time since when no request is under way.
    idle: Instant,
    /// Time of the first bytes since then.
    heard: Option<Instant>,
    requests: u64,
    /// Time since when the socket takes no byte.
    blocked: Option<Instant>,
    answers: BTreeMap<u64, Pace>,
    /// True while a piece of an answer is on its way to the kernel.
    unsent: bool,
    /// Whom to wake when it is not.
    sent: Option<Waker>,
}

impl State {
    fn new(now: Instant) -> Self {
        Self {
            protocol: Protocol::Http1,
            idle: now,
            heard: None,
            requests: 0,
            blocked: None,
            answers: BTreeMap::new(),
            unsent: false,
            sent: None,
        }
    }

    fn heard(&mut self, now: Instant) {
        if self.answers.is_empty() {
            self.heard.get_or_insert(now);
        }
    }

    fn blocked(&mut self, now: Instant) {
        self.blocked.get_or_insert(now);
    }

    fn wrote(&mut self, now: Instant) {
        if self.blocked.take().is_some() && self.answers.is_empty() {
            self.idle = now;
        }
    }

    fn begin(&mut self, now: Instant) -> u64 {
        self.requests += 1;
        self.heard = None;
        let pace = Pace {
            began: now,
            bytes: 0,
            waiting: None,
            waited: Duration::ZERO,
            taken: 0,
        };
        self.answers.insert(self.requests, pace);
        self.requests
    }

    /// The connection asks for more of an answer.
    fn asked(&mut self, answer: u64, now: Instant) {
        if let Some(pace) = self.answers.get_mut(&answer)
            && let Some(since) = pace.waiting.take()
        {
            pace.waited += now - since;
        }
    }

    /// The connection waits for its client before it takes more of an answer.
    fn waits(&mut self, answer: u64, bytes: u64, now: Instant) {
        if let Some(pace) = self.answers.get_mut(&answer) {
            pace.bytes += bytes;
            pace.taken += bytes;
            pace.waiting.get_or_insert(now);
        }
    }

    fn end(&mut self, answer: u64, now: Instant) {
        self.answers.remove(&answer);
        if self.answers.is_empty() {
            self.idle = now;
        }
    }

    /// Decides if the connection stays.
    fn judge(&mut self, now: Instant, traffic: &Traffic) -> Verdict {
        for pace in self.answers.values_mut() {
            if pace.left(now, traffic.stall).is_zero() {
                if pace.taken < traffic.least {
                    return Verdict::Cut;
                }
                pace.waiting = pace.waiting.map(|_| now);
                (pace.waited, pace.taken) = (Duration::ZERO, 0);
            }
        }
        let (due, verdict) = self.due(now, traffic);
        if due > now { Verdict::Keep(due) } else { verdict }
    }

    /// The next time at which something becomes of the connection, if nothing happens until then.
    fn due(&self, now: Instant, traffic: &Traffic) -> (Instant, Verdict) {
        if self.blocked.is_some() || !self.answers.is_empty() {
            let blocked = self.blocked.map(|since| since + traffic.stall);
            let waiting = self.answers.values().filter(|pace| pace.waiting.is_some());
            let slow = waiting.map(|pace| now + pace.left(now, traffic.stall)).min();
            let due = blocked.into_iter().chain(slow).min();
            return (due.unwrap_or(now + FAR), Verdict::Cut);
        }
        match (self.protocol, self.requests, self.heard) {
            (_, 0, None) => (self.idle + traffic.head, Verdict::Leave),
            (Protocol::Http1, 0, Some(_)) => (self.idle + traffic.head, Verdict::Cut),
            (Protocol::Http1, _, Some(heard)) => (heard + traffic.head, Verdict::Cut),
            (Protocol::Http1, _, None) => (self.idle + traffic.idle, Verdict::Leave),
            (Protocol::Http2, _, _) => (self.idle + traffic.quiet, Verdict::Leave),
        }
    }

    /// The worth of the connection's place; `None` when it is not to be taken away.
    fn worth(&self, now: Instant) -> Option<Worth> {
        /// Shorter waits do not tell an idle or slow client from one that is about to go on.
        const GRACE: Duration = Duration::from_secs(1);
        if self.answers.is_empty() && self.blocked.is_none() {
            let fresh = now - self.idle < GRACE;
            return Some(if fresh {
                Worth::Fresh(self.idle)
            } else {
                Worth::Idle(self.idle)
            });
        }
        if self.answers.is_empty() {
            return self
                .blocked
                .filter(|since| now - *since >= GRACE)
                .map(|_| Worth::Slow(0));
        }
        let rate = |pace: &Pace| {
            let age = now - pace.began;
            let slow = age >= GRACE && pace.waiting.is_some();
            slow.then(|| pace.bytes / age.as_secs().max(1))
        };
        // One answer that goes on is reason enough to keep the connection.
        let rates: Option<Vec<u64>> = self.answers.values().map(rate).collect();
        rates?.into_iter().max().map(Worth::Slow)
    }
}

/// The state of a connection, shared.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    evicted: Notify,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::new(Instant::now())),
            evicted: Notify::new(),
        }
    }

    /// The handshake ended: from now on the client may be expected to ask.
    pub(super) fn opened(&self, protocol: Protocol) {
        let mut state = self.state.lock();
        state.protocol = protocol;
        state.idle = Instant::now();
    }

    pub(super) fn heard(&self) {
        self.state.lock().heard(Instant::now());
    }

    pub(super) fn blocked(&self) {
        self.state.lock().blocked(Instant::now());
    }

    /// The stream took bytes.
    pub(super) fn wrote(&self) {
        self.state.lock().wrote(Instant::now());
    }

    /// The kernel has all bytes.
    pub(super) fn sent(&self) {
        let mut state = self.state.lock();
        state.wrote(Instant::now());
        state.unsent = false;
        if let Some(waker) = state.sent.take() {
            waker.wake();
        }
    }

    /// A request came; the number is the answer's.
    pub(super) fn begin(&self) -> u64 {
        self.state.lock().begin(Instant::now())
    }

    /// Returns true if the next piece of an answer may be made. If not, `waker` is woken when the kernel has the piece before it.
    /// Over HTTP/2 the client's windows decide.
    pub(super) fn asked(&self, answer: u64, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if state.protocol == Protocol::Http1 && state.unsent {
            state.sent = Some(waker.clone());
            return false;
        }
        state.asked(answer, Instant::now());
        true
    }

    /// The connection took a piece of an answer.
    pub(super) fn took(&self, answer: u64, bytes: usize) {
        let mut state = self.state.lock();
        state.unsent = true;
        state.waits(answer, bytes as u64, Instant::now());
    }

    pub(super) fn end(&self, answer: u64) {
        self.state.lock().end(answer, Instant::now());
    }

    pub(super) fn judge(&self, traffic: &Traffic) -> Verdict {
        self.state.lock().judge(Instant::now(), traffic)
    }

    /// The next time to judge.
    pub(super) fn due(&self, traffic: &Traffic) -> Instant {
        self.state.lock().due(Instant::now(), traffic).0
    }

    pub(super) fn worth(&self, now: Instant) -> Option<Worth> {
        self.state.lock().worth(now)
    }

    /// Ends the connection.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until [`Activity::evict`].
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAFFIC: Traffic = Traffic::DEFAULT;

    /// A connection and its clock.
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

        fn verdict(&mut self) -> Verdict {
            self.state.judge(self.now, &TRAFFIC)
        }

        fn stays(&mut self) -> bool {
            matches!(self.verdict(), Verdict::Keep(due) if due > self.now)
        }
    }

    #[test]
    fn a_request_is_due_five_seconds_after_the_handshake() {
        let mut silent = Clock::new(Protocol::Http1);
        silent.pass(4);
        assert!(silent.stays());
        silent.pass(1);
        assert_eq!(silent.verdict(), Verdict::Leave);
        let mut half = Clock::new(Protocol::Http1);
        let now = half.pass(4);
        half.state.heard(now);
        half.pass(1);
        assert_eq!(half.verdict(), Verdict::Cut, "half a head");
        let mut preface = Clock::new(Protocol::Http2);
        preface.pass(5);
        assert_eq!(preface.verdict(), Verdict::Leave);
    }

    #[test]
    fn idle_connections_leave() {
        for (protocol, seconds) in [(Protocol::Http1, 30), (Protocol::Http2, 60)] {
            let mut clock = Clock::new(protocol);
            let answer = clock.state.begin(clock.now);
            let now = clock.pass(1000);
            assert!(clock.stays(), "the answer takes its time");
            clock.state.end(answer, now);
            clock.pass(seconds - 1);
            assert!(clock.stays());
            clock.pass(1);
            assert_eq!(clock.verdict(), Verdict::Leave);
        }
    }

    #[test]
    fn only_time_in_which_the_server_waits_counts() {
        let mut clock = Clock::new(Protocol::Http1);
        let answer = clock.state.begin(clock.now);
        for _ in 0..100 {
            // The client is quick, the answer takes ten minutes to make.
            let now = clock.pass(600);
            clock.state.waits(answer, 1024, now);
            let now = clock.pass(1);
            clock.state.asked(answer, now);
            if clock.state.answers[&answer].waited < TRAFFIC.stall {
                assert!(clock.stays());
            } else {
                break;
            }
        }
        assert_eq!(clock.verdict(), Verdict::Cut, "60 KiB in 60 seconds of waiting");
    }

    #[test]
    fn a_client_that_takes_the_least_stays() {
        let mut clock = Clock::new(Protocol::Http2);
        let answer = clock.state.begin(clock.now);
        for _ in 0..100 {
            clock.state.waits(answer, TRAFFIC.least / 4, clock.now);
            let now = clock.pass(15);
            assert!(clock.stays());
            clock.state.asked(answer, now);
        }
        clock.state.waits(answer, TRAFFIC.least, clock.now);
        clock.pass(59);
        assert!(clock.stays());
        // Whatever it took before, no byte for two windows is too little.
        clock.pass(60);
        clock.verdict();
        clock.pass(60);
        assert_eq!(clock.verdict(), Verdict::Cut);
    }

    #[test]
    fn the_idlest_is_worth_least_then_the_slowest() {
        let mut idle = Clock::new(Protocol::Http1);
        let later = idle.pass(1);
        let mut slow = Clock::new(Protocol::Http1);
        let answer = slow.state.begin(slow.now);
        slow.state.waits(answer, 1000, slow.now);
        assert_eq!(slow.state.worth(slow.now), None, "it may be quick");
        let now = slow.pass(10);
        let fresh = Clock::new(Protocol::Http1);
        let mut worths = [
            fresh.state.worth(fresh.now).unwrap(),
            slow.state.worth(now).unwrap(),
            Worth::Idle(later),
            idle.state.worth(now).unwrap(),
        ];
        worths.sort();
        assert_eq!(worths[0], idle.state.worth(now).unwrap());
        assert_eq!(worths[2], Worth::Slow(100));
        assert_eq!(
            worths[3],
            Worth::Fresh(fresh.now),
            "its client may be about to ask"
        );
        slow.state.asked(answer, now);
        assert_eq!(slow.state.worth(now), None, "the server is at work");
    }
}
