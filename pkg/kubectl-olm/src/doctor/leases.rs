//! Leases of the controllers, and clocks.

use k8s_openapi::jiff::Timestamp;
use olm_manifests::NAMESPACE;

use super::Lease;
use crate::finding::{Finding, Severity};

/// Seconds that a lease's renewal may lie in the future of the API server's clock.
const AHEAD: i64 = 10;
/// Seconds that the clock of this machine may differ from the API server's.
const SKEW: i64 = 60;

/// Checks that a replica of each controller leads.
pub(crate) fn check(leases: &[Lease]) -> Vec<Finding> {
    leases.iter().filter_map(one).collect()
}

fn one(found: &Lease) -> Option<Finding> {
    let object = format!("Lease {NAMESPACE}/{}", found.name);
    let next = "see the pods of the controller and their logs: kubectl olm support-bundle collects them";
    let Some(lease) = &found.object else {
        return Some(Finding::new(
            Severity::Error,
            object,
            "it does not exist: no replica has led yet",
            next,
        ));
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    if holder.is_empty() {
        return Some(Finding::new(
            Severity::Error,
            object,
            "nobody holds it: no replica leads",
            next,
        ));
    }
    let renewed = lease["spec"]["renewTime"]
        .as_str()
        .and_then(|time| time.parse::<Timestamp>().ok());
    let Some(renewed) = renewed else {
        return Some(Finding::new(
            Severity::Error,
            object,
            "it was never renewed: no replica leads",
            next,
        ));
    };
    let age = found.read_at.as_second() - renewed.as_second();
    let duration = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or_default();
    if age > duration {
        let cause =
            format!("{holder} renewed it {age} seconds ago and no replica took over; nothing is reconciled");
        return Some(Finding::new(Severity::Error, object, cause, next));
    }
    (age < -AHEAD).then(|| {
        Finding::new(
            Severity::Warning,
            object,
            format!(
                "{holder} renewed it {} seconds in the future: the clock of its node is ahead",
                -age
            ),
            "synchronise the clocks of the nodes (NTP)",
        )
    })
}

/// Compares the clocks of the API server and of this machine.
pub(crate) fn clock(server: Option<Timestamp>, local: Timestamp) -> Option<Finding> {
    let difference = local.as_second() - server?.as_second();
    (difference.abs() > SKEW).then(|| {
        let side = if difference > 0 { "ahead of" } else { "behind" };
        Finding::new(
            Severity::Warning,
            "the clock of this machine",
            format!("it is {} seconds {side} the API server's", difference.abs()),
            "synchronise the clocks (NTP); certificates and tokens may be refused otherwise",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn leases() {
        let lease = |holder: &str| {
            json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
                "renewTime": at(1000).to_string()}})
        };
        let severity = |object: Option<&Value>, now| {
            let lease = Lease {
                name: "l".to_owned(),
                object: object.cloned(),
                read_at: at(now),
            };
            one(&lease).map(|finding| finding.severity)
        };
        assert_eq!(severity(Some(&lease("pod")), 1010), None);
        assert_eq!(severity(Some(&lease("pod")), 1016), Some(Severity::Error));
        assert_eq!(severity(Some(&lease("pod")), 980), Some(Severity::Warning));
        assert_eq!(severity(Some(&lease("")), 1010), Some(Severity::Error));
        assert_eq!(severity(None, 1010), Some(Severity::Error));
    }

    #[test]
    fn clocks() {
        assert_eq!(clock(None, at(0)), None);
        assert_eq!(clock(Some(at(100)), at(150)), None);
        let cause = |local| clock(Some(at(1000)), at(local)).map(|finding| finding.cause);
        assert_eq!(
            cause(900).as_deref(),
            Some("it is 100 seconds behind the API server's")
        );
        assert_eq!(
            cause(1100).as_deref(),
            Some("it is 100 seconds ahead of the API server's")
        );
    }
}
