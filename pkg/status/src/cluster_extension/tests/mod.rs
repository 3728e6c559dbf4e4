//! Exact texts of the conditions for every outcome.

mod changes;
mod held;
mod outcomes;
mod ready;

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
