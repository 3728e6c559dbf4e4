//! The conditions of each outcome.

use super::*;

#[test]
fn installed() {
    let outcome = outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    assert_eq!(
        lines(&status),
        [
            "Installed=True/Succeeded Installed bundle registry.example/argocd:1.0.0 successfully",
            "Available=True/ProbesSucceeded Objects are available and pass all probes.",
            "Progressing=True/Succeeded Revision 1.0.0 has rolled out.",
            "Deprecated=False/NotDeprecated not deprecated",
            "PackageDeprecated=False/NotDeprecated package not deprecated",
            "ChannelDeprecated=False/NotDeprecated channel not deprecated",
            "BundleDeprecated=False/NotDeprecated bundle not deprecated",
            "Ready=True/Succeeded Version 1.0.0 is installed and available, from catalog \"community\".",
        ]
    );
    let bundle = status.install.unwrap().bundle;
    assert_eq!(
        (bundle.name.as_str(), bundle.version.as_str()),
        ("argocd-operator.v1.0.0", "1.0.0")
    );
    let active = status.active_revisions.unwrap();
    assert_eq!(
        active,
        [RevisionStatus {
            name: "a-1".into(),
            conditions: None
        }]
    );
}

#[test]
fn a_move_to_another_catalog_is_reported() {
    let mut moved = rolled_out("a-2", "1.0.1");
    moved.moved_from = Some("old".into());
    let text = "It moved to catalog \"community\" because catalog \"old\" of the installed bundle was deleted, \
                disabled or no longer selected.";
    let status = status_after(
        &ClusterExtensionStatus::default(),
        &outcome_with(Some(moved.clone()), vec![], Progress::Mirrored),
    );
    let line = format!(
        "Ready=True/Succeeded Version 1.0.1 is installed and available, from catalog \"community\". {text}"
    );
    has(&status, &line);
    let install = status.install.unwrap();
    assert_eq!(
        (install.catalog.as_deref(), install.moved_from.as_deref()),
        (Some("community"), Some("old"))
    );
    moved.conditions.clear();
    let status = status_after(
        &ClusterExtensionStatus::default(),
        &outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![moved], Progress::Mirrored),
    );
    let rolling = "Revision 1.0.1 is rolling out.";
    has(&status, &format!("Progressing=True/RollingOut {rolling}"));
    has(&status, &format!("Reconciling=True/RollingOut {rolling} {text}"));
}

#[test]
fn a_failing_watch_is_mirrored_from_the_newest_revision_that_has_one() {
    let failing = |name: &str, version: &str, message: &str| {
        let mut revision = rolled_out(name, version);
        let watch = condition("WatchFailing", "True", "Forbidden", message);
        revision.conditions.push(watch);
        revision
    };
    let installed = failing("a-1", "1.0.0", "old");
    let newer = vec![failing("a-2", "1.1.0", "new"), rolled_out("a-3", "1.2.0")];
    let none = ClusterExtensionStatus::default();
    let both = outcome_with(Some(installed.clone()), newer, Progress::Mirrored);
    let status = status_after(&none, &both);
    has(&status, "WatchFailing=True/Forbidden new");
    let one = outcome_with(Some(installed), vec![], Progress::Mirrored);
    has(&status_after(&status, &one), "WatchFailing=True/Forbidden old");
    let well = outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
    let status = status_after(&status, &well);
    assert!(!lines(&status).iter().any(|line| line.starts_with("WatchFailing")));
}

#[test]
fn new_first_revision() {
    let outcome = outcome_with(None, vec![revision("a-1", "1.0.0", vec![])], Progress::Mirrored);
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    has(&status, "Installed=False/Absent No bundle installed");
    has(
        &status,
        "Progressing=True/RollingOut Revision 1.0.0 is rolling out.",
    );
    has(&status, "BundleDeprecated=Unknown/Absent no bundle installed yet");
    assert_eq!(status.install, None);
}

#[test]
fn a_revision_that_retries_makes_the_installation_a_failure() {
    let retrying = vec![condition("Progressing", "True", "Retrying", "collision")];
    let outcome = outcome_with(None, vec![revision("a-1", "1.0.0", retrying)], Progress::Mirrored);
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    has(&status, "Installed=False/Failed No bundle installed");
    has(&status, "Progressing=True/Retrying collision");
}

