//! Health of a watch. Pure: the time is an argument.
//!
//! Invariants: before its first list a watch is not reliable. A watch that fails for [`WatchTiming::patience`] is
//! unreliable until it has listed and then worked for [`WatchTiming::settle`], so that neither a short fault nor a
//! short recovery changes the report.

use std::fmt;
use std::time::{Duration, Instant};

use kube::runtime::watcher;
use olm_api::condition::reasons::ObjectSet as Reason;
use olm_text::{cut, printable};

/// Maximum length of an error in bytes.
const MAX_MESSAGE: usize = 300;

/// Timing of watches and of the reads that replace a failing watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchTiming {
    /// Time for which a watch may fail, or not list, before the failure is reported.
    pub patience: Duration,
    /// Time for which a failed watch must work after its list before it is reliable again, and after which an object that the first list
    /// did not show counts as deleted.
    pub settle: Duration,
    /// Minimum interval between two reads of an object without a working watch.
    pub interval: Duration,
    /// Maximum rate of such reads per second; the interval grows with the number of objects.
    pub reads_per_second: u32,
}

impl Default for WatchTiming {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            settle: Duration::from_secs(5),
            interval: Duration::from_secs(30),
            reads_per_second: 10,
        }
    }
}

impl WatchTiming {
    /// Returns the read interval for this number of objects.
    #[must_use]
    pub fn interval_of(&self, objects: usize) -> Duration {
        let rate = f64::from(self.reads_per_second.max(1));
        let objects = f64::from(u32::try_from(objects).unwrap_or(u32::MAX));
        self.interval.max(Duration::from_secs_f64(objects / rate))
    }
}

/// Cause of a watch failure, by the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The controller may not list or watch the kind.
    Forbidden,
    /// The conversion webhook of the CRD fails.
    ConversionFailed,
    /// The API server does not serve the kind.
    NotServed,
    /// Failure that fits no other cause.
    Unavailable,
}

impl Cause {
    /// Returns the reason of the condition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let reason = match self {
            Self::Forbidden => Reason::Forbidden,
            Self::ConversionFailed => Reason::ConversionFailed,
            Self::NotServed => Reason::NotServed,
            Self::Unavailable => Reason::Unavailable,
        };
        reason.as_str()
    }

    fn of(code: u16, message: &str) -> Self {
        if message.contains("conversion webhook") {
            return Self::ConversionFailed;
        }
        match code {
            401 | 403 => Self::Forbidden,
            404 | 405 => Self::NotServed,
            _ => Self::Unavailable,
        }
    }
}

/// Failure of a watch: its cause, and the first error of that cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Cause.
    pub cause: Cause,
    /// Error message, truncated and printable.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.cause {
            Cause::Forbidden => "the controller has no right to list and watch them",
            Cause::ConversionFailed => "the conversion webhook of their CustomResourceDefinition fails",
            Cause::NotServed => "the API server does not serve them",
            Cause::Unavailable => "the API server does not list them",
        };
        write!(f, "{cause}: {}", self.text)
    }
}

impl Fault {
    /// Classifies an error of kube's watcher.
    #[must_use]
    pub fn of(error: &watcher::Error) -> Self {
        let (code, text) = match error {
            watcher::Error::InitialListFailed(source)
            | watcher::Error::WatchStartFailed(source)
            | watcher::Error::WatchFailed(source) => match source {
                kube::Error::Api(status) => (status.code, status.message.clone()),
                other => (0, other.to_string()),
            },
            watcher::Error::WatchError(status) => (status.code, status.message.clone()),
            watcher::Error::NoResourceVersion => (0, error.to_string()),
        };
        Self {
            cause: Cause::of(code, &text),
            text: cut(&printable(&text), MAX_MESSAGE).into_owned(),
        }
    }

    /// Returns the fault of a list that does not complete.
    fn incomplete_list() -> Self {
        Self {
            cause: Cause::Unavailable,
            text: "the initial list is not complete".to_owned(),
        }
    }
}

/// State of one watch: its failures and their cause.
#[derive(Debug)]
pub(super) struct WatchHealth {
    timing: WatchTiming,
    /// Time since when the watch is unreliable; `None` while it works.
    unreliable: Option<Instant>,
    fault: Option<Fault>,
    /// Time of the complete list since the last error.
    listed: Option<Instant>,
    /// True after the first list.
    listed_before: bool,
}

impl WatchHealth {
    pub(super) fn new(timing: WatchTiming, now: Instant) -> Self {
        Self {
            timing,
            unreliable: Some(now),
            fault: None,
            listed: None,
            listed_before: false,
        }
    }

    /// Records an error. An error of the same cause does not replace the first one.
    pub(super) fn failed(&mut self, fault: Fault, now: Instant) {
        self.unreliable.get_or_insert(now);
        self.listed = None;
        if self.fault.as_ref().is_none_or(|known| known.cause != fault.cause) {
            self.fault = Some(fault);
        }
    }

    /// Records the start of a list.
    pub(super) fn listing(&mut self, now: Instant) {
        self.unreliable.get_or_insert(now);
        self.listed = None;
    }

