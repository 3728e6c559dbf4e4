//! Exact texts of the conditions for every outcome.

use super::*;

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        observed_generation: Some(1),
        last_transition_time: time("2026-01-01T00:00:00Z"),
    }
}

fn revision(name: &str, version: &str, conditions: Vec<Condition>) -> RevisionView {
    RevisionView {
        install_namespace: None,
        name: name.into(),
        bundle: format!("argocd-operator.v{version}").into(),
        version: version.into(),
        image: format!("registry.example/argocd:{version}").into(),
        catalog: Some("community".into()),
        moved_from: None,
        conditions,
    }
}

fn rolled_out(name: &str, version: &str) -> RevisionView {
    let text = format!("Revision {version} has rolled out.");
    revision(
        name,
        version,
        vec![
            condition("Progressing", "True", "Succeeded", &text),
            condition(
                "Available",
                "True",
                "ProbesSucceeded",
                "Objects are available and pass all probes.",
            ),
            condition(
                "Succeeded",
                "True",
                "Succeeded",
                "Revision succeeded rolling out.",
            ),
        ],
    )
}

fn status_after(old: &ClusterExtensionStatus, outcome: &Outcome) -> ClusterExtensionStatus {
    extension(old, outcome, 7, &time("2026-02-02T00:00:00Z"))
}

/// Formats all conditions as `Type=Status/Reason message`.
fn lines(status: &ClusterExtensionStatus) -> Vec<String> {
    let line = |c: &Condition| {
        assert_eq!(c.observed_generation, Some(7), "{c:?}");
        format!("{}={}/{} {}", c.type_, c.status, c.reason, c.message)
    };
    status.conditions.iter().flatten().map(line).collect()
}

fn has(status: &ClusterExtensionStatus, line: &str) {
    let lines = lines(status);
    assert!(lines.iter().any(|l| l == line), "{line} not in {lines:#?}");
}

fn outcome_with(
    installed: Option<RevisionView>,
    rolling_out: Vec<RevisionView>,
    progress: Progress,
) -> Outcome {
    Outcome {
        revisions: Revisions::Known {
            installed,
            rolling_out,
        },
        progress,
        deprecations: Some(Deprecations::default()),
        upgrade: Upgrade::NothingInstalled,
        support: None,
        catalogs: Some(UnreadCatalogs::default()),
        pending: None,
        windows: None,
        rolled_back: None,
    }
}

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
    assert_eq!(status.install, None);
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

#[test]
fn three_kinds_of_progress_wait() {
    let text = || "x".to_owned();
    for progress in [
        Progress::AwaitingApproval(text()),
        Progress::AwaitingWindow(text()),
        Progress::HeldByOperator(text()),
    ] {
        assert!(progress.is_waiting(), "{progress:?}");
    }
    for progress in [
        Progress::Mirrored,
        Progress::Retrying(text()),
        Progress::Blocked(text()),
        Progress::Paused(text()),
    ] {
        assert!(!progress.is_waiting(), "{progress:?}");
    }
}

#[test]
fn a_workload_that_stops_being_ready_is_not_rolled_out_again() {
    let rolling = "Revision 1.0.0 is rolling out.";
    let degraded = revision(
        "a-1",
        "1.0.0",
        vec![
            condition("Progressing", "True", "RollingOut", rolling),
            condition(
                "Available",
                "False",
                "ProbeFailure",
                "Object Deployment.apps/v1 ns/a: x",
            ),
        ],
    );
    let outcome = outcome_with(Some(degraded), vec![], Progress::Mirrored);
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    has(&status, &format!("Progressing=True/RollingOut {rolling}"));
    has(
        &status,
        "Ready=False/ProbeFailure Object Deployment.apps/v1 ns/a: x",
    );
    assert!(!lines(&status).iter().any(|line| line.starts_with("Reconciling")));
}