#[test]
fn an_upgrade_in_progress_shows_both_revisions() {
    let rolling = vec![
        condition(
            "Progressing",
            "True",
            "RollingOut",
            "Revision 1.0.1 is rolling out.",
        ),
        condition(
            "Available",
            "False",
            "ProbeFailure",
            "Object Deployment.apps/v1 n/d: not ready",
        ),
    ];
    let outcome = outcome_with(
        Some(rolled_out("a-1", "1.0.0")),
        vec![revision("a-2", "1.0.1", rolling.clone())],
        Progress::Mirrored,
    );
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    has(
        &status,
        "Progressing=True/RollingOut Revision 1.0.1 is rolling out.",
    );
    // Available is about the installed revision.
    has(
        &status,
        "Available=True/ProbesSucceeded Objects are available and pass all probes.",
    );
    let active = status.active_revisions.unwrap();
    assert_eq!(
        active[0],
        RevisionStatus {
            name: "a-1".into(),
            conditions: None
        }
    );
    let both = vec![rolling[1].clone(), rolling[0].clone()];
    assert_eq!(
        active[1],
        RevisionStatus {
            name: "a-2".into(),
            conditions: Some(both)
        }
    );
}

#[test]
fn each_failure() {
    for (progress, line) in [
        (
            Progress::Retrying("no bundles found".into()),
            "Progressing=True/Retrying no bundles found",
        ),
        (Progress::Blocked("bad".into()), "Progressing=False/Blocked bad"),
        (
            Progress::InvalidConfiguration("f".into()),
            "Progressing=False/InvalidConfiguration f",
        ),
        (Progress::Removing("a-1".into()), "Progressing=True/Retrying a-1"),
    ] {
        let outcome = outcome_with(None, vec![], progress);
        let status = status_after(&ClusterExtensionStatus::default(), &outcome);
        has(&status, line);
        has(&status, "Installed=False/Failed No bundle installed");
    }
}

#[test]
fn a_removal_remembers_that_there_were_revisions() {
    let installed = outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
    let old = status_after(&ClusterExtensionStatus::default(), &installed);
    let after = |progress| status_after(&old, &outcome_with(None, vec![], progress)).active_revisions;
    assert!(old.active_revisions.is_some());
    assert_eq!(after(Progress::Removing("a-1".into())), old.active_revisions);
    assert_eq!(after(Progress::Mirrored), None);
}

#[test]
fn unreadable_revisions() {
    let outcome = Outcome {
        revisions: Revisions::Unreadable("boom".into()),
        progress: Progress::Mirrored,
        deprecations: None,
        upgrade: Upgrade::Unknown,
        support: None,
        catalogs: None,
        pending: None,
        windows: None,
        rolled_back: None,
    };
    let old = status_after(
        &ClusterExtensionStatus::default(),
        &outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored),
    );
    let status = status_after(&old, &outcome);
    has(&status, "Installed=Unknown/Failed boom");
    has(
        &status,
        "Progressing=True/Retrying retrying to get installed bundle",
    );
    has(&status, "Ready=Unknown/Failed boom");
    assert_eq!(status.install, None);

    // A paused extension does not retry.
    let paused = Outcome {
        progress: Progress::Paused("resume it".into()),
        ..outcome
    };
    let status = status_after(&old, &paused);
    has(&status, "Installed=Unknown/Failed boom");
    has(&status, "Progressing=False/Paused resume it");
    has(&status, "Stalled=True/Paused resume it");
}

#[test]
fn deprecations() {
    let mut outcome = outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
    outcome.deprecations = Some(Deprecations {
        package: vec!["package gone".into()],
        channels: vec!["alpha gone".into(), "beta gone".into()],
        bundles: vec!["bundle gone".into()],
    });
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    has(
        &status,
        "Deprecated=True/Deprecated package gone\nalpha gone\nbeta gone\nbundle gone",
    );
    has(&status, "PackageDeprecated=True/Deprecated package gone");
    has(&status, "ChannelDeprecated=True/Deprecated alpha gone\nbeta gone");
    has(&status, "BundleDeprecated=True/Deprecated bundle gone");

    outcome.deprecations = None;
    let unknown = "deprecation status unknown: catalog data unavailable";
    let status = status_after(&status, &outcome);
    for type_ in [
        "Deprecated",
        "PackageDeprecated",
        "ChannelDeprecated",
        "BundleDeprecated",
    ] {
        has(
            &status,
            &format!("{type_}=Unknown/DeprecationStatusUnknown {unknown}"),
        );
    }
    let outcome = Outcome {
        deprecations: None,
        ..outcome_with(None, vec![], Progress::Blocked("x".into()))
    };
    has(
        &status_after(&status, &outcome),
        "BundleDeprecated=Unknown/Absent no bundle installed yet",
    );
}

#[test]
fn availability_goes_with_the_installation() {
    let old = status_after(
        &ClusterExtensionStatus::default(),
        &outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored),
    );
    let status = status_after(&old, &outcome_with(None, vec![], Progress::Retrying("x".into())));
    assert!(!lines(&status).iter().any(|line| line.starts_with("Available")));
}
