//! `UpgradeAvailable`: whether the spec holds a successor of the installed bundle back. Additive to upstream's conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_resolve::{HeldBack, Hold};

use crate::condition::{self, NewCondition};

const TYPE: &str = "UpgradeAvailable";

/// What is known about upgrades of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// Nothing is installed: there is nothing to upgrade, and no condition.
    #[default]
    NothingInstalled,
    /// Nothing could be resolved, so nobody knows.
    Unknown,
    /// No successor is held back.
    UpToDate,
    /// The former content of a catalog shows no successor that is held back; the present content is not known.
    FormerContent,
    /// This one is.
    HeldBack(HeldBack),
}

/// Tells `upgrade` in `conditions`.
pub fn put(conditions: &mut Vec<Condition>, upgrade: &Upgrade, generation: i64, now: &Time) {
    let (status, reason, message) = match upgrade {
        Upgrade::NothingInstalled => return conditions.retain(|condition| condition.type_ != TYPE),
        Upgrade::Unknown => (
            "Unknown",
            "ResolutionFailed",
            "Nothing could be resolved; Progressing says why".to_owned(),
        ),
        Upgrade::UpToDate => ("False", "UpToDate", "No successor is held back".to_owned()),
        Upgrade::FormerContent => (
            "Unknown",
            "FormerContent",
            "Former content of a catalog shows no successor that is held back; CatalogsDegraded says why the present content \
             is not read"
                .to_owned(),
        ),
        Upgrade::HeldBack(held) => {
            let reason = match held.by {
                Hold::Version { .. } => "HeldByVersion",
                Hold::Channels { .. } => "HeldByChannels",
                Hold::VersionAndChannels { .. } => "HeldByVersionAndChannels",
            };
            ("True", reason, held.to_string())
        }
    };
    let new = NewCondition {
        type_: TYPE.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
    };
    condition::set(conditions, new, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_it_is_named() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let mut conditions = Vec::new();
        let held = HeldBack {
            version: "1.1.0".to_owned(),
            bundle: "a.v1.1.0".to_owned(),
            catalog: "community".to_owned(),
            by: Hold::Version {
                range: "1.0.x".to_owned(),
            },
        };
        put(&mut conditions, &Upgrade::HeldBack(held), 1, &now);
        let told = &conditions[0];
        assert_eq!(
            (told.status.as_str(), told.reason.as_str()),
            ("True", "HeldByVersion")
        );
        assert_eq!(
            told.message,
            "Version 1.1.0 (bundle \"a.v1.1.0\" of catalog \"community\") is held back by spec.source.catalog.version \"1.0.x\""
        );
        put(&mut conditions, &Upgrade::UpToDate, 1, &now);
        assert_eq!((conditions.len(), conditions[0].status.as_str()), (1, "False"));
        put(&mut conditions, &Upgrade::Unknown, 1, &now);
        assert_eq!(conditions[0].status, "Unknown");
        put(&mut conditions, &Upgrade::FormerContent, 1, &now);
        let told = &conditions[0];
        assert_eq!(
            (told.status.as_str(), told.reason.as_str()),
            ("Unknown", "FormerContent")
        );
        put(&mut conditions, &Upgrade::NothingInstalled, 1, &now);
        assert!(conditions.is_empty());
    }
}
