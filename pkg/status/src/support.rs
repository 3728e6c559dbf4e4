//! `EndOfSupport`: end of the support of the installed version. The condition is additive to upstream's. It is present
//! only if the catalog has lifecycles of the package, so that the status of other packages is upstream's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use olm_api::condition::{Status, reasons::Extension as Reason, types::Extension as Type};
use olm_resolve::{Support, SupportAnswer, SupportState};

use crate::condition::{self, NewCondition};

const TYPE: &str = Type::EndOfSupport.as_str();

/// Sets or removes the condition. With `None` the catalog that counts was not read, and an existing condition keeps its
/// text.
pub fn put(conditions: &mut Vec<Condition>, answer: Option<&SupportAnswer>, generation: i64, now: &Time) {
    let (status, reason, message) = match answer {
        None => {
            return conditions
                .iter_mut()
                .filter(|condition| condition.type_ == TYPE)
                .for_each(|condition| condition.observed_generation = Some(generation));
        }
        Some(SupportAnswer::NoData) => return conditions.retain(|condition| condition.type_ != TYPE),
        Some(SupportAnswer::Unknown(unknown)) => {
            let message = format!(
                "The end of support of version {} is unknown: {}.",
                unknown.version, unknown.reason
            );
            (Status::Unknown, Reason::SupportUnknown, message)
        }
        Some(SupportAnswer::Known(support)) => known(support),
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

fn known(support: &Support) -> (Status, Reason, String) {
    let (ended, reason, next_step) = match support.state {
        SupportState::Supported => (false, Reason::Supported, ""),
        SupportState::BetweenPhases => (false, Reason::BetweenPhases, ""),
        SupportState::EndingSoon => (
            false,
            Reason::EndingSoon,
            " Upgrade to a later version before that.",
        ),
        SupportState::Ended => (true, Reason::Ended, " Upgrade to a supported version."),
    };
    (Status::from(ended), reason, format!("{support}{next_step}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use olm_fbc::lifecycle::Lifecycles;

    fn answer(today: &str) -> SupportAnswer {
        let mut lifecycles = Lifecycles::default();
        lifecycles.add(
            br#"{"versions": [{"name": "1.0", "phases": [{"name": "Full support", "startDate": "2024-01-01", "endDate": "2024-12-31"}]}]}"#,
        );
        let version = olm_version::Version::new(1, 0, 3);
        SupportAnswer::of(&lifecycles, &version, today.parse().unwrap())
    }

    #[test]
    fn the_condition_follows_the_days() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let mut conditions = Vec::new();
        put(&mut conditions, None, 1, &now);
        put(&mut conditions, Some(&SupportAnswer::NoData), 1, &now);
        assert_eq!(
            conditions,
            [],
            "packages without lifecycles have no such condition"
        );
        let phase = "Version 1.0 is in support phase \"Full support\" until the end of 2024-12-31. Support ends with 2024-12-31.";
        for (today, status, reason, message) in [
            (
                "2023-12-31",
                "False",
                "BetweenPhases",
                "No support phase of version 1.0 covers this day; the next one is \"Full support\", from 2024-01-01."
                    .to_owned(),
            ),
            ("2024-01-01", "False", "Supported", phase.to_owned()),
            ("2024-12-31", "False", "EndingSoon", format!("{phase} Upgrade to a later version before that.")),
            (
                "2025-01-01",
                "True",
                "Ended",
                "Support of version 1.0 ended with 2024-12-31. Upgrade to a supported version.".to_owned(),
            ),
        ] {
            put(&mut conditions, Some(&answer(today)), 1, &now);
            let found = &conditions[0];
            let reported = (found.status.as_str(), found.reason.as_str(), found.message.clone());
            assert_eq!(reported, (status, reason, message));
        }
        put(&mut conditions, None, 2, &now);
        assert_eq!(
            (conditions[0].reason.as_str(), conditions[0].observed_generation),
            ("Ended", Some(2))
        );
        let unknown = SupportAnswer::of(
            &unreadable(),
            &olm_version::Version::new(1, 0, 3),
            "2024-01-01".parse().unwrap(),
        );
        put(&mut conditions, Some(&unknown), 2, &now);
        assert_eq!(
            (
                conditions[0].status.as_str(),
                conditions[0].reason.as_str(),
                conditions[0].message.as_str()
            ),
            (
                "Unknown",
                "SupportUnknown",
                "The end of support of version 1.0 is unknown: an object with lifecycles is ignored: the object is no map."
            )
        );
        put(&mut conditions, Some(&SupportAnswer::NoData), 2, &now);
        assert_eq!(conditions, []);
    }

    fn unreadable() -> Lifecycles {
        let mut lifecycles = Lifecycles::default();
        lifecycles.add(b"7");
        lifecycles
    }
}
