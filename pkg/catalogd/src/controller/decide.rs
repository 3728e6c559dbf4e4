//! Decides what to do about a catalog. Pure: the current time is an input.

use std::time::Duration;

use jiff::Timestamp;
use olm_api::CatalogPollResult;

use super::image_template::TemplateError;

/// Interval between checks of the cluster's version for catalogs whose image follows it.
pub(super) const VERSION_INTERVAL: Duration = Duration::from_mins(5);
/// Interval between checks of stored content against the signature policy, which may change at any time.
pub(super) const POLICY_INTERVAL: Duration = Duration::from_mins(5);
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
    /// Image that the spec and the image template ask for, if there is one.
    pub image: Result<Option<RequestedImage>, TemplateError>,
    /// Content on disk that is served.
    pub stored: Option<StoredContent>,
    /// Time at which somebody asked for a check of the registry.
    pub refresh: Option<Timestamp>,
    /// History of the catalog in this process.
    pub history: History,
    /// Current time.
    pub now: Timestamp,
}

/// Image that the spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedImage {
    /// Image reference as written in the spec, or as the image template gives it.
    pub reference: String,
    /// Poll interval for a moved tag.
    pub poll: Option<Duration>,
}

/// Content that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredContent {
    /// Reference for which the content was stored, as in [`RequestedImage::reference`].
    pub requested: String,
    /// Time at which the image was unpacked.
    pub unpacked: Timestamp,
    /// Judgement of the present signature policy on the content, by its own reference.
    pub judgement: Judgement,
}

/// Judgement of a signature policy on stored content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The content is accepted without another check of its signatures.
    Accepted,
    /// The signatures of the content must be verified first.
    Unverified,
    /// The content is refused, whatever its signatures.
    Refused,
    /// The policy cannot be used, which says nothing about the content. A pull reports it.
    Unknown,
}

/// History of a catalog between reconciles; lost at a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Last successful poll of the registry.
    pub poll: Option<Poll>,
    /// Last failure, cleared by a success.
    pub failure: Option<Failure>,
    /// Last request for a check of the registry that was followed.
    pub refresh: Option<Timestamp>,
    /// Last check of the registry, successful or not.
    pub check: Option<Check>,
    /// Last attempt to verify the signatures of stored content by its own reference and digest.
    pub verification: Option<Timestamp>,
    /// Last logged cause why stored content could not be judged.
    pub unjudged: Option<String>,
    /// Loss of the stored content that the status does not tell yet.
    pub loss: Option<Loss>,
}

/// Loss of stored content, with a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The content is damaged.
    Damaged(String),
    /// The signature policy refuses the content.
    Refused(String),
}

impl Loss {
    /// Returns the sentence for users.
    pub(super) fn message(&self) -> &str {
        match self {
            Self::Damaged(message) | Self::Refused(message) => message,
        }
    }
}

/// Check of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Image reference that was asked for.
    pub reference: String,
    /// Time at which the check ended.
    pub at: Timestamp,
    /// Result.
    pub result: CatalogPollResult,
}

/// Successful poll of the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poll {
    /// Time of the poll.
    pub at: Timestamp,
    /// Share of the interval by which the next poll is delayed, 0 to [`MAX_JITTER`].
    pub jitter: f64,
}

impl Poll {
    /// Returns the time of the next poll.
    pub(super) fn next(&self, interval: Duration) -> Timestamp {
        self.at
            .checked_add(interval.mul_f64(1.0 + self.jitter))
            .unwrap_or(Timestamp::MAX)
    }
}

/// Failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Generation of the spec that was attempted.
    pub generation: i64,
    /// Image reference that was attempted; empty if there was none.
    pub reference: String,
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
    /// Set label and finalizer, then decide again.
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
    let image = match &inputs.image {
        Ok(Some(image)) => image,
        Ok(None) => {
            return Decision::Refuse(format!(
                "terminal error: error parsing ClusterCatalog {name:?}, image source is nil"
            ));
        }
        Err(error) if error.is_terminal() => return Decision::Refuse(format!("terminal error: {error}")),
        Err(error) => return wait_for_version(inputs, error),
    };
    if wants_refresh(inputs) {
        return Decision::Pull;
    }
    let stored = inputs
        .stored
        .as_ref()
        .filter(|stored| stored.requested == image.reference);
    // The refusal needs no registry, and must not wait for the retry of a failure.
    if stored.is_some_and(|stored| stored.judgement == Judgement::Refused) {
        return Decision::Pull;
    }
    if let Some(failure) = inputs
        .history
        .failure
        .as_ref()
        .filter(|failure| failure.generation == inputs.generation && failure.reference == image.reference)
    {
        match failure.retry {
            None => return Decision::Wait(failure.clone(), None),
            Some(at) if at > inputs.now && !failed_later(inputs) => {
                return Decision::Wait(failure.clone(), Some(until(inputs.now, at)));
            }
            Some(_) => return Decision::Pull,
        }
    }
    let Some(stored) = stored.filter(|stored| stored.judgement == Judgement::Accepted) else {
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
    let due = last.next(interval);
    // After the clock was set back, a poll that is later than now would delay the next one by the whole step.
    if due <= inputs.now || last.at > inputs.now {
        Decision::Pull
    } else {
        Decision::Keep(Some(until(inputs.now, due)))
    }
}

/// Returns true if the signatures of stored content that no pull verifies may be verified again. An attempt that is later than now was
/// made before the clock was set back.
pub(super) fn verification_due(history: &History, now: Timestamp) -> bool {
    history.verification.is_none_or(|last| {
        let next = last.checked_add(POLICY_INTERVAL).unwrap_or(Timestamp::MAX);
        next <= now || last > now
    })
}

/// Returns true if the last check is later than now: the clock was set back, and the wait for the retry would take longer than the
/// backoff, by the whole step.
fn failed_later(inputs: &Inputs) -> bool {
    inputs
        .history
        .check
        .as_ref()
        .is_some_and(|check| check.at > inputs.now)
}

/// Returns the wait for a version of the cluster that could not be read.
fn wait_for_version(inputs: &Inputs, error: &TemplateError) -> Decision {
    let failure = Failure {
        generation: inputs.generation,
        reference: String::new(),
        message: error.to_string(),
        retry: inputs.now.checked_add(VERSION_INTERVAL).ok(),
    };
    Decision::Wait(failure, Some(VERSION_INTERVAL))
}

