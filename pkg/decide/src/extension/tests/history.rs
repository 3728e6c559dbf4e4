//! Histories of revisions: their order, and the archived revisions that are kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use olm_api::ClusterObjectSet;

use super::{history, now, revision};
use crate::extension::{History, superfluous};

#[test]
fn revisions_are_read_in_the_order_of_their_numbers() {
    let history = history(&[
        (1, "1.0.0", "archived"),
        (2, "1.0.1", "installed"),
        (9, "1.1.0", "rolling"),
        (10, "1.1.0", "rolling"),
    ]);
    assert_eq!(history.highest, 10);
    assert_eq!(history.installed.as_ref().map(|r| r.number), Some(2));
    assert_eq!(history.newest().map(|r| r.number), Some(10));
    let archived: Vec<&str> = history
        .archived
        .iter()
        .map(|revision| revision.name.as_str())
        .collect();
    assert_eq!(archived, ["argo-1"]);
    assert!(superfluous(&history).is_empty());
}

fn names(history: &History) -> Vec<&str> {
    let superfluous = superfluous(history).iter();
    superfluous.map(|revision| revision.name.as_str()).collect()
}

#[test]
fn five_archived_revisions_are_kept() {
    let revisions: Vec<(i64, &str, &str)> = (1..=7).map(|number| (number, "1.0.0", "archived")).collect();
    assert_eq!(names(&history(&revisions)), ["argo-1", "argo-2"]);
}

#[test]
fn an_archived_revision_that_is_being_deleted_does_not_count() {
    let mut objects: Vec<ClusterObjectSet> = (1..=7)
        .map(|number| revision(number, "1.0.0", "archived"))
        .collect();
    objects[0].metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(names(&History::read(&objects)), ["argo-2"]);
}
