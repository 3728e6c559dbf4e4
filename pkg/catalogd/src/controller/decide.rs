//! What to do about a catalog. Pure: the time comes in.

use std::time::Duration;

use jiff::Timestamp;

/// Largest share of the interval that a poll is put off by, so that catalogs spread.
pub(super) const MAX_JITTER: f64 = 0.01;

/// What is known of a catalog at the begin of a reconcile.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each read once")]
pub struct Found {
    /// `metadata.generation`.
    pub generation: i64,
    /// A deletion timestamp is set.
    pub deleting: bool,
    /// Our finalizer is there.
    pub finalizer: bool,
    /// The label with the catalog's own name is there and right.
    pub label: bool,
    /// `spec.availabilityMode` is not `Unavailable`.
    pub available: bool,
    /// The image of the spec; `None` when there is none.
    pub wanted: Option<Wanted>,
    /// What is on disk and served.
    pub stored: Option<Stored>,
    /// What this process remembers.
    pub memory: Memory,
    /// Now.
    pub now: Timestamp,
}

/// What the spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The image reference as written.
    pub reference: String,
    /// How often to look whether the tag moved.
    pub poll: Option<Duration>,
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The reference it was made for, as written in the spec.
    pub requested: String,
    /// When it was unpacked.
    pub unpacked: Timestamp,
}

/// What a process remembers of a catalog between reconciles; lost at a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The last successful look at the registry.
    pub poll: Option<Poll>,
    /// The last failure, until success.
    pub failure: Option<Failure>,
}

/// A successful look at the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poll {
    /// When.
    pub at: Timestamp,
    /// Share of the interval that the next one is put off by, 0 to [`MAX_JITTER`].
    pub jitter: f64,
}

/// A failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Generation of the spec that was tried.
    pub generation: i64,
    /// What failed.
    pub message: String,
    /// When to try again; `None`: only another spec helps.
    pub retry: Option<Timestamp>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is being deleted and owes us nothing.
    Nothing,
    /// Put label and finalizer in place; the change brings us back.
    Prepare,
    /// It is being deleted: remove the content, then the finalizer.
    Remove,
    /// The user does not want it served: remove the content and the finalizer, and say so.
    Withdraw,
    /// The spec cannot be acted on.
    Refuse(String),
    /// Ask the registry, and store what is new.
    Pull,
    /// The content is right; look again after this time.
    Keep(Option<Duration>),
    /// The last failure stands; try again after this time, or when the spec changes.
    Wait(Failure, Option<Duration>),
}

