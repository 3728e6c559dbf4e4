//! Health of a watch: decides if the watch sees its kind. Pure: the time is an argument.
//!
//! Invariants: a watch that has listed nothing yet sees nothing; one that fails for [`Pace::patience`] sees nothing until it
//! has listed and then held for [`Pace::settle`], so that neither a short fault nor a short recovery changes the report.

use std::fmt;
use std::time::{Duration, Instant};

use kube::runtime::watcher;
use olm_text::{cut, printable};

/// Longest text of an error that is kept, in bytes.
const TEXT_LIMIT: usize = 300;

/// Times and rates of watches and of the reads that stand in for them.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time for which a watch may fail, or not list, before the failure is reported.
    pub patience: Duration,
    /// Time for which a watch that failed must hold after listing before it counts again.
    pub settle: Duration,
    /// Interval between two reads of objects of an unseen kind.
    pub interval: Duration,
    /// Most objects that are read in a second on that account; the interval grows beyond.
    pub reads_per_second: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            settle: Duration::from_secs(5),
            interval: Duration::from_secs(30),
            reads_per_second: 10,
        }
    }
}

impl Pace {
    /// The interval at which this number of objects is read.
    #[must_use]
    pub fn interval_of(&self, objects: usize) -> Duration {
        let rate = f64::from(self.reads_per_second.max(1));
        let objects = f64::from(u32::try_from(objects).unwrap_or(u32::MAX));
        self.interval.max(Duration::from_secs_f64(objects / rate))
    }
}

/// Cause of a watch's failure, as far as somebody else would act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The controller lacks the rights to list or watch.
    Forbidden,
    /// The conversion webhook of the kind's CRD fails.
    ConversionFailed,
    /// The API server does not serve the kind.
    NotServed,
    /// Any other fault.
    Unavailable,
}

impl Cause {
    /// The cause as a condition's reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "Forbidden",
            Self::ConversionFailed => "ConversionFailed",
            Self::NotServed => "NotServed",
            Self::Unavailable => "Unavailable",
        }
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
    /// Error, bounded and printable.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.cause {
            Cause::Forbidden => "the API server refuses the controller to list and watch them",
            Cause::ConversionFailed => "the conversion webhook of their CustomResourceDefinition fails",
            Cause::NotServed => "the API server does not serve them",
            Cause::Unavailable => "the API server does not list them",
        };
        write!(f, "{what}: {}", self.text)
    }
}

impl Fault {
    /// The fault that an error of kube's watcher tells of.
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
            text: cut(&printable(&text), TEXT_LIMIT).into_owned(),
        }
    }

    /// The fault of a list that does not end.
    fn silent() -> Self {
        Self {
            cause: Cause::Unavailable,
            text: "the list has no end yet".to_owned(),
        }
    }
}

/// State of one watch.
#[derive(Debug)]
pub(super) struct Health {
    pace: Pace,
    /// Time since when nothing is seen for certain; none while the watch is sound.
    unsure: Option<Instant>,
    fault: Option<Fault>,
    /// Time at which the list was complete, since the last error.
    listed: Option<Instant>,
    /// True once the watch has listed.
    ever: bool,
}

impl Health {
    pub(super) fn new(pace: Pace, now: Instant) -> Self {
        Self {
            pace,
            unsure: Some(now),
            fault: None,
            listed: None,
            ever: false,
        }
    }

    /// Notes an error. An error of the same cause does not replace the first.
    pub(super) fn failed(&mut self, fault: Fault, now: Instant) {
        self.unsure.get_or_insert(now);
        self.listed = None;
        if self.fault.as_ref().is_none_or(|known| known.cause != fault.cause) {
            self.fault = Some(fault);
        }
    }

    /// Notes that a list begins.
    pub(super) fn listing(&mut self, now: Instant) {
        self.unsure.get_or_insert(now);
        self.listed = None;
    }

