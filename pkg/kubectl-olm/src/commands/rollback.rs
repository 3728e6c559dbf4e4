//! `rollback`: gives an extension the content of a former revision, or lets it follow its source again.

use std::io::Write as _;

use kube::ResourceExt as _;
use olm_api::condition::{
    find_true, is_true, reasons::Extension as Reason, types::Extension as Type,
    types::ObjectSet as RevisionType,
};
use olm_api::{API_VERSION, ClusterExtension, ClusterObjectSet, CustomResourcePolicy, LifecycleState, keys};
use olm_applier::custom_resources::HeldCrd;
use olm_plan::{Change, Outcome, Plan, dropped_crds};
use olm_status::recorded::bundle_version;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::{confirm, progress};
use super::extension::{one, until_settled};
use super::plan::{checks, cluster::present, place::install_namespace};
use crate::absent::{self, existing};
use crate::cli::Format;
use crate::cli::act::DryRun;
use crate::cli::rollout::RollbackArgs;
use crate::failure::Failure;
use crate::manifests::{documents, list};
use crate::plan_report::text;
use crate::report::Report;
use crate::source::{Cluster, needs};
use crate::style::Style;

/// Rolls an extension back; positive if it is ready at the end.
pub(crate) async fn run(args: RollbackArgs, format: Format, style: Style) -> Result<Report, Failure> {
    let name = args.name.clone();
    if args.write.dry_run == Some(DryRun::Client) && (args.end || args.to.is_some()) {
        return printed(patch(&name, None, args.to));
    }
    let cluster = Cluster::connect(&args.access).await?;
    let extension = existing(&cluster, &name).await?;
    let to = if args.end {
        can_end(&extension)?;
        None
    } else {
        let revisions = cluster.revisions(Some(&name)).await?;
        let target = Target::of(&name, &revisions, args.to)?;
        if args.write.dry_run == Some(DryRun::Client) {
            return printed(patch(&name, None, Some(target.former.spec.revision)));
        }
        let plan = plan(&cluster, &args, &extension, &target).await?;
        let shown = text(&plan, format, style);
        if plan.outcome() == Outcome::Refused {
            return Ok(Report {
                refused: true,
                ..Report::new(json!(plan), shown)
            });
        }
        if args.write.dry_run.is_none() && !args.yes {
            ask(&name, &target, &shown)?;
        }
        Some(target.former.spec.revision)
    };
    let patch = patch(&name, extension.metadata.uid.as_deref(), to);
    let kinds = cluster.kinds(std::slice::from_ref(&patch)).await?;
    let dry_run = args.write.dry_run.is_some();
    let Some(written) = cluster.merge(&patch, &patch, &kinds, dry_run).await? else {
        return Err(Failure::NegativeAnswer(absent::extension(&cluster, &name).await));
    };
    if written
        .data
        .pointer("/spec/rollout/rollBackTo")
        .and_then(Value::as_i64)
        != to
    {
        return Err(Failure::NegativeAnswer(
            "nothing is rolled back: the ClusterExtensions of the cluster have no field spec.rollout.rollBackTo; upgrade the controllers"
                .to_owned(),
        ));
    }
    if dry_run || args.write.no_wait {
        return printed(patch);
    }
    progress(&match to {
        Some(number) => format!("ClusterExtension {name} is rolled back to revision {number}"),
        None => format!("ClusterExtension {name} follows its source again"),
    });
    let deadline = Instant::now() + args.write.timeout;
    let settled = until_settled(&cluster, &name, Some(deadline)).await?;
    Ok(Report {
        value: list(&[patch]),
        ..one(&settled, style)
    })
}

/// Checks that a request holds the extension.
///
/// # Errors
/// A failed upgrade was rolled back, so that no field of the spec holds the extension; the message names what ends the hold.
fn can_end(extension: &ClusterExtension) -> Result<(), Failure> {
    let rollout = extension.spec.rollout.as_ref();
    if rollout.is_some_and(|rollout| rollout.roll_back_to.is_some()) {
        return Ok(());
    }
    match find_true(extension.conditions(), Type::RolledBack)
        .filter(|found| found.reason == Reason::RolledBack)
    {
        Some(held) => Err(Failure::NegativeAnswer(format!(
            "nothing is changed: ClusterExtension {:?} has no spec.rollout.rollBackTo. {}",
            extension.name_any(),
            held.message
        ))),
        None => Ok(()),
    }
}

fn printed(patch: Value) -> Result<Report, Failure> {
    let objects = [patch];
    Ok(Report::new(list(&objects), documents(&objects)?))
}

/// Returns the merge patch; a null removes the field. The uid keeps the patch from another extension of the same name.
fn patch(name: &str, uid: Option<&str>, to: Option<i64>) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(uid) = uid {
        metadata["uid"] = json!(uid);
    }
    json!({"apiVersion": API_VERSION, "kind": "ClusterExtension", "metadata": metadata,
        "spec": {"rollout": {"rollBackTo": to}}})
}

