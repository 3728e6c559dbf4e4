//! Status of a ClusterCatalog, computed from the outcome of one reconcile.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::{
    CatalogPoll, CatalogSourceType, ClusterCatalogStatus, ClusterCatalogUrls, ResolvedCatalogSource,
    ResolvedImageSource,
    condition::{Status, find, is_true, reasons::Catalog as Reason, types::Catalog as Type},
};

use crate::condition::{self, NewCondition};
use crate::summary::{self, State, Summary};

/// Content that catalogd serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Image reference of the content, with its digest.
    pub reference: String,
    /// Address of the content, `https://host/catalogs/<name>`.
    pub base_url: String,
    /// Time at which the image was unpacked.
    pub unpacked: Time,
    /// Warning for the user, appended to upstream's message.
    pub warning: Option<String>,
}

/// Outcome of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The content that the spec asks for is served.
    Serving(Served),
    /// The spec asks for no serving, and nothing is served.
    Unavailable,
    /// A transient failure; a retry follows. Earlier content, if any, is still served.
    Retrying {
        /// Error message.
        message: String,
        /// Content served in the meantime.
        served: Option<Served>,
    },
    /// A terminal failure until the spec changes. Earlier content, if any, is still served.
    Blocked {
        /// Error message.
        message: String,
        /// Content served in the meantime.
        served: Option<Served>,
    },
    /// The catalog is being deleted, and its content is removed.
    Deleting,
}

/// Upstream's message of both conditions of a catalog that the user made unavailable.
const USER_SPECIFIED: &str = "Catalog availability mode is set to Unavailable";

/// Returns the status after `outcome`. Conditions of unknown types are dropped. Without `poll`, the former checks of the registry stay.
/// `refusal` is the sentence for users if the signature policy refuses content that was served before.
pub fn status(
    old: Option<&ClusterCatalogStatus>,
    generation: i64,
    outcome: &Outcome,
    poll: Option<CatalogPoll>,
    refusal: Option<&str>,
    now: &Time,
) -> ClusterCatalogStatus {
    let mut status = old.cloned().unwrap_or_default();
    let mut conditions = status.conditions.take().unwrap_or_default();
    conditions.retain(|condition| Type::ALL.iter().any(|ours| condition.type_ == *ours));
    let mut set = |type_: Type, holds: bool, reason: Reason, message: &str| {
        let new = NewCondition {
            type_: type_.into(),
            status: holds.into(),
            reason: reason.into(),
            message: message.to_owned(),
            observed_generation: generation,
        };
        condition::set(&mut conditions, new, now);
    };
    let served = match outcome {
        Outcome::Serving(served) => {
            let mut message = "Successfully unpacked and stored content from resolved source".to_owned();
            if let Some(warning) = &served.warning {
                message.push_str("; ");
                message.push_str(warning);
            }
            set(Type::Progressing, true, Reason::Succeeded, &message);
            Some(served)
        }
        Outcome::Unavailable => {
            set(Type::Progressing, true, Reason::Succeeded, USER_SPECIFIED);
            set(
                Type::Serving,
                false,
                Reason::UserSpecifiedUnavailable,
                USER_SPECIFIED,
            );
            None
        }
        Outcome::Retrying { message, served } => {
            set(Type::Progressing, true, Reason::Retrying, message);
            served.as_ref()
        }
        Outcome::Blocked { message, served } => {
            set(Type::Progressing, false, Reason::Blocked, message);
            served.as_ref()
        }
        Outcome::Deleting => {
            set(Type::Serving, false, Reason::Unavailable, "");
            None
        }
    };
    if served.is_some() {
        set(
            Type::Serving,
            true,
            Reason::Available,
            "Serving desired content from resolved source",
        );
    } else if !matches!(outcome, Outcome::Unavailable | Outcome::Deleting)
        && is_true(&conditions, Type::Serving)
    {
        // The policy refuses the content, or a previous process served it, and its disk is gone: `Serving` must not stay true.
        let new = NewCondition {
            type_: Type::Serving.into(),
            status: Status::False,
            reason: Reason::Unavailable.into(),
            message: refusal
                .unwrap_or("The content is missing and must be pulled again")
                .to_owned(),
            observed_generation: generation,
        };
        condition::set(&mut conditions, new, now);
    }
    let summary = summarise(&conditions, outcome);
    summary::put(&mut conditions, summary.as_ref(), generation, now);
    status.observed_generation = Some(generation);
    status.conditions = Some(conditions);
    status.resolved_source = served.map(|served| ResolvedCatalogSource {
        type_: CatalogSourceType::Image,
        image: ResolvedImageSource {
            ref_: served.reference.clone(),
        },
    });
    status.urls = served.map(|served| ClusterCatalogUrls {
        base: served.base_url.clone(),
    });
    status.last_unpacked = served.map(|served| served.unpacked.clone());
    status.poll = match outcome {
        Outcome::Unavailable | Outcome::Deleting => None,
        _ => poll.or(status.poll),
    };
    status
}