    /// Records the end of a list. Returns true if it is not the first list.
    pub(super) fn listed(&mut self, now: Instant) -> bool {
        let relisted = std::mem::replace(&mut self.listed_before, true);
        if self.fault.is_none() {
            self.unreliable = None;
        } else {
            self.listed = Some(now);
        }
        relisted
    }

    /// Ends a fault that is over by now.
    pub(super) fn tick(&mut self, now: Instant) {
        if self
            .listed
            .is_some_and(|at| now.duration_since(at) >= self.timing.settle)
        {
            self.unreliable = None;
            self.fault = None;
            self.listed = None;
        }
    }

    /// Returns the time of the next [`WatchHealth::tick`]; `None` if time alone changes nothing.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let reported = self
            .unreliable
            .map(|at| at + self.timing.patience)
            .filter(|at| *at > now);
        let recovered = self.listed.map(|at| at + self.timing.settle);
        [reported, recovered].into_iter().flatten().min()
    }

    /// Returns true without a fault.
    pub(super) fn is_working(&self) -> bool {
        self.unreliable.is_none()
    }

    /// Returns the failure, once it has lasted.
    pub(super) fn failing(&self, now: Instant) -> Option<Fault> {
        let lasts = self
            .unreliable
            .is_some_and(|at| now.duration_since(at) >= self.timing.patience);
        lasts.then(|| self.fault.clone().unwrap_or_else(Fault::incomplete_list))
    }

    /// Returns true if the listed objects are reliable.
    pub(super) fn is_reliable(&self, now: Instant) -> bool {
        self.listed_before && self.failing(now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(cause: Cause, text: &str) -> Fault {
        Fault {
            cause,
            text: text.to_owned(),
        }
    }

    #[test]
    fn lasting_failures_are_reported_until_the_watch_works() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut health = WatchHealth::new(WatchTiming::default(), start);
        assert!(!health.is_reliable(at(0)) && health.failing(at(0)).is_none());
        health.listed(at(1));
        assert!(health.is_reliable(at(1000)) && health.deadline(at(1)).is_none());

        // A short fault is not reported.
        health.failed(fault(Cause::Unavailable, "first"), at(100));
        assert!(health.is_reliable(at(109)));
        health.listed(at(104));
        health.tick(at(109));
        assert!(health.is_reliable(at(300)) && health.deadline(at(300)).is_none());

        // A longer fault is. Retries do not change the report, another cause does.
        health.failed(fault(Cause::Unavailable, "first"), at(400));
        assert_eq!(health.deadline(at(400)), Some(at(410)));
        health.failed(fault(Cause::Unavailable, "second"), at(405));
        assert_eq!(health.failing(at(410)), Some(fault(Cause::Unavailable, "first")));
        assert!(!health.is_reliable(at(410)));
        health.failed(fault(Cause::Forbidden, "third"), at(420));
        assert_eq!(health.failing(at(420)), Some(fault(Cause::Forbidden, "third")));

        // A list that is followed by an error is no recovery.
        health.listed(at(430));
        health.tick(at(434));
        assert!(health.failing(at(434)).is_some());
        health.failed(fault(Cause::Forbidden, "fourth"), at(434));
        health.tick(at(440));
        assert_eq!(health.failing(at(440)), Some(fault(Cause::Forbidden, "third")));
        health.listed(at(450));
        assert_eq!(health.deadline(at(450)), Some(at(455)));
        health.tick(at(455));
        assert!(health.is_reliable(at(455)) && health.failing(at(455)).is_none());
    }

    #[test]
    fn an_incomplete_list_is_a_failure() {
        let start = Instant::now();
        let mut health = WatchHealth::new(WatchTiming::default(), start);
        assert_eq!(health.deadline(start), Some(start + Duration::from_secs(10)));
        let late = start + Duration::from_secs(10);
        assert_eq!(health.failing(late), Some(Fault::incomplete_list()));
        health.listed(late);
        assert!(health.is_reliable(late) && health.failing(late).is_none());
    }

    #[test]
    fn causes_are_classified() {
        let error = |code: u16, message: &str| {
            let status = kube::core::Status::failure(message, "x").with_code(code);
            Fault::of(&watcher::Error::InitialListFailed(kube::Error::Api(
                status.boxed(),
            )))
            .cause
        };
        assert_eq!(error(403, "no"), Cause::Forbidden);
        assert_eq!(error(404, "no"), Cause::NotServed);
        assert_eq!(error(500, "boom"), Cause::Unavailable);
        let text = "conversion webhook for a.example/v1, Kind=A failed: Post \"https://x\": refused";
        assert_eq!(error(500, text), Cause::ConversionFailed);
    }

    #[test]
    fn the_interval_grows_with_the_work() {
        let timing = WatchTiming::default();
        assert_eq!(timing.interval_of(1), Duration::from_secs(30));
        assert_eq!(timing.interval_of(300), Duration::from_secs(30));
        assert_eq!(timing.interval_of(6000), Duration::from_mins(10));
    }
}
