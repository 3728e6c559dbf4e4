//! Differences between two statuses that count as a change.

use super::*;

#[test]
fn an_equal_outcome_is_no_change() {
    let outcome = outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
    let first = status_after(&ClusterExtensionStatus::default(), &outcome);
    let later = extension(&first, &outcome, 7, &time("2026-03-03T00:00:00Z"));
    assert!(same(&first, &later));
    assert_eq!(first, later, "no status changed, so no transition time did");
    let next = extension(&first, &outcome, 8, &time("2026-03-03T00:00:00Z"));
    assert!(!same(&first, &next), "the generation differs");
}

#[test]
fn a_difference_in_one_field_is_a_change() {
    let old = ClusterExtensionStatus::default();
    let changes: [fn(&mut ClusterExtensionStatus); 7] = [
        |new| new.install = Some(ClusterExtensionInstallStatus::default()),
        |new| new.pending_plan = Some(pending("1.1.0")),
        |new| {
            new.rollout = Some(RolloutStatus {
                window: olm_api::WindowState::Open,
                closes_at: None,
                opens_at: None,
            });
        },
        |new| new.upgrade = Some(olm_api::AvailableUpgrade::default()),
        |new| new.observed_generation = Some(7),
        |new| {
            new.active_revisions = Some(vec![RevisionStatus {
                name: "a-1".to_owned(),
                conditions: None,
            }]);
        },
        |new| new.conditions = Some(vec![condition("Ready", "True", "Succeeded", "")]),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut new = old.clone();
        change(&mut new);
        assert!(!same(&old, &new), "change {at}");
        assert!(same(&new, &new.clone()), "change {at}");
    }
}

#[test]
fn a_difference_in_the_revisions_is_a_change() {
    let revision = |name: &str, conditions: Vec<Condition>| RevisionStatus {
        name: name.to_owned(),
        conditions: Some(conditions),
    };
    let with = |revisions: Vec<RevisionStatus>| ClusterExtensionStatus {
        active_revisions: Some(revisions),
        ..ClusterExtensionStatus::default()
    };
    let available = |status: &str| condition("Available", status, "ProbesSucceeded", "");
    let old = with(vec![revision("a-1", vec![available("True")])]);
    for new in [
        vec![revision("a-2", vec![available("True")])],
        vec![revision("a-1", vec![available("False")])],
        vec![revision("a-1", vec![])],
        vec![revision("a-1", vec![available("True")]), revision("a-2", vec![])],
    ] {
        let new = with(new);
        assert!(!same(&old, &new), "{new:?}");
    }
    let later = Condition {
        last_transition_time: time("2026-03-03T00:00:00Z"),
        ..available("True")
    };
    assert!(same(&old, &with(vec![revision("a-1", vec![later])])));
}
