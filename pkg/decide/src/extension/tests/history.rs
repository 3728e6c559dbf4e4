//! Histories of revisions: their order, and the archived revisions that are kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use olm_api::{ClusterObjectSet, keys};

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

#[test]
fn a_created_revision_is_the_newest_one() {
    let mut history = history(&[(1, "1.0.0", "installed")]);
    history.add(&revision(2, "1.0.1", "rolling"));
    assert_eq!(
        (history.highest, history.newest().map(|r| r.number)),
        (2, Some(2))
    );
    history.add(&revision(1, "1.0.1", "rolling"));
    assert_eq!(history.highest, 2, "numbers never fall");
}

#[test]
fn numbers_of_revisions_that_are_gone_count() {
    let known = history(&[(2, "1.0.0", "installed"), (3, "1.0.1", "rolling")]);
    let highest = |highest| History {
        highest,
        ..known.clone()
    };
    assert_eq!(known.clone().and_gone(7), highest(7));
    assert_eq!(known.clone().and_gone(1), known);
}

#[test]
fn an_upgrade_begins_above_the_installed_version_and_every_one_that_is_rolling_out() {
    let upgraded = |revisions: &[(i64, &str, &str)], to: &str| {
        let history = history(revisions);
        history.upgraded_by(&to.into()).map(|revision| revision.number)
    };
    assert_eq!(upgraded(&[], "1.1.0"), None);
    let installed = (1, "1.0.0", "installed");
    assert_eq!(upgraded(&[installed], "1.1.0"), Some(1));
    assert_eq!(upgraded(&[installed], "1.0.0"), None);
    let rolling = [installed, (2, "1.1.0", "rolling")];
    assert_eq!(upgraded(&rolling, "1.1.0"), None, "it has begun");
    assert_eq!(upgraded(&rolling, "1.2.0"), Some(1));
    assert_eq!(upgraded(&[(2, "1.1.0", "rolling")], "1.2.0"), None);
}

#[test]
fn a_bundle_is_the_same_by_name_and_version() {
    let bundle = |version: &str| history(&[(1, version, "installed")]).installed.unwrap().bundle;
    let (one, mut other) = (bundle("1.0.0"), bundle("1.0.1"));
    assert!(one.same_bundle(&one) && !one.same_bundle(&other));
    other.name = one.name.clone();
    assert!(!one.same_bundle(&other), "another version");
    other.version = one.version.clone();
    other.name = "another".into();
    assert!(!one.same_bundle(&other), "another name");
}

#[test]
fn the_newest_revision_that_names_one_keeps_the_chosen_namespace() {
    let chosen = |namespaces: &[(i64, &str, Option<&str>)]| {
        let objects: Vec<ClusterObjectSet> = namespaces
            .iter()
            .map(|(number, state, namespace)| {
                let mut object = revision(*number, "1.0.0", state);
                if let Some(namespace) = namespace {
                    let annotations = object.metadata.annotations.get_or_insert_default();
                    annotations.insert(keys::INSTALL_NAMESPACE_ANNOTATION.into(), (*namespace).into());
                }
                object
            })
            .collect();
        History::read(&objects).chosen_namespace().map(str::to_owned)
    };
    assert_eq!(chosen(&[]), None);
    assert_eq!(chosen(&[(1, "installed", None)]), None);
    assert_eq!(
        chosen(&[(1, "archived", Some("a")), (2, "installed", None)]),
        Some("a".into())
    );
    let all = [
        (1, "archived", Some("a")),
        (2, "installed", Some("b")),
        (3, "rolling", Some("c")),
    ];
    assert_eq!(chosen(&all), Some("c".into()));
    assert_eq!(chosen(&all[..2]), Some("b".into()));
}
