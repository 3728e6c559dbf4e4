//! Extensions that are ready, wait or fail.

use super::*;

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
