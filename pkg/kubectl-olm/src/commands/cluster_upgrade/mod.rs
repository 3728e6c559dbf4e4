//! `cluster-upgrade check`: blockers of an upgrade of the cluster, and upgrades of extensions that wait for it.

mod waiting;

use std::fmt::Write as _;

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, LifecycleState, keys};
use olm_status::cluster_upgrade::removed::removed;
use olm_status::cluster_upgrade::{Installed, Minor, evaluate};
use olm_text::object::{ObjectId, text as text_of};
use serde_json::json;

use crate::cli::ClusterUpgradeArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::{Cluster, owner};
use crate::style::{Paint, Style};
use crate::table::{Table, clean};
use waiting::Waiting;

/// Checks the next minor version, or the given one; positive if nothing blocks it.
pub(crate) async fn check(args: ClusterUpgradeArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let (kubernetes, openshift) = cluster.versions().await?;
    let current = openshift.as_deref().unwrap_or(&kubernetes);
    let current = Minor::of_version(current).ok_or_else(|| {
        Failure::NegativeAnswer(format!("the cluster's version {current:?} cannot be read"))
    })?;
    let target = match &args.to {
        None => current.next(),
        Some(text) => Minor::of_version(text)
            .ok_or_else(|| Failure::Usage(format!("{text:?} is not MAJOR.MINOR, such as 1.37 or 4.19")))?,
    };
    let plain = target.is_kubernetes();
    let on_openshift = if plain {
        target.openshift_of_kubernetes()
    } else {
        Some(target)
    };
    let on_kubernetes = if plain {
        Some(target)
    } else {
        target.kubernetes_of_openshift()
    };

    let revisions = active_revisions(cluster.revisions(None).await?);
    let installed: Vec<Installed> = revisions.iter().map(installed).collect();
    let mut text = format!("Upgrade of the cluster from {current} to {target}");
    if let (true, Some(minor)) = (plain, on_openshift) {
        // Writing into a String cannot fail.
        let _ = write!(text, " (base of OpenShift {minor})");
    }
    text.push('\n');
    let blocked = on_openshift.map(|minor| evaluate(before(minor), &installed));
    let mut blockers = Vec::new();
    let mut table = Table::new(&["EXTENSION", "BUNDLE", "RUNS UP TO"]);
    for blocker in blocked.iter().flat_map(|verdict| &verdict.blockers) {
        let limit = format!("OpenShift {}", blocker.limit);
        table.row(Paint::Bad, [blocker.extension.as_str(), &blocker.bundle, &limit]);
        blockers.push(json!({"extension": blocker.extension, "bundle": blocker.bundle,
            "maxOpenShiftVersion": blocker.limit.to_string()}));
    }
    if !table.is_empty() {
        let _ = write!(
            text,
            "\nBundles that do not run on it:\n{}",
            table.text(style, "  ")
        );
    }
    let errors: Vec<&str> = blocked
        .iter()
        .flat_map(|verdict| &verdict.errors)
        .map(|(_, error)| error.as_str())
        .collect();
    for error in &errors {
        let _ = writeln!(text, "\n{}", style.paint(Paint::Bad, &clean(error)));
    }

    let mut apis = Vec::new();
    let mut table = Table::new(&["EXTENSION", "OBJECT", "API", "INSTEAD"]);
    for set in &revisions {
        for phase in cluster.objects(set).await? {
            for object in &phase.objects {
                let id = ObjectId::of(object);
                let at = on_kubernetes.unwrap_or(target);
                let Some(found) = removed(text_of(object, "/apiVersion"), id.kind, at) else {
                    continue;
                };
                let name = id.name;
                let place = format!("{} {name}", found.kind);
                let api = format!("{}, removed in 1.{}", found.api_version, found.in_minor);
                table.row(Paint::Bad, [owner(set), &place, &api, found.instead]);
                apis.push(json!({"extension": owner(set), "kind": found.kind, "name": name,
                    "apiVersion": found.api_version, "removedIn": format!("1.{}", found.in_minor),
                    "instead": found.instead}));
            }
        }
    }
    if !table.is_empty() {
        let _ = write!(
            text,
            "\nAPIs that it no longer serves:\n{}",
            table.text(style, "  ")
        );
    }
    let free = blockers.is_empty() && errors.is_empty() && apis.is_empty();
    if free {
        let _ = writeln!(
            text,
            "{}",
            style.paint(Paint::Good, "No extension blocks the upgrade")
        );
    }
    let waiting = Waiting::read(&cluster, &args.access, &kubernetes, on_kubernetes).await?;
    waiting.write(&mut text, style);
    let value = json!({"current": current.to_string(), "to": target.to_string(), "upgradeable": free,
        "blockers": blockers, "errors": errors, "removedApis": apis, "waiting": waiting.value(), "unchecked": waiting.unchecked});
    Ok(Report::new(value, text).positive(free))
}

/// Returns the minor version before `minor`: the check is if bundles run on `minor` itself.
fn before(minor: Minor) -> Minor {
    // 5.0 is the same release as 4.23.
    if (minor.major, minor.minor) == (5, 0) {
        return Minor { major: 4, minor: 22 };
    }
    Minor {
        minor: minor.minor.saturating_sub(1),
        ..minor
    }
}

/// Returns the newest active revision of every extension.
fn active_revisions(revisions: Vec<ClusterObjectSet>) -> Vec<ClusterObjectSet> {
    let mut newest: Vec<ClusterObjectSet> = Vec::new();
    let active = |set: &ClusterObjectSet| {
        set.spec.lifecycle_state != LifecycleState::Archived && set.metadata.deletion_timestamp.is_none()
    };
    for set in revisions.into_iter().filter(active) {
        match newest.last_mut() {
            // Revisions are sorted by extension and number.
            Some(last) if owner(last) == owner(&set) => *last = set,
            _ => newest.push(set),
        }
    }
    newest
}

fn installed(set: &ClusterObjectSet) -> Installed {
    let annotation = |key: &str| set.annotations().get(key).cloned();
    Installed {
        extension: owner(set).to_owned(),
        bundle: annotation(keys::BUNDLE_NAME_ANNOTATION)
            .unwrap_or_else(|| set.name_any())
            .into(),
        properties: annotation(keys::PROPERTIES_ANNOTATION),
        successors: Vec::new(),
    }
}
