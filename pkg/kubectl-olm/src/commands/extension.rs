//! `get`, `status`, `history` and `events`: what the cluster says of its extensions.

use std::fmt::Write as _;

use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use olm_api::condition::reasons::ObjectSet as RevisionReason;
use olm_api::condition::types::{Extension as Type, ObjectSet as RevisionType};
use olm_api::condition::{find, find_true, is_true};
use olm_api::event::Type as EventType;
use olm_api::{ClusterExtension, LifecycleState, WindowState, keys};
use olm_status::recorded::bundle_version;
use olm_text::name::CatalogName;
use olm_version::BundleVersion;
use serde_json::json;
use tokio::time::Instant;

use super::rollout::described;
use super::tenant;
use crate::absent::existing;
use crate::await_ready::{Seen, settled};
use crate::cli::{AccessArgs, ExtensionArgs, Format, GetArgs, StatusArgs};
use crate::failure::Failure;
use crate::report::Report;
use crate::source::{Cluster, SourceError, last_seen};
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// The state in one word, and its paint.
fn state(extension: &ClusterExtension) -> (Paint, String) {
    let conditions = extension.conditions();
    let observed = extension
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    if extension.metadata.deletion_timestamp.is_some() {
        return (Paint::Warn, "Deleting".to_owned());
    }
    if observed.is_some() && observed != extension.metadata.generation {
        return (Paint::Warn, "Pending".to_owned());
    }
    if is_true(conditions, Type::Ready) {
        return (Paint::Good, Type::Ready.into());
    }
    if let Some(stalled) = find_true(conditions, Type::Stalled) {
        return (Paint::Bad, stalled.reason.clone());
    }
    let ready = find(conditions, Type::Ready).or_else(|| find(conditions, Type::Progressing));
    (
        Paint::Warn,
        ready.map_or_else(|| "Pending".to_owned(), |c| c.reason.clone()),
    )
}

/// Returns version and catalog of the installed bundle; both are empty without one.
fn installed(extension: &ClusterExtension) -> (BundleVersion, CatalogName) {
    let install = extension
        .status
        .as_ref()
        .and_then(|status| status.install.as_ref());
    install.map_or_else(Default::default, |install| {
        let bundle = &install.bundle;
        (
            BundleVersion::recorded(bundle.version.as_str(), bundle.release.clone()),
            install.catalog.as_deref().unwrap_or_default().into(),
        )
    })
}

fn package(extension: &ClusterExtension) -> &str {
    let catalog = extension.spec.source.catalog.as_ref();
    catalog.map_or("", |catalog| catalog.package_name.as_str())
}

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
        let (paint, state) = state(extension);
        all_ready &= paint == Paint::Good;
        let (version, catalog) = installed(extension);
        let held = find_true(extension.conditions(), Type::UpgradeAvailable);
        let held = held.map(|c| c.message.as_str()).unwrap_or_default();
        let name = extension.name_any();
        table.row(
            paint,
            [
                name.as_str(),
                package(extension),
                version.as_str(),
                &catalog,
                &state,
                held,
            ],
        );
        rows.push(
            json!({"name": name, "package": package(extension), "version": version.as_str(),
            "catalog": catalog, "state": state, "upgrade": held}),
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
            let (paint, word) = state(&extension);
            let message = find(extension.conditions(), Type::Ready).map(|c| c.message.as_str());
            Seen {
                line: format!("{word}: {}", message.unwrap_or_default()),
                settled: matches!(paint, Paint::Good | Paint::Bad),
                object: extension,
            }
        }))
    })
    .await
}

/// Returns the install namespace: that of the spec, or the one that was created with the extension.
fn namespace(extension: &ClusterExtension) -> &str {
    let install = extension
        .status
        .as_ref()
        .and_then(|status| status.install.as_ref());
    let created = install.and_then(|install| install.namespace.as_deref());
    extension
        .spec
        .namespace
        .as_deref()
        .or(created)
        .unwrap_or_default()
}

/// Shows an extension in full; positive if it is ready.
pub(super) fn one(extension: &ClusterExtension, style: Style) -> Report {
    let name = extension.name_any();
    let (paint, word) = state(extension);
    let (version, catalog) = installed(extension);
    let status = extension.status.as_ref();
    let mut text = String::new();
    for (key, value) in [
        ("Extension", name.as_str()),
        ("Package", package(extension)),
        ("Version", version.as_str()),
        ("Catalog", &catalog),
        ("Namespace", namespace(extension)),
    ] {
        if !value.is_empty() {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{key:<11}{}", clean(value));
        }
    }
    let _ = writeln!(text, "{:<11}{}\n", "State", style.paint(paint, &clean(&word)));
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
    let value = json!({"name": name, "state": word, "generation": extension.metadata.generation,
        "status": extension.status});
    Report::new(value, text).positive(paint == Paint::Good)
}

/// The revisions of an extension, oldest first.
pub(crate) async fn history(args: ExtensionArgs, style: Style) -> Result<Report, Failure> {
    let (cluster, _) = read(&args.access, &args.name).await?;
    let mut table = Table::new(&["REVISION", "VERSION", "BUNDLE", "CATALOG", "STATE", "CREATED"]);
    let mut rows = Vec::new();
    for set in cluster.revisions(Some(&args.name)).await? {
        let annotation = |key: &str| set.annotations().get(key).cloned().unwrap_or_default();
        let state = match find(set.conditions(), RevisionType::Progressing) {
            _ if set.spec.lifecycle_state == LifecycleState::Archived => RevisionReason::Archived.as_str(),
            Some(found) => found.reason.as_str(),
            None => "Pending",
        };
        let paint = if *state == RevisionReason::Succeeded {
            Paint::Good
        } else {
            Paint::Plain
        };
        let created = set
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0.to_string());
        let (number, version, bundle, catalog, created) = (
            set.spec.revision.to_string(),
            bundle_version(&set),
            annotation(keys::BUNDLE_NAME_ANNOTATION),
            annotation(keys::CATALOG_NAME_ANNOTATION),
            created.unwrap_or_default(),
        );
        table.row(
            paint,
            [
                number.as_str(),
                version.as_str(),
                &bundle,
                &catalog,
                state,
                &created,
            ],
        );
        rows.push(
            json!({"revision": set.spec.revision, "name": set.name_any(), "version": version.as_str(),
            "bundle": bundle, "catalog": catalog, "state": state, "created": created}),
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
    for event in events {
        let type_ = event.type_.as_deref().unwrap_or_default();
        let reason = event.reason.as_deref().unwrap_or_default();
        let note = event.note.as_deref().unwrap_or_default();
        let object = event.regarding.as_ref();
        let object = object
            .and_then(|object| object.name.as_deref())
            .unwrap_or_default();
        let count = event.series.as_ref().map_or(1, |series| series.count);
        let seen = last_seen(event);
        let paint = if *type_ == EventType::Warning {
            Paint::Warn
        } else {
            Paint::Plain
        };
        table.row(paint, [seen.as_str(), type_, reason, object, note]);
        rows.push(
            json!({"lastSeen": seen, "type": type_, "reason": reason, "object": object,
            "note": note, "count": count}),
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