/// Decides. `name` is for messages.
pub fn decide(name: &str, found: &Found) -> Decision {
    if found.deleting {
        return if found.finalizer {
            Decision::Remove
        } else {
            Decision::Nothing
        };
    }
    if !found.label || (found.available && !found.finalizer) {
        return Decision::Prepare;
    }
    if !found.available {
        return Decision::Withdraw;
    }
    let Some(wanted) = &found.wanted else {
        return Decision::Refuse(format!(
            "terminal error: error parsing ClusterCatalog {name:?}, image source is nil"
        ));
    };
    if let Some(failure) = found
        .memory
        .failure
        .as_ref()
        .filter(|failure| failure.generation == found.generation)
    {
        match failure.retry {
            None => return Decision::Wait(failure.clone(), None),
            Some(at) if at > found.now => return Decision::Wait(failure.clone(), Some(until(found.now, at))),
            Some(_) => return Decision::Pull,
        }
    }
    let Some(stored) = found
        .stored
        .as_ref()
        .filter(|stored| stored.requested == wanted.reference)
    else {
        return Decision::Pull;
    };
    let Some(interval) = wanted.poll else {
        return Decision::Keep(None);
    };
    // After a restart the time of unpacking stands in for the last look, so that one happens soon.
    let last = found.memory.poll.unwrap_or(Poll {
        at: stored.unpacked,
        jitter: 0.0,
    });
    let due = last
        .at
        .checked_add(interval.mul_f64(1.0 + last.jitter))
        .unwrap_or(Timestamp::MAX);
    if due <= found.now {
        Decision::Pull
    } else {
        Decision::Keep(Some(until(found.now, due)))
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

    fn found() -> Found {
        Found {
            generation: 3,
            deleting: false,
            finalizer: true,
            label: true,
            available: true,
            wanted: Some(Wanted {
                reference: REF.to_owned(),
                poll: None,
            }),
            stored: Some(Stored {
                requested: REF.to_owned(),
                unpacked: at(-1000),
            }),
            memory: Memory::default(),
            now: at(0),
        }
    }

    #[test]
    fn order_of_life() {
        assert_eq!(
            decide(
                "c",
                &Found {
                    label: false,
                    ..found()
                }
            ),
            Decision::Prepare
        );
        assert_eq!(
            decide(
                "c",
                &Found {
                    finalizer: false,
                    ..found()
                }
            ),
            Decision::Prepare
        );
        assert_eq!(
            decide(
                "c",
                &Found {
                    stored: None,
                    ..found()
                }
            ),
            Decision::Pull
        );
        assert_eq!(decide("c", &found()), Decision::Keep(None));
        assert_eq!(
            decide(
                "c",
                &Found {
                    available: false,
                    ..found()
                }
            ),
            Decision::Withdraw
        );
        assert_eq!(
            decide(
                "c",
                &Found {
                    available: false,
                    finalizer: false,
                    ..found()
                }
            ),
            Decision::Withdraw
        );
        assert_eq!(
            decide(
                "c",
                &Found {
                    deleting: true,
                    available: false,
                    ..found()
                }
            ),
            Decision::Remove
        );
        assert_eq!(
            decide(
                "c",
                &Found {
                    deleting: true,
                    finalizer: false,
                    ..found()
                }
            ),
            Decision::Nothing
        );
    }

    #[test]
    fn content_on_disk_is_kept_over_a_restart_unless_the_reference_changed() {
        let mut found = found();
        found.memory = Memory::default();
        assert_eq!(decide("c", &found), Decision::Keep(None));
        found.wanted = Some(Wanted {
            reference: "registry.example/catalog:v2".to_owned(),
            poll: None,
        });
        assert_eq!(decide("c", &found), Decision::Pull);
    }

    #[test]
    fn polls_when_due_with_jitter() {
        let mut found = found();
        found.wanted.as_mut().unwrap().poll = Some(Duration::from_mins(10));
        found.memory.poll = Some(Poll {
            at: at(-500),
            jitter: 0.01,
        });
        assert_eq!(
            decide("c", &found),
            Decision::Keep(Some(Duration::from_secs(106)))
        );
        found.memory.poll = Some(Poll {
            at: at(-606),
            jitter: 0.01,
        });
        assert_eq!(decide("c", &found), Decision::Pull);
        // Unpacked 1000 s ago, not looked at since the restart.
        found.memory.poll = None;
        assert_eq!(decide("c", &found), Decision::Pull);
    }

    #[test]
    fn failures_wait_for_their_time_or_another_spec() {
        let failure = Failure {
            generation: 3,
            message: "no".to_owned(),
            retry: Some(at(5)),
        };
        let mut found = found();
        found.stored = None;
        found.memory.failure = Some(failure.clone());
        let wait = Decision::Wait(failure.clone(), Some(Duration::from_secs(5)));
        assert_eq!(decide("c", &found), wait);
        found.now = at(5);
        assert_eq!(decide("c", &found), Decision::Pull);
        let blocked = Failure {
            retry: None,
            ..failure
        };
        found.memory.failure = Some(blocked.clone());
        assert_eq!(decide("c", &found), Decision::Wait(blocked, None));
        found.generation = 4;
        assert_eq!(decide("c", &found), Decision::Pull);
    }

    #[test]
    fn no_image_is_refused() {
        let found = Found {
            wanted: None,
            ..found()
        };
        let text = "terminal error: error parsing ClusterCatalog \"c\", image source is nil";
        assert_eq!(decide("c", &found), Decision::Refuse(text.to_owned()));
    }
}
