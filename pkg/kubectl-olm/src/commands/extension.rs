//! `get`, `status`, `history` and `events`: what the cluster says of its extensions.

use std::fmt::Write as _;

use k8s_openapi::api::events::v1::Event;
use olm_api::condition::find;
use olm_api::condition::types::Extension as Type;
use olm_api::{ClusterExtension, WindowState};
use olm_status::overview::{Mood, Overview, StateWord};
use serde_json::json;
use tokio::time::Instant;

use super::rollout::described;
use super::tenant;
use crate::absent::existing;
use crate::await_ready::{Seen, settled};
use crate::cli::{AccessArgs, ExtensionArgs, Format, GetArgs, StatusArgs};
use crate::failure::Failure;
use crate::observed::{EventRow, RevisionRow};
use crate::report::Report;
use crate::source::{Cluster, SourceError};
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

async fn read(access: &AccessArgs, name: &str) -> Result<(Cluster, ClusterExtension), Failure> {
    let cluster = Cluster::connect(access).await?;
    let found = existing(&cluster, name).await?;
    Ok((cluster, found))
}

/// Shows all extensions in a table, positive if all are ready; or what they offer in a namespace.
pub(crate) async fn get(args: GetArgs, format: Format, style: Style) -> Result<Report, Failure> {
    if let Some(namespace) = &args.namespace {
        return tenant::run(&args.access, namespace, format, style).await;
    }
    let extensions = Cluster::connect(&args.access).await?.extensions().await;
    match extensions {
        Err(source) if source.is_forbidden() => Err(SourceError::NotListed {
            source: Box::new(source),
        }
        .into()),
        extensions => Ok(all(&extensions?, style)),
    }
}

fn all(extensions: &[ClusterExtension], style: Style) -> Report {
    let mut table = Table::new(&["NAME", "PACKAGE", "VERSION", "CATALOG", "STATE", "UPGRADE"]);
    let mut rows = Vec::new();
    let mut all_ready = true;
    for extension in extensions {
        let seen = Overview::new(extension);
        all_ready &= seen.state.mood == Mood::Good;
        table.row(
            seen.state.mood.into(),
            [
                seen.name.as_str(),
                &seen.package,
                seen.version.as_str(),
                &seen.catalog,
                &seen.state.word,
                &seen.held_back,
            ],
        );
        rows.push(
            json!({"name": seen.name, "package": seen.package, "version": seen.version.as_str(),
            "catalog": seen.catalog, "state": seen.state.word, "upgrade": seen.held_back}),
        );
    }
    let text = if table.is_empty() {
        "no ClusterExtensions\n".to_owned()
    } else {
        table.text(style, "")
    };
    Report::new(json!({ "extensions": rows }), text).positive(all_ready)
}

/// Shows one extension in full; positive if it is ready. With `--watch` it waits until the extension is ready or
/// stalled.
pub(crate) async fn status(args: StatusArgs, style: Style) -> Result<Report, Failure> {
    let name = &args.extension.name;
    let (cluster, mut extension) = read(&args.extension.access, name).await?;
    if args.watch {
        extension = until_settled(&cluster, name, None).await?;
    }
    Ok(one(&extension, style))
}

/// Waits until an extension is ready or stalled.
pub(super) async fn until_settled(
    cluster: &Cluster,
    name: &str,
    deadline: Option<Instant>,
) -> Result<ClusterExtension, Failure> {
    let what = format!("ClusterExtension {name:?}");
    settled(&what, deadline, async || {
        let found = cluster.one_extension(name).await?;
        Ok(found.map(|extension| {
            let state = StateWord::new(&extension);
            let message = find(extension.conditions(), Type::Ready).map(|c| c.message.as_str());
            Seen {
                line: format!("{}: {}", state.word, message.unwrap_or_default()),
                settled: matches!(state.mood, Mood::Good | Mood::Bad),
                object: extension,
            }
        }))
    })
    .await
}

/// Shows an extension in full; positive if it is ready.
pub(super) fn one(extension: &ClusterExtension, style: Style) -> Report {
    let seen = Overview::new(extension);
    let state = &seen.state;
    let status = extension.status.as_ref();
    let mut text = String::new();
    for (key, value) in [
        ("Extension", seen.name.as_str()),
        ("Package", &seen.package),
        ("Version", seen.version.as_str()),
        ("Catalog", &seen.catalog),
        ("Namespace", &seen.namespace),
    ] {
        if !value.is_empty() {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{key:<11}{}", clean(value));
        }
    }
    let word = style.paint(state.mood.into(), &clean(&state.word));
    let _ = writeln!(text, "{:<11}{word}\n", "State");
    let mut table = Table::new(&["CONDITION", "STATUS", "REASON", "MESSAGE"]);
    for c in extension.conditions() {
        table.row(Paint::Plain, [c.type_.as_str(), &c.status, &c.reason, &c.message]);
    }
    text.push_str(&table.text(style, ""));
    if let Some(rollout) = status.and_then(|status| status.rollout.as_ref()) {
        let (state, at) = match rollout.window {
            WindowState::Open => ("open, closes", &rollout.closes_at),
            WindowState::Closed => ("closed, opens", &rollout.opens_at),
        };
        let at = at
            .as_ref()
            .map_or_else(|| "at no known time".to_owned(), |at| at.0.to_string());
        let _ = writeln!(text, "\nWindows    {state} {at}");
    }
    if let Some(pending) = status.and_then(|status| status.pending_plan.as_ref()) {
        let _ = write!(text, "\nWaiting plan\n{}", described(pending));
    }
    let value = json!({"name": seen.name, "state": state.word, "generation": extension.metadata.generation,
        "status": extension.status});
    Report::new(value, text).positive(state.mood == Mood::Good)
}

