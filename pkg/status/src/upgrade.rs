//! `UpgradeAvailable`: a successor of the installed bundle that the spec holds back. Additive to upstream's
//! conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::condition::{Status, reasons::Extension as Reason, types::Extension as Type};
use olm_api::{AvailableUpgrade, PendingPlan};
use olm_resolve::{HeldBack, HeldBy};
use olm_text::cut;

use crate::condition::{self, NewCondition};

const TYPE: &str = Type::UpgradeAvailable.as_str();

/// Upgrade that the spec holds back, or the reason why the status shows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// No bundle is installed; the condition is absent.
    #[default]
    NothingInstalled,
    /// The resolution failed.
    Unknown,
    /// No successor is held back.
    UpToDate,
    /// The former content of a catalog shows no successor that is held back; the present content is unknown.
    FormerContent,
    /// The spec holds a successor back.
    HeldBack(HeldBack),
    /// A successor waits for its approval.
    AwaitingApproval(String),
    /// A successor waits for a window.
    AwaitingWindow(String),
    /// Another version is not rolled out, because the extension was rolled back.
    RolledBack(String),
    /// The installed operator holds a successor.
    HeldByOperator(String),
}

/// Maximum length of a name or version in the status, in bytes.
const TEXT_LIMIT: usize = 253;

/// Returns the upgrade for the status: the one that waits as `pending`, or the one that the spec holds back.
#[must_use]
pub fn available(upgrade: &Upgrade, pending: Option<&PendingPlan>) -> Option<AvailableUpgrade> {
    let text = |text: &str| cut(text, TEXT_LIMIT).into_owned();
    match upgrade {
        Upgrade::NothingInstalled
        | Upgrade::Unknown
        | Upgrade::UpToDate
        | Upgrade::FormerContent
        | Upgrade::RolledBack(_) => None,
        Upgrade::HeldBack(held) => Some(AvailableUpgrade {
            version: text(&held.version.to_string()),
            bundle: text(&held.bundle),
            catalog: Some(text(&held.catalog)),
        }),
        Upgrade::AwaitingApproval(_) | Upgrade::AwaitingWindow(_) | Upgrade::HeldByOperator(_) => pending
            .map(|plan| AvailableUpgrade {
                version: text(&plan.bundle.version),
                bundle: text(&plan.bundle.name),
                catalog: plan.catalog.as_deref().map(text),
            }),
    }
}

/// Sets or removes the condition.
pub fn put(conditions: &mut Vec<Condition>, upgrade: &Upgrade, generation: i64, now: &Time) {
    let (status, reason, message) = match upgrade {
        Upgrade::NothingInstalled => return conditions.retain(|condition| condition.type_ != TYPE),
        Upgrade::Unknown => (
            Status::Unknown,
            Reason::ResolutionFailed,
            "The resolution failed; see Progressing".to_owned(),
        ),
        Upgrade::UpToDate => (
            Status::False,
            Reason::UpToDate,
            "No successor is held back".to_owned(),
        ),
        Upgrade::FormerContent => (
            Status::Unknown,
            Reason::FormerContent,
            "Former content of a catalog shows no successor that is held back; see CatalogsDegraded"
                .to_owned(),
        ),
        Upgrade::HeldBack(held) => {
            let reason = match held.by {
                HeldBy::Version { .. } => Reason::HeldByVersion,
                HeldBy::Channels { .. } => Reason::HeldByChannels,
                HeldBy::VersionAndChannels { .. } => Reason::HeldByVersionAndChannels,
            };
            (Status::True, reason, held.to_string())
        }
        Upgrade::AwaitingApproval(message) => (Status::True, Reason::AwaitingApproval, message.clone()),
        Upgrade::AwaitingWindow(message) => (Status::True, Reason::AwaitingWindow, message.clone()),
        Upgrade::RolledBack(message) => (Status::True, Reason::RolledBack, message.clone()),
        Upgrade::HeldByOperator(message) => (Status::True, Reason::HeldByOperator, message.clone()),
    };
    let new = NewCondition {
        type_: TYPE.to_owned(),
        status,
        reason: reason.into(),
        message,
        observed_generation: generation,
    };
    condition::set(conditions, new, now);
}

#[cfg(test)]
mod tests {
    use olm_version::{RequestedRange, VersionRelease};

    use super::*;

    #[test]
    fn an_upgrade_that_waits_is_that_of_the_plan() {
        let mut plan = PendingPlan::default();
        plan.bundle.version = "1.1.0".to_owned();
        let held = Upgrade::HeldByOperator("no".to_owned());
        assert_eq!(
            available(&held, Some(&plan)).map(|upgrade| upgrade.version),
            Some("1.1.0".to_owned())
        );
        assert_eq!(available(&held, None), None);
        assert_eq!(
            available(&Upgrade::UpToDate, Some(&plan)),
            None,
            "a changed configuration waits"
        );
    }

    #[test]
    fn condition_of_each_state() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let mut conditions = Vec::new();
        let held = HeldBack {
            version: VersionRelease::parse_legacy("1.1.0").unwrap(),
            bundle: "a.v1.1.0".into(),
            catalog: "community".into(),
            by: HeldBy::Version {
                range: RequestedRange::new("1.0.x").unwrap(),
            },
        };
        let offered = available(&Upgrade::HeldBack(held.clone()), None).unwrap();
        assert_eq!(
            (
                offered.version.as_str(),
                offered.bundle.as_str(),
                offered.catalog.as_deref()
            ),
            ("1.1.0", "a.v1.1.0", Some("community"))
        );
        put(&mut conditions, &Upgrade::HeldBack(held), 1, &now);
        let condition = &conditions[0];
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            ("True", "HeldByVersion")
        );
        assert_eq!(
            condition.message,
            "Version 1.1.0 (bundle \"a.v1.1.0\" of catalog \"community\") is held back by spec.source.catalog.version \"1.0.x\""
        );
        put(&mut conditions, &Upgrade::UpToDate, 1, &now);
        assert_eq!((conditions.len(), conditions[0].status.as_str()), (1, "False"));
        put(&mut conditions, &Upgrade::Unknown, 1, &now);
        assert_eq!(conditions[0].status, "Unknown");
        put(&mut conditions, &Upgrade::FormerContent, 1, &now);
        let condition = &conditions[0];
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            ("Unknown", "FormerContent")
        );
        put(
            &mut conditions,
            &Upgrade::AwaitingApproval("1.1.0".to_owned()),
            1,
            &now,
        );
        let condition = &conditions[0];
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            ("True", "AwaitingApproval")
        );
        put(&mut conditions, &Upgrade::NothingInstalled, 1, &now);
        assert!(conditions.is_empty());
    }
}
