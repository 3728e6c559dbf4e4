//! Upgrades that wait for a person, rollbacks and pauses.

use super::*;

#[test]
fn an_upgrade_that_waits_leaves_the_extension_ready() {
    let waits = [
        (
            Progress::AwaitingApproval("approve it".into()),
            "AwaitingApproval",
            "approve it",
        ),
        (
            Progress::AwaitingWindow("opens".into()),
            "AwaitingWindow",
            "opens",
        ),
    ];
    for (progress, reason, message) in waits {
        let outcome = Outcome {
            pending: Some(pending("1.1.0")),
            ..outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], progress.clone())
        };
        let status = status_after(&ClusterExtensionStatus::default(), &outcome);
        has(&status, &format!("Progressing=True/{reason} {message}"));
        has(
            &status,
            "Ready=True/Succeeded Version 1.0.0 is installed and available, from catalog \"community\". Version 1.1.0 waits; \
             see Progressing.",
        );
        assert_eq!(status.pending_plan, Some(pending("1.1.0")));
        assert!(same(&status, &status_after(&status, &outcome)));

        let configuration = Outcome {
            pending: Some(pending("1.0.0")),
            ..outcome.clone()
        };
        has(
            &status_after(&status, &configuration),
            &format!("Ready=False/{reason} {message}"),
        );
        assert!(!same(&status, &status_after(&status, &configuration)));
        let installation = Outcome {
            pending: Some(pending("1.0.0")),
            ..outcome_with(None, vec![], progress)
        };
        let status = status_after(&ClusterExtensionStatus::default(), &installation);
        has(&status, &format!("Reconciling=True/{reason} {message}"));
    }
}

#[test]
fn a_rollback_is_reported_while_it_holds() {
    let back = |automatic: bool, progress: Progress| Outcome {
        rolled_back: Some(RolledBack {
            automatic,
            message: "back".into(),
        }),
        upgrade: Upgrade::RolledBack("back".into()),
        ..outcome_with(Some(rolled_out("a-3", "1.0.0")), vec![], progress)
    };
    let empty = ClusterExtensionStatus::default();
    let failed = status_after(&empty, &back(true, Progress::RolledBack("back".into())));
    for line in [
        "RolledBack=True/RolledBack back",
        "Progressing=False/RolledBack back",
        "UpgradeAvailable=True/RolledBack back",
        "Stalled=True/RolledBack back",
        "Ready=False/RolledBack back",
    ] {
        has(&failed, line);
    }
    let requested = status_after(&failed, &back(false, Progress::Mirrored));
    has(&requested, "RolledBack=True/RollBackRequested back");
    has(
        &requested,
        "Ready=True/Succeeded Version 1.0.0 is installed and available, from catalog \"community\". It was rolled back; see \
         RolledBack.",
    );
    let over = outcome_with(Some(rolled_out("a-3", "1.0.0")), vec![], Progress::Mirrored);
    let over = status_after(&requested, &over);
    assert!(find(over.conditions(), Type::RolledBack).is_none());
}

#[test]
fn a_paused_extension_keeps_what_it_knew() {
    let deprecated = Outcome {
        deprecations: Some(Deprecations {
            package: vec!["package gone".into()],
            ..Deprecations::default()
        }),
        upgrade: Upgrade::UpToDate,
        ..outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored)
    };
    let before = status_after(&ClusterExtensionStatus::default(), &deprecated);
    let paused = Outcome {
        deprecations: None,
        upgrade: Upgrade::Unknown,
        support: None,
        catalogs: None,
        ..outcome_with(
            Some(rolled_out("a-1", "1.0.0")),
            vec![],
            Progress::Paused("resume it".into()),
        )
    };
    let status = status_after(&before, &paused);
    has(&status, "Progressing=False/Paused resume it");
    has(&status, "Stalled=True/Paused resume it");
    has(
        &status,
        "Installed=True/Succeeded Installed bundle registry.example/argocd:1.0.0 successfully",
    );
    has(
        &status,
        "Available=True/ProbesSucceeded Objects are available and pass all probes.",
    );
    has(&status, "PackageDeprecated=True/Deprecated package gone");
    has(
        &status,
        "UpgradeAvailable=False/UpToDate No successor is held back",
    );
    assert!(same(&status, &status_after(&status, &paused)), "nothing flaps");
    let created = status_after(&ClusterExtensionStatus::default(), &paused);
    assert!(
        lines(&created)
            .iter()
            .any(|line| line.starts_with("Deprecated=Unknown"))
    );
}

#[test]
fn the_pause_of_a_revision_is_not_mirrored() {
    let mut resumed = rolled_out("a-1", "1.0.0");
    for condition in &mut resumed.conditions {
        if condition.type_ == "Progressing" {
            (condition.status, condition.reason) = ("False".to_owned(), "Paused".to_owned());
        }
    }
    let status = status_after(
        &ClusterExtensionStatus::default(),
        &outcome_with(Some(resumed), vec![], Progress::Mirrored),
    );
    has(
        &status,
        "Progressing=True/RollingOut Revision 1.0.0 is rolling out.",
    );
    has(
        &status,
        "Reconciling=True/RollingOut Revision 1.0.0 is rolling out.",
    );
}
