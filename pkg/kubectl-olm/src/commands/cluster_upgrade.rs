//! `cluster-upgrade check`: blockers of an upgrade of the cluster, and upgrades of extensions that wait for it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::ClusterUpgradeArgs;
use crate::failure::Failure;
use crate::observed::{ClusterUpgrade, Upgrade, Waiting};
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Checks the next minor version, or the given one; positive if nothing blocks it.
pub(crate) async fn check(args: ClusterUpgradeArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let upgrade = ClusterUpgrade::read(&cluster, &args.access, args.to.as_deref()).await?;
    let ClusterUpgrade { current, target, .. } = &upgrade;
    let mut text = format!("Upgrade of the cluster from {current} to {target}");
    if let Some(minor) = upgrade.base_of {
        // Writing into a String cannot fail.
        let _ = write!(text, " (base of OpenShift {minor})");
    }
    text.push('\n');
    write_table(
        &mut text,
        "Bundles that do not run on it",
        &blockers(&upgrade),
        style,
    );
    for error in &upgrade.errors {
        let _ = writeln!(text, "\n{}", style.paint(Paint::Bad, &clean(error)));
    }
    write_table(
        &mut text,
        "APIs that it no longer serves",
        &removed(&upgrade),
        style,
    );
    let free = upgrade.is_free();
    if free {
        let _ = writeln!(
            text,
            "{}",
            style.paint(Paint::Good, "No extension blocks the upgrade")
        );
    }
    let title = "Upgrades of extensions that need a newer Kubernetes";
    write_table(&mut text, title, &waiting(&upgrade.waiting), style);
    for sentence in &upgrade.waiting.unchecked {
        let _ = writeln!(text, "Not checked: {}", clean(sentence));
    }
    Ok(Report::new(value(&upgrade), text).positive(free))
}

fn write_table(text: &mut String, title: &str, table: &Table, style: Style) {
    if !table.is_empty() {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n{title}:\n{}", table.text(style, "  "));
    }
}

fn blockers(upgrade: &ClusterUpgrade) -> Table {
    let mut table = Table::new(&["EXTENSION", "BUNDLE", "RUNS UP TO"]);
    for blocker in &upgrade.blockers {
        let limit = format!("OpenShift {}", blocker.limit);
        table.row(Paint::Bad, [blocker.extension.as_str(), &blocker.bundle, &limit]);
    }
    table
}

fn removed(upgrade: &ClusterUpgrade) -> Table {
    let mut table = Table::new(&["EXTENSION", "OBJECT", "API", "INSTEAD"]);
    for api in &upgrade.removed {
        let object = format!("{} {}", api.kind, api.name);
        let gone = format!("{}, removed in {}", api.api_version, api.removed_in);
        table.row(Paint::Bad, [api.extension.as_str(), &object, &gone, api.instead]);
    }
    table
}

fn waiting(waiting: &Waiting) -> Table {
    let mut table = Table::new(&["EXTENSION", "VERSION", "NEEDS", "AFTER THE UPGRADE"]);
    for upgrade in &waiting.upgrades {
        let needed = format!("Kubernetes {}", upgrade.needed);
        let (paint, then) = if upgrade.possible {
            (Paint::Good, "possible")
        } else {
            (Paint::Plain, "waits")
        };
        table.row(
            paint,
            [upgrade.extension.as_str(), &upgrade.version, &needed, then],
        );
    }
    table
}

/// Returns the upgrade in machine-readable form.
fn value(upgrade: &ClusterUpgrade) -> Value {
    let blockers: Vec<Value> = upgrade
        .blockers
        .iter()
        .map(|blocker| {
            json!({"extension": blocker.extension, "bundle": blocker.bundle, "maxOpenShiftVersion": blocker.limit})
        })
        .collect();
    let removed: Vec<Value> = upgrade
        .removed
        .iter()
        .map(|api| {
            json!({"extension": api.extension, "kind": api.kind, "name": api.name, "apiVersion": api.api_version,
                "removedIn": api.removed_in, "instead": api.instead})
        })
        .collect();
    let waits = |upgrade: &Upgrade| {
        json!({"extension": upgrade.extension, "version": upgrade.version,
            "minKubeVersion": upgrade.needed, "possible": upgrade.possible})
    };
    let waiting: Vec<Value> = upgrade.waiting.upgrades.iter().map(waits).collect();
    json!({"current": upgrade.current.to_string(), "to": upgrade.target.to_string(), "upgradeable": upgrade.is_free(),
        "blockers": blockers, "errors": upgrade.errors, "removedApis": removed, "waiting": waiting,
        "unchecked": upgrade.waiting.unchecked})
}
