//! Decides what to do about a catalog. Pure: the current time is an input.

use std::time::Duration;

use jiff::Timestamp;

/// Maximum share of the poll interval by which a poll is delayed, so that polls spread.
pub(super) const MAX_JITTER: f64 = 0.01;

/// Inputs of the decision, read at the start of a reconcile.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each read once")]
pub struct Inputs {
    /// `metadata.generation`.
    pub generation: i64,
    /// A deletion timestamp is set.
    pub deleting: bool,
    /// The object has our finalizer.
    pub finalizer: bool,
    /// The label with the catalog's name is present and correct.
    pub label: bool,
    /// `spec.availabilityMode` is not `Unavailable`.
    pub available: bool,
    /// Image of the spec, if there is one.
    pub image: Option<RequestedImage>,
    /// Content on disk that is served.
    pub stored: Option<StoredContent>,
    /// History of the catalog in this process.
    pub history: History,
    /// Current time.
    pub now: Timestamp,
}

/// Image that the spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedImage {
    /// Image reference as written in the spec.
    pub reference: String,
    /// Poll interval for a moved tag.
    pub poll: Option<Duration>,
}

/// Content that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredContent {
    /// Reference for which the content was stored, as written in the spec.
    pub requested: String,
    /// Time at which the image was unpacked.
    pub unpacked: Timestamp,
}

/// History of a catalog between reconciles; lost at a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Last successful poll of the registry.
    pub poll: Option<Poll>,
    /// Last failure, cleared by a success.
    pub failure: Option<Failure>,
}

/// Successful poll of the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poll {
    /// Time of the poll.
    pub at: Timestamp,
    /// Share of the interval by which the next poll is delayed, 0 to [`MAX_JITTER`].
    pub jitter: f64,
}

/// Failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Generation of the spec that was attempted.
    pub generation: i64,
    /// Error message.
    pub message: String,
    /// Time of the next attempt; `None` until the spec changes.
    pub retry: Option<Timestamp>,
}

/// Next action of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The object is being deleted and has no finalizer of ours.
    Nothing,
    /// Set label and finalizer; the change triggers another reconcile.
    Prepare,
    /// The object is being deleted: remove the content, then the finalizer.
    Remove,
    /// The catalog is `Unavailable`: remove content and finalizer and report it.
    Withdraw,
    /// The spec is invalid.
    Refuse(String),
    /// Resolve the image and store new content.
    Pull,
    /// The content is current; reconcile again after this delay.
    Keep(Option<Duration>),
    /// The last failure persists; retry after this delay or when the spec changes.
    Wait(Failure, Option<Duration>),
}