    /// Notes that everything was listed. Returns whether that is so for another time.
    pub(super) fn listed(&mut self, now: Instant) -> bool {
        let again = std::mem::replace(&mut self.ever, true);
        if self.fault.is_none() {
            self.unsure = None;
        } else {
            self.listed = Some(now);
        }
        again
    }

    /// Takes note of the time.
    pub(super) fn tick(&mut self, now: Instant) {
        if self
            .listed
            .is_some_and(|at| now.duration_since(at) >= self.pace.settle)
        {
            self.unsure = None;
            self.fault = None;
            self.listed = None;
        }
    }

    /// Returns the time at which [`Health::tick`] is due; none while nothing changes with time alone.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let raised = self
            .unsure
            .map(|at| at + self.pace.patience)
            .filter(|at| *at > now);
        let healed = self.listed.map(|at| at + self.pace.settle);
        [raised, healed].into_iter().flatten().min()
    }

    /// Returns true if the watch has no fault.
    pub(super) fn sound(&self) -> bool {
        self.unsure.is_none()
    }

    /// The failure, once it has lasted.
    pub(super) fn failing(&self, now: Instant) -> Option<Fault> {
        let lasts = self
            .unsure
            .is_some_and(|at| now.duration_since(at) >= self.pace.patience);
        lasts.then(|| self.fault.clone().unwrap_or_else(Fault::silent))
    }

    /// Returns true if the listed objects are reliable.
    pub(super) fn sees(&self, now: Instant) -> bool {
        self.ever && self.failing(now).is_none()
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
    fn a_failure_is_said_when_it_lasts_and_forgotten_when_the_watch_holds() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut health = Health::new(Pace::default(), start);
        assert!(!health.sees(at(0)) && health.failing(at(0)).is_none());
        health.listed(at(1));
        assert!(health.sees(at(1000)) && health.due(at(1)).is_none());

        // A short fault is nobody's business.
        health.failed(fault(Cause::Unavailable, "first"), at(100));
        assert!(health.sees(at(109)));
        health.listed(at(104));
        health.tick(at(109));
        assert!(health.sees(at(300)) && health.due(at(300)).is_none());

        // One that lasts is; retries change nothing of what is said, another cause does.
        health.failed(fault(Cause::Unavailable, "first"), at(400));
        assert_eq!(health.due(at(400)), Some(at(410)));
        health.failed(fault(Cause::Unavailable, "second"), at(405));
        assert_eq!(health.failing(at(410)), Some(fault(Cause::Unavailable, "first")));
        assert!(!health.sees(at(410)));
        health.failed(fault(Cause::Forbidden, "third"), at(420));
        assert_eq!(health.failing(at(420)), Some(fault(Cause::Forbidden, "third")));

        // A list that is followed by the next error is no recovery.
        health.listed(at(430));
        health.tick(at(434));
        assert!(health.failing(at(434)).is_some());
        health.failed(fault(Cause::Forbidden, "fourth"), at(434));
        health.tick(at(440));
        assert_eq!(health.failing(at(440)), Some(fault(Cause::Forbidden, "third")));
        health.listed(at(450));
        assert_eq!(health.due(at(450)), Some(at(455)));
        health.tick(at(455));
        assert!(health.sees(at(455)) && health.failing(at(455)).is_none());
    }

    #[test]
    fn a_list_without_an_end_is_a_failure() {
        let start = Instant::now();
        let mut health = Health::new(Pace::default(), start);
        assert_eq!(health.due(start), Some(start + Duration::from_secs(10)));
        let late = start + Duration::from_secs(10);
        assert_eq!(health.failing(late), Some(Fault::silent()));
        health.listed(late);
        assert!(health.sees(late) && health.failing(late).is_none());
    }

    #[test]
    fn causes_are_told_apart() {
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
        let pace = Pace::default();
        assert_eq!(pace.interval_of(1), Duration::from_secs(30));
        assert_eq!(pace.interval_of(300), Duration::from_secs(30));
        assert_eq!(pace.interval_of(6000), Duration::from_mins(10));
    }
}