/// The two revisions of a rollback.
#[derive(Debug)]
struct Target<'a> {
    /// The Active revision with the highest number.
    newest: &'a ClusterObjectSet,
    /// The revision whose content is rolled out again.
    former: &'a ClusterObjectSet,
}

impl<'a> Target<'a> {
    /// Returns the revision with number `to`, or the newest former one that was rolled out and has other content.
    fn of(name: &str, revisions: &'a [ClusterObjectSet], to: Option<i64>) -> Result<Self, Failure> {
        let present = revisions
            .iter()
            .filter(|revision| revision.metadata.deletion_timestamp.is_none());
        let present: Vec<&ClusterObjectSet> = present.collect();
        let active =
            |revision: &&&ClusterObjectSet| revision.spec.lifecycle_state != LifecycleState::Archived;
        let newest = present.iter().rev().find(active).copied().ok_or_else(|| {
            Failure::NegativeAnswer(format!(
                "ClusterExtension {name:?} has no revision, so there is nothing to roll back"
            ))
        })?;
        let identity = |revision: &ClusterObjectSet| {
            revision
                .annotations()
                .get(keys::REVISION_IDENTITY_ANNOTATION)
                .cloned()
        };
        let other = |revision: &&ClusterObjectSet| {
            revision.spec.revision < newest.spec.revision
                && is_true(revision.conditions(), RevisionType::Succeeded)
                && (identity(revision).is_none() || identity(revision) != identity(newest))
        };
        let mut backwards = present.iter().rev().copied();
        let former = match to {
            Some(number) => backwards.find(|revision| revision.spec.revision == number),
            None => backwards.find(other),
        };
        let former = former.ok_or_else(|| {
            let known: Vec<String> = present
                .iter()
                .map(|revision| {
                    format!(
                        "{} (version {})",
                        revision.spec.revision,
                        bundle_version(revision)
                    )
                })
                .collect();
            let wanted = to.map_or_else(
                || "no former revision that was rolled out with other content".to_owned(),
                |number| format!("no revision {number}"),
            );
            Failure::NegativeAnswer(format!(
                "ClusterExtension {name:?} has {wanted}; its revisions are {}",
                known.join(", ")
            ))
        })?;
        Ok(Self { newest, former })
    }
}

/// Returns the plan of the rollback: the objects of both revisions, and the CRDs of the cluster.
async fn plan(
    cluster: &Cluster,
    args: &RollbackArgs,
    extension: &ClusterExtension,
    target: &Target<'_>,
) -> Result<Plan, Failure> {
    let mut change = Change {
        extension: Some(args.name.clone()),
        namespace: install_namespace(extension, Some(target.newest))
            .unwrap_or_default()
            .to_owned(),
        ..Change::default()
    };
    let mut unread = Vec::new();
    change.from = Some(present(cluster, target.newest, &mut change.unchecked).await?);
    change.to = present(cluster, target.former, &mut unread).await?;
    if !unread.is_empty() {
        change.refusals.push(format!(
            "objects of revision {} cannot be read from its Secrets; roll back to another revision",
            target.former.name_any()
        ));
    }
    let survey = checks::StoredSurvey {
        wanted: false,
        time: args.write.timeout,
    };
    let gates = cluster.gates().await;
    checks::former_crds(cluster, &gates, survey, extension, &mut change).await?;
    check_dropped(cluster, extension, &mut change).await?;
    checks::account(extension, &mut change);
    // A bundle without recorded properties shows nothing that others could lack.
    if target
        .former
        .annotations()
        .contains_key(keys::CATALOG_PROPERTIES_ANNOTATION)
    {
        let bundle = needs::recorded(target.former);
        change.dependents = cluster.dependents(&args.name, bundle, &[]).await?;
    }
    Ok(change.plan())
}

/// Refuses a rollback that would delete custom resources together with a CRD that only the newest revision has.
async fn check_dropped(
    cluster: &Cluster,
    extension: &ClusterExtension,
    change: &mut Change,
) -> Result<(), Failure> {
    let deletion = extension.spec.deletion.as_ref();
    let policy = deletion.and_then(|deletion| deletion.custom_resources);
    if policy.is_some_and(|policy| policy != CustomResourcePolicy::Delete) {
        return Ok(());
    }
    let present = change.from.as_ref().map(|side| side.objects.as_slice());
    for name in dropped_crds(present.unwrap_or_default(), &change.to.objects) {
        let Some(crd) = cluster.crd_object(name).await? else {
            continue;
        };
        let count = cluster.custom_resources(&crd).await?;
        if !count.may_hold() {
            continue;
        }
        let held = HeldCrd {
            name: name.to_owned(),
            count,
            readable_in: None,
        };
        match policy {
            Some(_) => change.refusals.push(format!(
                "CustomResourceDefinition {held} would be deleted, because spec.deletion.customResources is Delete; set it to Keep, or \
                 delete the custom resources"
            )),
            None => change.unchecked.push(format!(
                "CustomResourceDefinition {held} is kept, unless a flag of operator-controller says otherwise, which refuses the rollback"
            )),
        }
    }
    Ok(())
}

