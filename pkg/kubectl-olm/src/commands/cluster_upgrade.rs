//! `cluster-upgrade check`: blockers of an upgrade of the cluster, and upgrades of extensions that wait for it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::ClusterUpgradeArgs;
use crate::failure::Failure;
use crate::observed::{ClusterUpgrade, Listing, Upgrade};
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Checks the next minor version, or the given one; positive if nothing blocks it.
pub(crate) async fn check(args: ClusterUpgradeArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let upgrade = ClusterUpgrade::read(&cluster, args.to.as_deref()).await?;
    let ClusterUpgrade { current, target, .. } = &upgrade;
    let mut text = format!("Upgrade of the cluster from {current} to {target}");
    if let Some(minor) = upgrade.base_of {
        // Writing into a String cannot fail.
        let _ = write!(text, " (base of OpenShift {minor})");
    }
    text.push('\n');
    write_listing(&mut text, &upgrade.blocker_listing(), style);
    for error in &upgrade.errors {
        let _ = writeln!(text, "\n{}", style.paint(Paint::Bad, &clean(error)));
    }
    write_listing(&mut text, &upgrade.removed_listing(), style);
    let free = upgrade.is_free();
    if free {
        let _ = writeln!(
            text,
            "{}",
            style.paint(Paint::Good, "No extension blocks the upgrade")
        );
    }
    write_listing(&mut text, &upgrade.waiting_listing(), style);
    for sentence in &upgrade.waiting.unchecked {
        let _ = writeln!(text, "Not checked: {}", clean(sentence));
    }
    Ok(Report::new(value(&upgrade), text).positive(free))
}

fn write_listing(text: &mut String, listing: &Listing, style: Style) {
    if !listing.rows.is_empty() {
        let table = Table::of(listing).text(style, "  ");
        // Writing into a String cannot fail.
        let _ = write!(text, "\n{}:\n{table}", listing.title);
    }
}

/// Returns the upgrade in machine-readable form.
fn value(upgrade: &ClusterUpgrade) -> Value {
    let blockers: Vec<Value> = upgrade
        .blockers
        .iter()
        .map(|blocker| {
            let lifting = blocker.lifted_by.as_ref();
            let lifting = lifting.map(|it| json!({"version": it.version, "upgrades": it.upgrades}));
            json!({"extension": blocker.extension, "bundle": blocker.bundle, "maxOpenShiftVersion": blocker.limit,
                "liftedBy": lifting})
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