/// Returns the summary for generic tools. A catalog that the user made unavailable matches its spec.
fn summarise(conditions: &[Condition], outcome: &Outcome) -> Option<Summary> {
    let (type_, state) = match outcome {
        Outcome::Serving(_) | Outcome::Unavailable => (Type::Serving, State::Ready),
        Outcome::Retrying { .. } => (Type::Progressing, State::Reconciling),
        Outcome::Blocked { .. } => (Type::Progressing, State::Stalled),
        Outcome::Deleting => (Type::Serving, State::Reconciling),
    };
    find(conditions, type_).map(|condition| Summary::of(state, condition))
}

/// Returns true if the statuses differ in nothing but transition times and checks of the registry.
pub fn same(a: Option<&ClusterCatalogStatus>, b: &ClusterCatalogStatus) -> bool {
    let Some(a) = a else { return false };
    let (left, right) = (a.conditions(), b.conditions());
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| condition::same_ignoring_time(left, right))
        && a.observed_generation == b.observed_generation
        && a.resolved_source == b.resolved_source
        && a.urls == b.urls
        && a.last_unpacked == b.last_unpacked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    fn status(
        old: Option<&ClusterCatalogStatus>,
        generation: i64,
        outcome: &Outcome,
        now: &Time,
    ) -> ClusterCatalogStatus {
        super::status(old, generation, outcome, None, None, now)
    }

    #[test]
    fn checks_of_the_registry_stay_until_the_content_goes() {
        let now = time("2026-01-02T03:04:06Z");
        let poll = CatalogPoll {
            image: "registry.example/catalog:v1".to_owned(),
            last_time: now.clone(),
            result: olm_api::CatalogPollResult::Stored,
            next_time: None,
        };
        let serving = Outcome::Serving(served());
        let first = super::status(None, 1, &serving, Some(poll.clone()), None, &now);
        assert_eq!(first.poll.as_ref(), Some(&poll));
        let second = status(Some(&first), 1, &serving, &now);
        assert_eq!(second.poll, Some(poll));
        let unavailable = status(Some(&second), 2, &Outcome::Unavailable, &now);
        assert_eq!(unavailable.poll, None);
        assert!(same(
            Some(&first),
            &super::status(Some(&first), 1, &serving, None, None, &now)
        ));
    }

    #[test]
    fn a_difference_in_one_field_is_a_change() {
        let old = status(
            None,
            1,
            &Outcome::Serving(served()),
            &time("2026-01-02T03:04:06Z"),
        );
        let changes: [fn(&mut ClusterCatalogStatus); 6] = [
            |new| new.observed_generation = Some(2),
            |new| new.resolved_source = None,
            |new| new.urls = None,
            |new| new.last_unpacked = None,
            |new| new.conditions = new.conditions.take().map(|all| all.into_iter().skip(1).collect()),
            |new| {
                new.conditions
                    .iter_mut()
                    .flatten()
                    .for_each(|condition| condition.message.push('!'));
            },
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut new = old.clone();
            change(&mut new);
            assert!(!same(Some(&old), &new), "change {at}");
        }
        assert!(same(Some(&old), &old.clone()));
        assert!(!same(None, &old));
    }

    fn served() -> Served {
        Served {
            reference: format!("registry.example/catalog@sha256:{}", "a".repeat(64)),
            base_url: "https://catalogd-service.olmv1-system.svc/catalogs/c".to_owned(),
            unpacked: time("2026-01-02T03:04:05Z"),
            warning: None,
        }
    }

    fn rows(status: &ClusterCatalogStatus) -> Vec<String> {
        status
            .conditions()
            .iter()
            .filter(|c| !["Ready", "Reconciling", "Stalled"].contains(&c.type_.as_str()))
            .map(|c| format!("{}={}/{}: {}", c.type_, c.status, c.reason, c.message))
            .collect()
    }

    fn summary_line(status: &ClusterCatalogStatus) -> String {
        ["Ready", "Reconciling", "Stalled"]
            .map(|type_| {
                let found = find(status.conditions(), type_);
                found.map_or("-".to_owned(), |c| format!("{}/{}", c.status, c.reason))
            })
            .join(" ")
    }

    #[test]
    fn summary_of_each_outcome() {
        let now = time("2026-01-02T03:04:06Z");
        let summary_after = |outcome: &Outcome| {
            let status = status(None, 2, outcome, &now);
            assert_eq!(status.observed_generation, Some(2));
            summary_line(&status)
        };
        assert_eq!(summary_after(&Outcome::Serving(served())), "True/Available - -");
        assert_eq!(
            summary_after(&Outcome::Unavailable),
            "True/UserSpecifiedUnavailable - -"
        );
        let (message, served) = ("no".to_owned(), Some(served()));
        let retrying = Outcome::Retrying {
            message: message.clone(),
            served: served.clone(),
        };
        assert_eq!(summary_after(&retrying), "False/Retrying True/Retrying -");
        let blocked = Outcome::Blocked { message, served };
        assert_eq!(summary_after(&blocked), "False/Blocked - True/Blocked");
    }

    const SERVING: &str = "Serving=True/Available: Serving desired content from resolved source";
    const SUCCEEDED: &str =
        "Progressing=True/Succeeded: Successfully unpacked and stored content from resolved source";

    #[test]
    fn a_warning_follows_the_usual_text() {
        let served = Served {
            warning: Some("image signatures are not verified".to_owned()),
            ..served()
        };
        let status = status(None, 2, &Outcome::Serving(served), &time("2026-01-02T03:04:06Z"));
        let warned = format!("{SUCCEEDED}; image signatures are not verified");
        assert_eq!(rows(&status), [warned.as_str(), SERVING]);
    }

    #[test]
    fn serving_names_source_address_and_time() {
        let status = status(
            None,
            2,
            &Outcome::Serving(served()),
            &time("2026-01-02T03:04:06Z"),
        );
        assert_eq!(rows(&status), [SUCCEEDED, SERVING]);
        assert_eq!(status.resolved_source.unwrap().image.ref_, served().reference);
        assert_eq!(status.urls.unwrap().base, served().base_url);
        assert_eq!(status.last_unpacked, Some(served().unpacked));
    }

    #[test]
    fn a_first_failure_has_no_serving_condition() {
        let outcome = Outcome::Retrying {
            message: "no".to_owned(),
            served: None,
        };
        let status = status(None, 1, &outcome, &time("2026-01-02T03:04:06Z"));
        assert_eq!(rows(&status), ["Progressing=True/Retrying: no"]);
        assert!(status.resolved_source.is_none());
    }

    #[test]
    fn a_later_failure_keeps_serving() {
        let now = time("2026-01-02T03:04:06Z");
        let before = status(None, 1, &Outcome::Serving(served()), &now);
        let outcome = Outcome::Blocked {
            message: "never".to_owned(),
            served: Some(served()),
        };
        let after = status(Some(&before), 2, &outcome, &now);
        assert_eq!(rows(&after), ["Progressing=False/Blocked: never", SERVING]);
        assert_eq!(after.resolved_source, before.resolved_source);
        let lost = Outcome::Retrying {
            message: "no".to_owned(),
            served: None,
        };
        for (refusal, message) in [
            (None, "The content is missing and must be pulled again"),
            (Some("The policy refuses it"), "The policy refuses it"),
        ] {
            let after = super::status(Some(&before), 2, &lost, None, refusal, &now);
            assert_eq!(rows(&after)[1], format!("Serving=False/Unavailable: {message}"));
            assert!(after.urls.is_none());
        }
    }

    #[test]
    fn unavailable_and_deleting() {
        let now = time("2026-01-02T03:04:06Z");
        let before = status(None, 1, &Outcome::Serving(served()), &now);
        let after = status(Some(&before), 2, &Outcome::Unavailable, &now);
        assert_eq!(
            rows(&after),
            [
                "Progressing=True/Succeeded: Catalog availability mode is set to Unavailable",
                "Serving=False/UserSpecifiedUnavailable: Catalog availability mode is set to Unavailable",
            ]
        );
        assert!(after.urls.is_none() && after.resolved_source.is_none() && after.last_unpacked.is_none());
        let after = status(Some(&before), 2, &Outcome::Deleting, &now);
        assert_eq!(rows(&after)[1], "Serving=False/Unavailable: ");
    }

    #[test]
    fn foreign_conditions_go_and_nothing_changes_twice() {
        let now = time("2026-01-02T03:04:06Z");
        let mut before = status(None, 1, &Outcome::Serving(served()), &now);
        let again = status(
            Some(&before),
            1,
            &Outcome::Serving(served()),
            &time("2026-02-02T03:04:06Z"),
        );
        assert!(same(Some(&before), &again));
        assert_eq!(before, again);
        let mut foreign = before.conditions.clone().unwrap()[0].clone();
        foreign.type_ = "Other".to_owned();
        before.conditions.as_mut().unwrap().push(foreign);
        let again = status(Some(&before), 1, &Outcome::Serving(served()), &now);
        assert_eq!(rows(&again), [SUCCEEDED, SERVING]);
        assert!(!same(Some(&before), &again));
    }
}