/// Asks on the terminal, after the plan.
///
/// # Errors
/// The user refuses, or there is no terminal to ask on.
fn ask(name: &str, target: &Target<'_>, plan: &str) -> Result<(), Failure> {
    let what = format!(
        "ClusterExtension {name} goes from revision {} (version {}) back to the content of revision {} (version {})",
        target.newest.spec.revision,
        bundle_version(target.newest),
        target.former.spec.revision,
        bundle_version(target.former),
    );
    // A failed write cannot be reported; the answer decides.
    let _ = writeln!(std::io::stderr().lock(), "{plan}");
    confirm(
        &format!("{what}. Continue?"),
        &format!("{what}. There is no terminal to ask on: confirm with --yes"),
        "nothing was rolled back",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(number: i64, version: &str, state: &str) -> ClusterObjectSet {
        let succeeded = json!([{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        serde_json::from_value(json!({
            "metadata": {"name": format!("kite-{number}"), "annotations": {
                keys::BUNDLE_VERSION_ANNOTATION: version, keys::REVISION_IDENTITY_ANNOTATION: version}},
            "spec": {"lifecycleState": if state == "Archived" { "Archived" } else { "Active" }, "revision": number,
                "collisionProtection": "Prevent"},
            "status": {"conditions": if state == "RollingOut" { json!([]) } else { succeeded }},
        }))
        .unwrap()
    }

    #[test]
    fn the_former_revision_has_other_content_that_worked() {
        let numbers = |sets: &[ClusterObjectSet], to| {
            Target::of("kite", sets, to)
                .map(|target| (target.newest.spec.revision, target.former.spec.revision))
        };
        let upgraded = [set(1, "1.0.0", "Archived"), set(2, "1.1.0", "Succeeded")];
        assert_eq!(numbers(&upgraded, None).unwrap(), (2, 1));
        let back = [
            set(1, "1.0.0", "Archived"),
            set(2, "1.1.0", "Archived"),
            set(3, "1.0.0", "Succeeded"),
        ];
        assert_eq!(numbers(&back, None).unwrap(), (3, 2));
        assert_eq!(numbers(&back, Some(1)).unwrap(), (3, 1));
        let stuck = [
            set(1, "1.0.0", "Archived"),
            set(2, "1.1.0", "Succeeded"),
            set(3, "1.2.0", "RollingOut"),
        ];
        assert_eq!(numbers(&stuck, None).unwrap(), (3, 2));
        let refused = |sets: &[ClusterObjectSet], to| numbers(sets, to).unwrap_err().message();
        assert_eq!(
            refused(&upgraded, Some(7)),
            "ClusterExtension \"kite\" has no revision 7; its revisions are 1 (version 1.0.0), 2 (version 1.1.0)"
        );
        assert!(refused(&upgraded[1..], None).contains("no former revision"));
        assert!(refused(&[], None).contains("nothing to roll back"));
    }

    #[test]
    fn an_automatic_rollback_is_not_ended_by_the_spec() {
        let extension = |rollout: Value, reason: &str| -> ClusterExtension {
            serde_json::from_value(json!({"metadata": {"name": "kite"}, "spec": {"namespace": "n", "rollout": rollout,
                "source": {"sourceType": "Catalog"}}, "status": {"conditions": [{"type": "RolledBack", "status": "True",
                    "reason": reason, "message": "Version 2 is tried again when the spec changes.",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
            .unwrap()
        };
        let refused = can_end(&extension(json!({"onFailure": "RollBack"}), "RolledBack")).unwrap_err();
        assert_eq!(refused.code(), 1);
        assert!(
            refused
                .message()
                .ends_with("Version 2 is tried again when the spec changes."),
            "{}",
            refused.message()
        );
        assert!(can_end(&extension(json!({"rollBackTo": 1}), "RollBackRequested")).is_ok());
        // The status may lag behind a field that was just removed.
        assert!(can_end(&extension(json!({}), "RollBackRequested")).is_ok());
    }

    #[test]
    fn a_patch_sets_or_removes_one_field() {
        assert_eq!(
            patch("kite", Some("u"), Some(1)),
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                "metadata": {"name": "kite", "uid": "u"}, "spec": {"rollout": {"rollBackTo": 1}}})
        );
        assert_eq!(
            patch("kite", None, None)["spec"]["rollout"],
            json!({"rollBackTo": null})
        );
    }
}