#[test]
fn an_extension_at_rest_stays_ready_while_resolution_fails() {
    let outcome = |progress| outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], progress);
    let unavailable = || outcome(Progress::Unresolved("the catalog is away".into()));
    let ready = "Ready=True/Succeeded Version 1.0.0 is installed and available, from catalog \"community\".";
    let unresolved = status_after(&ClusterExtensionStatus::default(), &unavailable());
    has(&unresolved, "Ready=False/Retrying the catalog is away");
    has(&unresolved, "Reconciling=True/Retrying the catalog is away");

    let at_rest = status_after(&ClusterExtensionStatus::default(), &outcome(Progress::Mirrored));
    has(&at_rest, ready);
    let status = status_after(&at_rest, &unavailable());
    has(&status, "Progressing=True/Retrying the catalog is away");
    has(&status, &format!("{ready}{UNRESOLVED_NOTE}"));
    assert!(!lines(&status).iter().any(|line| line.starts_with("Reconciling")));
    has(&status_after(&status, &outcome(Progress::Mirrored)), ready);

    // Unavailable, then available again: the extension is not reconciling.
    let mut degraded = rolled_out("a-1", "1.0.0");
    degraded.conditions[1] = condition("Available", "False", "ProbeFailure", "one fails");
    let down = outcome_with(
        Some(degraded),
        vec![],
        Progress::Unresolved("the catalog is away".into()),
    );
    let down = status_after(&status, &down);
    has(&down, "Ready=False/ProbeFailure one fails");
    assert!(!lines(&down).iter().any(|line| line.starts_with("Reconciling")));
    has(
        &status_after(&down, &unavailable()),
        &format!("{ready}{UNRESOLVED_NOTE}"),
    );

    // A new spec that cannot be resolved is in progress, as is an upgrade that cannot be carried out.
    let next = extension(&status, &unavailable(), 8, &time("2026-02-02T00:00:00Z"));
    let line = next
        .conditions
        .unwrap()
        .into_iter()
        .find(|c| c.type_ == "Ready")
        .unwrap();
    assert_eq!(
        (line.status.as_str(), line.reason.as_str()),
        ("False", "Retrying")
    );
    let stuck = status_after(&at_rest, &outcome(Progress::Retrying("no image".into())));
    has(&stuck, "Reconciling=True/Retrying no image");
}

#[test]
fn former_content_leaves_an_extension_ready_and_says_so() {
    let mut outcome = outcome_with(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
    let ready = "Version 1.0.0 is installed and available, from catalog \"community\".";
    outcome.upgrade = Upgrade::FormerContent;
    outcome.catalogs = Some(UnreadCatalogs {
        former: vec![catalogs::FormerContent {
            catalog: "community".into(),
            since: time("2026-02-01T00:00:00Z"),
            cause: "catalogd cannot be asked".to_owned(),
        }],
        left_out: vec![("low".into(), "catalog \"low\" is not being served".to_owned())],
    });
    let status = status_after(&ClusterExtensionStatus::default(), &outcome);
    has(
        &status,
        &format!(
            "Ready=True/Succeeded {ready} Other versions are resolved from former content of a catalog; see \
             CatalogsDegraded."
        ),
    );
    has(
        &status,
        "CatalogsDegraded=True/FormerContent The present content of catalog \"community\" cannot be read since \
         2026-02-01T00:00:00Z: catalogd cannot be asked. Its former content is used until a read succeeds; reads are \
         retried. Catalog \"low\" is left out: catalog \"low\" is not being served. It could not have changed the choice.",
    );
    // A later attempt with the same failure writes nothing.
    let later = extension(&status, &outcome, 7, &time("2026-02-03T00:00:00Z"));
    assert!(same(&status, &later));
    outcome.upgrade = Upgrade::UpToDate;
    outcome.catalogs = Some(UnreadCatalogs::default());
    let status = status_after(&status, &outcome);
    has(&status, &format!("Ready=True/Succeeded {ready}"));
    assert!(
        !lines(&status)
            .iter()
            .any(|line| line.starts_with("CatalogsDegraded"))
    );
}

fn pending(version: &str) -> PendingPlan {
    PendingPlan {
        digest: "sha256:aa".to_owned(),
        bundle: BundleMetadata {
            name: format!("argocd-operator.v{version}"),
            version: version.to_owned(),
            release: None,
        },
        ..PendingPlan::default()
    }
}

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
