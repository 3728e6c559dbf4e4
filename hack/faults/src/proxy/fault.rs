//! Faults of requests and events, and the rules that say which request or event gets which fault.

use std::fmt;
use std::time::Duration;

use super::request::{Target, Verb};

/// A fault of one request, or of one event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The request waits before it passes.
    Delay(Duration),
    /// The request does not pass and gets this HTTP status. The answers 429 and 503 have the header `Retry-After: 1`.
    Refuse(u16),
    /// The request does not pass, and its connection is cut.
    Lose,
    /// The request passes, and its connection is cut before the answer.
    ApplyAndLose,
    /// The request passes and gets this HTTP status: it is applied but reported as failed.
    ApplyAndRefuse(u16),
    /// The connection is cut in the middle of the answer's body.
    Truncate,
    /// A list from the API server's cache gets an earlier answer, as from a second API server that lags.
    OldAnswer,
    /// The request gets the answer 410: its resource version is too old.
    Expire,
    /// The event and all later events of the watch wait for this time.
    HoldEvent(Duration),
    /// The event is not delivered, and the connection of the watch is cut. The client resumes from the version before the event.
    CutAtEvent,
    /// The event is not delivered, and the watch ends with an error 410. The client must list again, and does not see objects
    /// that were created and deleted meanwhile.
    ExpireAtEvent,
    /// The controller is killed before the write passes.
    KillBefore,
    /// The controller is killed after the write passed and before it sees the answer.
    KillAfter,
}

impl Fault {
    /// Returns the name of the fault in reports.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Delay(_) => "delayed",
            Self::Refuse(409) => "answered 409",
            Self::Refuse(429) => "answered 429",
            Self::Refuse(_) => "answered 5xx",
            Self::Lose => "not applied, connection cut",
            Self::ApplyAndLose => "applied, connection cut",
            Self::ApplyAndRefuse(_) => "applied, answered 5xx",
            Self::Truncate => "cut in the body",
            Self::OldAnswer => "old list",
            Self::Expire => "watch answered 410",
            Self::HoldEvent(_) => "watch held",
            Self::CutAtEvent => "watch cut before an event",
            Self::ExpireAtEvent => "watch expired before an event",
            Self::KillBefore => "killed before a write",
            Self::KillAfter => "killed after a write",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(time) | Self::HoldEvent(time) => write!(f, "{} {time:?}", self.kind()),
            Self::Refuse(status) => write!(f, "answered {status}"),
            Self::ApplyAndRefuse(status) => write!(f, "applied, answered {status}"),
            other => f.write_str(other.kind()),
        }
    }
}

/// Class of requests or events. A [`Rule`] counts the members of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Requests with this verb for this resource (plural and subresource), without dry runs.
    Requests(Verb, &'static str),
    /// Writes of any resource except leases and events, without dry runs.
    Writes,
    /// Reads of one object or a collection, of any resource.
    Reads,
    /// Starts of watches of any resource.
    Watches,
    /// Events of watches of this resource.
    Events(&'static str),
}

impl Class {
    /// Returns true if the request belongs to the class.
    #[must_use]
    pub fn has(self, target: &Target) -> bool {
        match self {
            Self::Requests(verb, resource) => {
                target.verb == verb && target.resource == resource && !target.dry_run
            }
            Self::Writes => target.changes_objects() && !target.is_chatter(),
            Self::Reads => matches!(target.verb, Verb::Get | Verb::List) && !target.resource.is_empty(),
            Self::Watches => target.verb == Verb::Watch,
            Self::Events(_) => false,
        }
    }

    /// Returns true if events of watches of `resource` belong to the class.
    #[must_use]
    pub fn has_events(self, resource: &str) -> bool {
        matches!(self, Self::Events(own) if own == resource)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(verb, resource) => write!(f, "{} {resource}", verb.as_str()),
            Self::Writes => f.write_str("write"),
            Self::Reads => f.write_str("read"),
            Self::Watches => f.write_str("watch"),
            Self::Events(resource) => write!(f, "event of {resource}"),
        }
    }
}

/// A fault for one member of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The class.
    pub class: Class,
    /// Number of the member, counted from 1.
    pub nth: u32,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.class, self.nth, self.fault)
    }
}