/// Returns true if somebody asks for a check of the registry that has not been made. After a restart, a request is followed once
/// more unless the content is newer.
fn wants_refresh(inputs: &Inputs) -> bool {
    let Some(requested) = inputs.refresh else {
        return false;
    };
    let followed = inputs.history.refresh == Some(requested);
    let newer = inputs
        .stored
        .as_ref()
        .is_some_and(|stored| stored.unpacked > requested);
    !followed && !newer
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
            image: Ok(Some(RequestedImage {
                reference: REF.to_owned(),
                poll: None,
            })),
            stored: Some(StoredContent {
                requested: REF.to_owned(),
                unpacked: at(-1000),
                judgement: Judgement::Accepted,
            }),
            refresh: None,
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
        inputs.image = Ok(Some(RequestedImage {
            reference: "registry.example/catalog:v2".to_owned(),
            poll: None,
        }));
        assert_eq!(decide("c", &inputs), Decision::Pull);
    }

    #[test]
    fn content_that_the_policy_does_not_accept_is_pulled_again() {
        for judgement in [Judgement::Unverified, Judgement::Refused, Judgement::Unknown] {
            let mut inputs = inputs();
            inputs.stored = inputs.stored.map(|stored| StoredContent { judgement, ..stored });
            assert_eq!(decide("c", &inputs), Decision::Pull);
            // Only a refusal is certain without the registry.
            inputs.history.failure = Some(Failure {
                generation: 3,
                reference: REF.to_owned(),
                message: "no route".to_owned(),
                retry: Some(at(5)),
            });
            let refused = judgement == Judgement::Refused;
            assert_eq!(decide("c", &inputs) == Decision::Pull, refused, "{judgement:?}");
            // The content of a former spec does not hasten the pull of the new one.
            inputs.stored = inputs.stored.map(|stored| StoredContent {
                requested: "registry.example/catalog:v0".to_owned(),
                ..stored
            });
            assert!(matches!(decide("c", &inputs), Decision::Wait(..)));
        }
    }

    #[test]
    fn signatures_of_stored_content_are_verified_once_per_interval() {
        let due = |seconds| {
            let verification = Some(at(seconds));
            verification_due(
                &History {
                    verification,
                    ..History::default()
                },
                at(0),
            )
        };
        assert!(verification_due(&History::default(), at(0)));
        assert!(!due(-299));
        assert!(due(-300));
        assert!(due(1));
    }

    #[test]
    fn polls_when_due_with_jitter() {
        let mut inputs = inputs();
        inputs.image = Ok(Some(RequestedImage {
            reference: REF.to_owned(),
            poll: Some(Duration::from_mins(10)),
        }));
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
    fn a_request_for_a_check_is_followed_once() {
        let mut inputs = inputs();
        inputs.refresh = Some(at(-10));
        assert_eq!(decide("c", &inputs), Decision::Pull);
        // Also while a failure waits.
        inputs.history.failure = Some(Failure {
            generation: 3,
            reference: REF.to_owned(),
            message: "no route".to_owned(),
            retry: None,
        });
        assert_eq!(decide("c", &inputs), Decision::Pull);
        inputs.history.failure = None;
        inputs.history.refresh = inputs.refresh;
        assert_eq!(decide("c", &inputs), Decision::Keep(None));
        // A clock that is ahead does not make catalogd ask again and again.
        inputs.refresh = Some(at(1000));
        assert_eq!(decide("c", &inputs), Decision::Pull);
        inputs.history.refresh = inputs.refresh;
        assert_eq!(decide("c", &inputs), Decision::Keep(None));
        // After a restart, newer content answers an old request.
        inputs.history.refresh = None;
        inputs.refresh = Some(at(-2000));
        assert_eq!(decide("c", &inputs), Decision::Keep(None));
    }

    #[test]
    fn failures_wait_for_their_time_or_another_spec() {
        let failure = Failure {
            generation: 3,
            reference: REF.to_owned(),
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
        // The cluster's version changed, and with it the image.
        inputs.generation = 3;
        inputs.image = Ok(Some(RequestedImage {
            reference: "registry.example/catalog:v2".to_owned(),
            poll: None,
        }));
        assert_eq!(decide("c", &inputs), Decision::Pull);
    }

    /// The step is an hour. The next check is at once, not after the step.
    #[test]
    fn a_clock_that_is_set_back_delays_neither_polls_nor_retries() {
        let mut inputs = inputs();
        inputs.image = Ok(Some(RequestedImage {
            reference: REF.to_owned(),
            poll: Some(Duration::from_mins(10)),
        }));
        inputs.history.poll = Some(Poll {
            at: at(3600),
            jitter: 0.01,
        });
        assert_eq!(decide("c", &inputs), Decision::Pull);
        // Not polled since the restart.
        inputs.history.poll = None;
        inputs.stored = Some(StoredContent {
            requested: REF.to_owned(),
            unpacked: at(3600),
            judgement: Judgement::Accepted,
        });
        assert_eq!(decide("c", &inputs), Decision::Pull);
        let failure = Failure {
            generation: 3,
            reference: REF.to_owned(),
            message: "no".to_owned(),
            retry: Some(at(3605)),
        };
        inputs.history.failure = Some(failure.clone());
        let check = |seconds| {
            Some(Check {
                reference: REF.to_owned(),
                at: at(seconds),
                result: CatalogPollResult::Failed,
            })
        };
        inputs.history.check = check(3600);
        assert_eq!(decide("c", &inputs), Decision::Pull);
        inputs.history.check = check(0);
        let wait = Duration::from_secs(3605);
        assert_eq!(decide("c", &inputs), Decision::Wait(failure, Some(wait)));
    }

    #[test]
    fn templates_are_refused_or_wait_for_the_version() {
        let mut inputs = inputs();
        inputs.image = Err(TemplateError::Unclosed);
        assert!(
            matches!(decide("c", &inputs), Decision::Refuse(text) if text.starts_with("terminal error: annotation"))
        );
        let error = TemplateError::NoVersion {
            variable: "kube_minor_version",
            product: "Kubernetes",
        };
        inputs.image = Err(error.clone());
        let failure = Failure {
            generation: 3,
            reference: String::new(),
            message: error.to_string(),
            retry: Some(at(300)),
        };
        assert_eq!(
            decide("c", &inputs),
            Decision::Wait(failure, Some(VERSION_INTERVAL))
        );
    }

    #[test]
    fn no_image_is_refused() {
        let inputs = Inputs {
            image: Ok(None),
            ..inputs()
        };
        let text = "terminal error: error parsing ClusterCatalog \"c\", image source is nil";
        assert_eq!(decide("c", &inputs), Decision::Refuse(text.to_owned()));
    }
}