/// The revisions of an extension, oldest first.
pub(crate) async fn history(args: ExtensionArgs, style: Style) -> Result<Report, Failure> {
    let (cluster, _) = read(&args.access, &args.name).await?;
    let mut table = Table::new(&["REVISION", "VERSION", "BUNDLE", "CATALOG", "STATE", "CREATED"]);
    let mut rows = Vec::new();
    for set in cluster.revisions(Some(&args.name)).await? {
        let row = RevisionRow::new(&set);
        let number = row.number.to_string();
        table.row(
            row.mood.into(),
            [
                number.as_str(),
                row.version.as_str(),
                &row.bundle,
                &row.catalog,
                &row.state,
                &row.created,
            ],
        );
        rows.push(
            json!({"revision": row.number, "name": row.name, "version": row.version.as_str(), "bundle": row.bundle,
            "catalog": row.catalog, "state": row.state, "created": row.created}),
        );
    }
    Ok(Report::new(json!({ "revisions": rows }), table.text(style, "")))
}

/// Shows the events of an extension and its revisions, oldest first.
pub(crate) async fn events(args: ExtensionArgs, style: Style) -> Result<Report, Failure> {
    // An extension that is gone still has its events.
    let cluster = Cluster::connect(&args.access).await?;
    Ok(told(&cluster.events(&args.name).await?, style))
}

fn told(events: &[Event], style: Style) -> Report {
    let mut table = Table::new(&["LAST SEEN", "TYPE", "REASON", "OBJECT", "NOTE"]);
    let mut rows = Vec::new();
    for row in events.iter().map(EventRow::new) {
        table.row(
            row.mood.into(),
            [row.seen.as_str(), row.type_, row.reason, row.object, row.note],
        );
        rows.push(
            json!({"lastSeen": row.seen, "type": row.type_, "reason": row.reason, "object": row.object,
            "note": row.note, "count": row.count}),
        );
    }
    let text = if table.is_empty() {
        "no events\n".to_owned()
    } else {
        table.text(style, "")
    };
    Report::new(json!({ "events": rows }), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any line, in two lines; the end is what to do.
    fn message() -> String {
        format!("{} first line\nsecond line: do this", "words ".repeat(60))
    }

    fn extension() -> ClusterExtension {
        let condition = |type_: &str| {
            json!({"type": type_, "status": "True", "reason": "Reason", "message": message(),
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let extension = json!({"metadata": {"name": "kite"}, "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}},
            "status": {"conditions": [condition("Progressing"), condition("UpgradeAvailable")]}});
        serde_json::from_value(extension).unwrap()
    }

    #[test]
    fn a_waiting_plan_and_the_windows_are_shown() {
        let mut waits = extension();
        let status = json!({"pendingPlan": {"digest": "sha256:aa", "bundle": {"name": "kite.v2", "version": "2.0.0"},
                "objects": {"created": 1, "changed": 2, "deleted": 3}, "findings": ["restarts: Deployment n/d"]},
            "rollout": {"window": "Closed", "opensAt": "2026-01-03T22:00:00Z"}});
        waits.status = Some(serde_json::from_value(status).unwrap());
        let text = one(&waits, Style::plain()).text;
        let end = "Windows    closed, opens 2026-01-03T22:00:00Z\n\nWaiting plan\n  plan     sha256:aa\n  bundle   kite.v2\n  \
                   objects  1 created, 2 changed, 3 deleted\n  - restarts: Deployment n/d\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn messages_are_complete_without_a_terminal() {
        let event: Event = serde_json::from_value(
            json!({"metadata": {"name": "e"}, "reason": "Retrying", "note": message()}),
        )
        .unwrap();
        let whole = message().replace('\n', " ");
        for report in [
            all(&[extension()], Style::plain()),
            one(&extension(), Style::plain()),
            told(std::slice::from_ref(&event), Style::plain()),
        ] {
            assert!(report.text.contains(&whole), "{}", report.text);
        }
        let narrow = told(&[event], Style::of_width(80)).text;
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.trim_end().ends_with("do this"), "{narrow}");
    }
}
