//! The status of a ClusterCatalog, from what one reconcile found.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::{
    CatalogSourceType, ClusterCatalogStatus, ClusterCatalogUrls, ResolvedCatalogSource, ResolvedImageSource,
    condition::{reasons::Catalog as Reason, types::Catalog as Type},
};

use crate::condition::{self, NewCondition};
use crate::summary::{self, State, Summary, find};

/// Content that is served now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The image it was made from, by digest.
    pub reference: String,
    /// Address of the content, `https://host/catalogs/<name>`.
    pub base_url: String,
    /// When the image was unpacked.
    pub unpacked: Time,
    /// What the user should know although all is well; follows upstream's text.
    pub warning: Option<String>,
}

/// What a reconcile came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The wanted content is served.
    Serving(Served),
    /// The user wants it not to be served, and it is not.
    Unavailable,
    /// It failed and is tried again; the content from before, if any, is still served.
    Retrying {
        /// What failed.
        message: String,
        /// What is served meanwhile.
        served: Option<Served>,
    },
    /// It failed and only another spec helps; the content from before, if any, is still served.
    Blocked {
        /// What failed.
        message: String,
        /// What is served meanwhile.
        served: Option<Served>,
    },
    /// The content was removed because the catalog is being deleted.
    Deleting,
}

/// Upstream's text on both conditions of a catalog that the user made unavailable.
const USER_SPECIFIED: &str = "Catalog availability mode is set to Unavailable";

/// The status after `outcome`. Conditions of other types than ours are dropped.
pub fn status(
    old: Option<&ClusterCatalogStatus>,
    generation: i64,
    outcome: &Outcome,
    now: &Time,
) -> ClusterCatalogStatus {
    let mut status = old.cloned().unwrap_or_default();
    let mut conditions = status.conditions.take().unwrap_or_default();
    conditions.retain(|condition| Type::ALL.iter().any(|ours| ours.as_str() == condition.type_));
    let mut set = |type_: Type, holds: bool, reason: Reason, message: &str| {
        let new = NewCondition {
            type_: type_.into(),
            status: if holds { "True" } else { "False" }.to_owned(),
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
    } else if !matches!(outcome, Outcome::Unavailable | Outcome::Deleting) && is_true(status_of(&conditions))
    {
        // What was served by a process whose disk is gone: say so rather than repeat that it is.
        let new = NewCondition {
            type_: Type::Serving.into(),
            status: "False".to_owned(),
            reason: Reason::Unavailable.into(),
            message: "The content is not there any more and has to be pulled again".to_owned(),
            observed_generation: generation,
        };
        condition::set(&mut conditions, new, now);
    }
    let told = summarise(&conditions, outcome);
    summary::put(&mut conditions, told.as_ref(), generation, now);
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
    status
}

/// What tools read. A catalog that the user made unavailable is as the spec wants it.
fn summarise(conditions: &[Condition], outcome: &Outcome) -> Option<Summary> {
    let (type_, state) = match outcome {
        Outcome::Serving(_) | Outcome::Unavailable => (Type::Serving, State::Ready),
        Outcome::Retrying { .. } => (Type::Progressing, State::Working),
        Outcome::Blocked { .. } => (Type::Progressing, State::Stalled),
        Outcome::Deleting => (Type::Serving, State::Working),
    };
    find(conditions, type_.as_str()).map(|condition| Summary::of(state, condition))
}

fn status_of(conditions: &[Condition]) -> Option<&str> {
    find(conditions, Type::Serving.as_str()).map(|condition| condition.status.as_str())
}

fn is_true(status: Option<&str>) -> bool {
    status == Some("True")
}

/// Whether two statuses say the same, whenever their conditions came to say it.
pub fn same(a: Option<&ClusterCatalogStatus>, b: &ClusterCatalogStatus) -> bool {
    let Some(a) = a else { return false };
    let (left, right) = (
        a.conditions.as_deref().unwrap_or_default(),
        b.conditions.as_deref().unwrap_or_default(),
    );
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

    fn served() -> Served {
        Served {
            reference: format!("registry.example/catalog@sha256:{}", "a".repeat(64)),
            base_url: "https://catalogd-service.olmv1-system.svc/catalogs/c".to_owned(),
            unpacked: time("2026-01-02T03:04:05Z"),
            warning: None,
        }
    }

    fn rows(status: &ClusterCatalogStatus) -> Vec<String> {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        conditions
            .iter()
            .filter(|c| !["Ready", "Reconciling", "Stalled"].contains(&c.type_.as_str()))
            .map(|c| format!("{}={}/{}: {}", c.type_, c.status, c.reason, c.message))
            .collect()
    }

    fn for_tools(status: &ClusterCatalogStatus) -> String {
        ["Ready", "Reconciling", "Stalled"]
            .map(|type_| {
                let found = find(status.conditions.as_deref().unwrap_or_default(), type_);
                found.map_or("-".to_owned(), |c| format!("{}/{}", c.status, c.reason))
            })
            .join(" ")
    }

    #[test]
    fn tools_see_how_far_it_is() {
        let now = time("2026-01-02T03:04:06Z");
        let seen = |outcome: &Outcome| {
            let status = status(None, 2, outcome, &now);
            assert_eq!(status.observed_generation, Some(2));
            for_tools(&status)
        };
        assert_eq!(seen(&Outcome::Serving(served())), "True/Available - -");
        assert_eq!(seen(&Outcome::Unavailable), "True/UserSpecifiedUnavailable - -");
        let (message, served) = ("no".to_owned(), Some(served()));
        let retrying = Outcome::Retrying {
            message: message.clone(),
            served: served.clone(),
        };
        assert_eq!(seen(&retrying), "False/Retrying True/Retrying -");
        let blocked = Outcome::Blocked { message, served };
        assert_eq!(seen(&blocked), "False/Blocked - True/Blocked");
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
        let after = status(Some(&before), 2, &lost, &now);
        assert!(
            rows(&after)[1].starts_with("Serving=False/Unavailable: "),
            "{after:?}"
        );
        assert!(after.urls.is_none());
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
