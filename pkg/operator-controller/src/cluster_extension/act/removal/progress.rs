//! Progress of a removal, and the time at which it is worth a report. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use olm_api::condition::{find, reasons, types};
use olm_api::{ClusterExtension, ClusterObjectSet};

/// Time after which a removal is reported: since the deletion if a revision says that it waits, else since the last progress. Most removals
/// are over before.
const REPORT_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// Most revisions that a message names.
const NAMED: usize = 5;

/// Returns the time until the removal of the extension, with these revisions left, is worth a report; `None` if it is.
pub(super) fn unreported(
    extension: &ClusterExtension,
    left: &[ClusterObjectSet],
    now: Timestamp,
) -> Option<Duration> {
    let deleted = extension.metadata.deletion_timestamp.as_ref()?.0;
    let since = if left.iter().any(|revision| hold_up(revision).is_some()) {
        deleted
    } else {
        left.iter().fold(deleted, |since, revision| {
            // A revision that does not show its deletion was deleted just now.
            let begun = revision.metadata.deletion_timestamp.as_ref();
            since.max(begun.map_or(now, |begun| begun.0))
        })
    };
    let passed = now.duration_since(since);
    // The clock of the API server may be ahead.
    let is_young = !passed.is_negative() && passed < REPORT_AFTER;
    let left = is_young.then(|| REPORT_AFTER.saturating_sub(passed))?;
    Duration::try_from(left).ok()
}

/// Returns the names of the revisions that are left, and what the newest one waits for.
pub(super) fn waiting(left: &[ClusterObjectSet]) -> String {
    let mut names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut text = format!(
        "being deleted: waiting for the objects of {} to be removed",
        names.join(", ")
    );
    if more > 0 {
        text.push_str(" and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    // The newest revision's own condition names what holds it up.
    let newest = left.iter().max_by_key(|revision| revision.spec.revision);
    if let Some(message) = newest.and_then(hold_up) {
        text.push_str(": ");
        text.push_str(message);
    }
    text
}

/// Returns the message of a revision that says that it waits or fails.
fn hold_up(revision: &ClusterObjectSet) -> Option<&str> {
    let progressing = find(revision.conditions(), types::ObjectSet::Progressing)?;
    (progressing.reason == reasons::ObjectSet::Retrying).then_some(progressing.message.as_str())
}

#[cfg(test)]
pub(super) mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;

    /// Returns an active revision with these fields instead.
    pub(in super::super) fn revision_with(number: i64, change: &Value) -> ClusterObjectSet {
        let mut revision = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {}, "spec": {"lifecycleState": "Active", "revision": number, "collisionProtection": "Prevent"}});
        for (field, value) in change.as_object().unwrap() {
            revision[field] = value.clone();
        }
        revision["metadata"]["name"] = json!(format!("x-{number}"));
        serde_json::from_value(revision).unwrap()
    }

    /// An extension that was deleted at this time.
    fn deleted(at: Option<&str>) -> ClusterExtension {
        let spec =
            json!({"namespace": "n", "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}});
        let mut extension = ClusterExtension::new("x", serde_json::from_value(spec).unwrap());
        extension.metadata.deletion_timestamp = at.map(|at| Time(at.parse().unwrap()));
        extension
    }

    #[test]
    fn a_removal_is_reported_once_it_takes_seconds() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let left = |at: Option<&str>| unreported(&deleted(at), &[], now);
        assert_eq!(left(None), None);
        assert_eq!(left(Some("2026-01-01T00:00:08Z")), Some(Duration::from_secs(3)));
        assert_eq!(left(Some("2026-01-01T00:00:05Z")), None);
        assert_eq!(left(Some("2026-01-01T00:00:11Z")), None, "another clock");
    }

    #[test]
    fn a_removal_that_goes_on_is_not_reported() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let extension = deleted(Some("2026-01-01T00:00:00Z"));
        let left = |revisions: &[ClusterObjectSet]| unreported(&extension, revisions, now);
        let going =
            |number: i64, at: &str| revision_with(number, &json!({"metadata": {"deletionTimestamp": at}}));
        let (old, young) = (going(1, "2026-01-01T00:00:10Z"), going(2, "2026-01-01T00:00:58Z"));
        assert_eq!(left(std::slice::from_ref(&old)), None, "nothing happens any more");
        assert_eq!(left(&[old.clone(), young.clone()]), Some(Duration::from_secs(3)));
        let undeleted = revision_with(3, &json!({}));
        assert_eq!(left(&[old, undeleted]), Some(REPORT_AFTER.unsigned_abs()));
        let condition = json!({"type": "Progressing", "status": "True", "reason": "Retrying", "message": "held",
            "lastTransitionTime": "2026-01-01T00:00:59Z"});
        let waits = revision_with(
            3,
            &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:58Z"}, "status": {"conditions": [condition]}}),
        );
        assert_eq!(left(&[young, waits]), None, "a revision says that it waits");
    }
}