/// Returns the next action. `name` appears in messages.
pub fn decide(name: &str, inputs: &Inputs) -> Decision {
    if inputs.deleting {
        return if inputs.finalizer {
            Decision::Remove
        } else {
            Decision::Nothing
        };
    }
    if !inputs.label || (inputs.available && !inputs.finalizer) {
        return Decision::Prepare;
    }
    if !inputs.available {
        return Decision::Withdraw;
    }
    let Some(image) = &inputs.image else {
        return Decision::Refuse(format!(
            "terminal error: error parsing ClusterCatalog {name:?}, image source is nil"
        ));
    };
    if let Some(failure) = inputs
        .history
        .failure
        .as_ref()
        .filter(|failure| failure.generation == inputs.generation)
    {
        match failure.retry {
            None => return Decision::Wait(failure.clone(), None),
            Some(at) if at > inputs.now => {
                return Decision::Wait(failure.clone(), Some(until(inputs.now, at)));
            }
            Some(_) => return Decision::Pull,
        }
    }
    let Some(stored) = inputs
        .stored
        .as_ref()
        .filter(|stored| stored.requested == image.reference)
    else {
        return Decision::Pull;
    };
    let Some(interval) = image.poll else {
        return Decision::Keep(None);
    };
    // After a restart the unpack time stands in for the last poll, so that a poll follows soon.
    let last = inputs.history.poll.unwrap_or(Poll {
        at: stored.unpacked,
        jitter: 0.0,
    });
    let due = last
        .at
        .checked_add(interval.mul_f64(1.0 + last.jitter))
        .unwrap_or(Timestamp::MAX);
    if due <= inputs.now {
        Decision::Pull
    } else {
        Decision::Keep(Some(until(inputs.now, due)))
    }
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REF: &str = "registry.example/catalog:v1";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn inputs() -> Inputs {
        Inputs {
            generation: 3,
            deleting: false,
            finalizer: true,
            label: true,
            available: true,
            image: Some(RequestedImage {
                reference: REF.to_owned(),
                poll: None,
            }),
            stored: Some(StoredContent {
                requested: REF.to_owned(),
                unpacked: at(-1000),
            }),
            history: History::default(),
            now: at(0),
        }
    }

    #[test]
    fn order_of_life() {
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    label: false,
                    ..inputs()
                }
            ),
            Decision::Prepare
        );
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    finalizer: false,
                    ..inputs()
                }
            ),
            Decision::Prepare
        );
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    stored: None,
                    ..inputs()
                }
            ),
            Decision::Pull
        );
        assert_eq!(decide("c", &inputs()), Decision::Keep(None));
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    available: false,
                    ..inputs()
                }
            ),
            Decision::Withdraw
        );
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    available: false,
                    finalizer: false,
                    ..inputs()
                }
            ),
            Decision::Withdraw
        );
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    deleting: true,
                    available: false,
                    ..inputs()
                }
            ),
            Decision::Remove
        );
        assert_eq!(
            decide(
                "c",
                &Inputs {
                    deleting: true,
                    finalizer: false,
                    ..inputs()
                }
            ),
            Decision::Nothing
        );
    }

    #[test]
    fn content_on_disk_is_kept_over_a_restart_unless_the_reference_changed() {
        let mut inputs = inputs();
        inputs.history = History::default();
        assert_eq!(decide("c", &inputs), Decision::Keep(None));
        inputs.image = Some(RequestedImage {
            reference: "registry.example/catalog:v2".to_owned(),
            poll: None,
        });
        assert_eq!(decide("c", &inputs), Decision::Pull);
    }

    #[test]
    fn polls_when_due_with_jitter() {
        let mut inputs = inputs();
        inputs.image.as_mut().unwrap().poll = Some(Duration::from_mins(10));
        inputs.history.poll = Some(Poll {
            at: at(-500),
            jitter: 0.01,
        });
        assert_eq!(
            decide("c", &inputs),
            Decision::Keep(Some(Duration::from_secs(106)))
        );
        inputs.history.poll = Some(Poll {
            at: at(-606),
            jitter: 0.01,
        });
        assert_eq!(decide("c", &inputs), Decision::Pull);
        // Unpacked 1000 s ago, not polled since the restart.
        inputs.history.poll = None;
        assert_eq!(decide("c", &inputs), Decision::Pull);
    }

    #[test]
    fn failures_wait_for_their_time_or_another_spec() {
        let failure = Failure {
            generation: 3,
            message: "no".to_owned(),
            retry: Some(at(5)),
        };
        let mut inputs = inputs();
        inputs.stored = None;
        inputs.history.failure = Some(failure.clone());
        let wait = Decision::Wait(failure.clone(), Some(Duration::from_secs(5)));
        assert_eq!(decide("c", &inputs), wait);
        inputs.now = at(5);
        assert_eq!(decide("c", &inputs), Decision::Pull);
        let blocked = Failure {
            retry: None,
            ..failure
        };
        inputs.history.failure = Some(blocked.clone());
        assert_eq!(decide("c", &inputs), Decision::Wait(blocked, None));
        inputs.generation = 4;
        assert_eq!(decide("c", &inputs), Decision::Pull);
    }

    #[test]
    fn no_image_is_refused() {
        let inputs = Inputs {
            image: None,
            ..inputs()
        };
        let text = "terminal error: error parsing ClusterCatalog \"c\", image source is nil";
        assert_eq!(decide("c", &inputs), Decision::Refuse(text.to_owned()));
    }
}
