//! `approve`, `pause` and `resume`: writes to `spec.rollout` of one extension. `plan --approve` approves by the same functions.

mod plans;

use std::fmt::Write as _;

use olm_api::condition::{find, reasons::Extension as Reason, types::Extension as Type};
use olm_api::{API_VERSION, ClusterExtension, PendingPlan};
use serde_json::{Value, json};

use crate::absent::{self, existing};
use crate::cli::rollout::{ApproveArgs, PauseArgs, WriteArgs};
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::table::clean;

pub(super) use plans::{JointApproval, PlanApproval};

/// Approves the plan that waits.
pub(crate) async fn approve(args: ApproveArgs) -> Result<Report, Failure> {
    let (cluster, extension) = read(&args.write, &args.name).await?;
    let approval = approval(&args.name, &extension, args.digest.as_deref())?;
    let mut text = write(
        &cluster,
        args.write.dry_run,
        &args.name,
        &approval.change,
        &approval.done,
    )
    .await?;
    text.push_str(&approval.plan);
    Ok(Report::new(approval.change.object, text))
}

/// Pauses the extension.
pub(crate) async fn pause(args: PauseArgs) -> Result<Report, Failure> {
    set_paused(args, true).await
}

/// Resumes the extension.
pub(crate) async fn resume(args: PauseArgs) -> Result<Report, Failure> {
    set_paused(args, false).await
}

async fn set_paused(args: PauseArgs, paused: bool) -> Result<Report, Failure> {
    let (cluster, extension) = read(&args.write, &args.name).await?;
    let (change, done) = pausing(&args.name, &extension, paused);
    let text = write(&cluster, args.write.dry_run, &args.name, &change, &done).await?;
    Ok(Report::new(change.object, text))
}

async fn read(args: &WriteArgs, name: &str) -> Result<(Cluster, ClusterExtension), Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let found = existing(&cluster, name).await?;
    Ok((cluster, found))
}

/// Merge patch of an extension.
#[derive(Debug, PartialEq)]
struct Change {
    /// The patch.
    object: Value,
    /// False if the extension has these values already.
    needed: bool,
}

/// Writes the change, unless the extension has its values. Returns the line that says what was done.
async fn write(
    cluster: &Cluster,
    dry_run: bool,
    name: &str,
    change: &Change,
    done: &str,
) -> Result<String, Failure> {
    if !change.needed {
        return Ok(format!("{} already; nothing is written\n", clean(done)));
    }
    let object = &change.object;
    let kinds = cluster.kinds(std::slice::from_ref(object)).await?;
    let merged = cluster.merge(object, object, &kinds, dry_run).await?;
    if merged.is_none() {
        return Err(Failure::NegativeAnswer(absent::extension(cluster, name).await));
    }
    let how = if dry_run {
        " (dry run: nothing is written)"
    } else {
        ""
    };
    Ok(format!("{}{how}\n", clean(done)))
}

fn change(extension: &ClusterExtension, name: &str, rollout: &Value, needed: bool) -> Change {
    // The uid keeps the patch from an extension that was created again under the same name.
    let object = json!({
        "apiVersion": API_VERSION, "kind": "ClusterExtension",
        "metadata": {"name": name, "uid": extension.metadata.uid},
        "spec": {"rollout": rollout},
    });
    Change { object, needed }
}

/// An approval before it is written.
#[derive(Debug)]
struct Approval {
    change: Change,
    /// Sentence for a written approval.
    done: String,
    /// The plan for people.
    plan: String,
}

fn approved(extension: &ClusterExtension) -> Option<&str> {
    extension.spec.rollout.as_ref()?.approved_plan.as_deref()
}

fn approval(name: &str, extension: &ClusterExtension, digest: Option<&str>) -> Result<Approval, Failure> {
    let approved = approved(extension);
    let status = extension.status.as_ref();
    let Some(pending) = status.and_then(|status| status.pending_plan.as_ref()) else {
        return Err(Failure::NegativeAnswer(format!(
            "ClusterExtension {name:?} has no plan that waits for approval; see kubectl olm status {name}"
        )));
    };
    if let Some(digest) = digest.filter(|digest| *digest != pending.digest) {
        return Err(Failure::NegativeAnswer(format!(
            "the plan of ClusterExtension {name:?} that waits is {}, not {digest}: look at it again with kubectl olm status {name}, \
             and approve its digest",
            pending.digest
        )));
    }
    if pending.required_by.as_ref().is_none_or(Vec::is_empty) {
        let conditions = extension.conditions();
        if let Some(held) =
            find(conditions, Type::Progressing).filter(|found| found.reason == Reason::HeldByOperator)
        {
            return Err(Failure::NegativeAnswer(format!(
                "the plan of ClusterExtension {name:?} waits for no approval: {}",
                held.message
            )));
        }
        let opens = status.and_then(|status| status.rollout.as_ref()?.opens_at.as_ref());
        let opens = opens
            .map(|time| format!(", which opens at {}", time.0))
            .unwrap_or_default();
        return Err(Failure::NegativeAnswer(format!(
            "the plan of ClusterExtension {name:?} needs no approval: it waits for the next window of spec.rollout.windows{opens}"
        )));
    }
    let needed = approved != Some(pending.digest.as_str());
    Ok(Approval {
        change: change(extension, name, &json!({"approvedPlan": pending.digest}), needed),
        done: format!(
            "clusterextension/{name}: version {} is approved",
            pending.bundle.version
        ),
        plan: described(pending),
    })
}

/// Returns the plan as indented lines.
pub(super) fn described(pending: &PendingPlan) -> String {
    let objects = pending.objects;
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "  plan     {}", clean(&pending.digest));
    let _ = writeln!(text, "  bundle   {}", clean(&pending.bundle.name));
    let _ = writeln!(
        text,
        "  objects  {} created, {} changed, {} deleted",
        objects.created, objects.changed, objects.deleted
    );
    for finding in pending.findings.iter().flatten() {
        let _ = writeln!(text, "  - {}", clean(finding));
    }
    text
}

fn pausing(name: &str, extension: &ClusterExtension, paused: bool) -> (Change, String) {
    let rollout = extension.spec.rollout.as_ref();
    let is_paused = rollout.and_then(|rollout| rollout.paused) == Some(true);
    let word = if paused { "paused" } else { "not paused" };
    // Null removes the field.
    let change = change(
        extension,
        name,
        &json!({"paused": paused.then_some(true)}),
        is_paused != paused,
    );
    (change, format!("clusterextension/{name}: {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn extension(rollout: &Value, status: &Value) -> ClusterExtension {
        serde_json::from_value(
            json!({"metadata": {"name": "kite", "uid": "u"}, "spec": {"namespace": "n",
            "source": {"sourceType": "Catalog"}, "rollout": rollout}, "status": status}),
        )
        .unwrap()
    }

    pub(super) fn pending(required_by: &Value) -> Value {
        json!({"pendingPlan": {"digest": "sha256:aa", "bundle": {"name": "kite.v2", "version": "2.0.0"},
            "objects": {"created": 1, "changed": 2, "deleted": 3}, "requiredBy": required_by,
            "findings": ["irreversible: \u{1b}[31mx"]}})
    }

    #[test]
    fn the_waiting_plan_is_approved() {
        let waits = extension(&json!({"approval": "Manual"}), &pending(&json!(["Manual"])));
        for digest in [None, Some("sha256:aa")] {
            let approval = approval("kite", &waits, digest).unwrap();
            assert!(approval.change.needed);
            assert_eq!(
                approval.change.object,
                json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                    "metadata": {"name": "kite", "uid": "u"}, "spec": {"rollout": {"approvedPlan": "sha256:aa"}}})
            );
            assert!(
                approval
                    .plan
                    .contains("1 created, 2 changed, 3 deleted\n  - irreversible: "),
                "{}",
                approval.plan
            );
            assert!(!approval.plan.contains('\u{1b}'));
        }
        let again = extension(
            &json!({"approvedPlan": "sha256:aa"}),
            &pending(&json!(["Manual"])),
        );
        assert!(!approval("kite", &again, None).unwrap().change.needed);
    }

    #[test]
    fn other_plans_are_not_approved() {
        let refused = |extension: &ClusterExtension, digest: Option<&str>| {
            let failure = approval("kite", extension, digest).unwrap_err();
            assert_eq!(failure.code(), 1);
            failure.message()
        };
        let waits = extension(&json!({}), &pending(&json!(["NewRights"])));
        assert!(refused(&waits, Some("sha256:bb")).contains("that waits is sha256:aa, not sha256:bb"));
        assert!(refused(&extension(&json!({}), &json!({})), None).contains("no plan that waits"));
        let mut window = pending(&Value::Null);
        window["rollout"] = json!({"window": "Closed", "opensAt": "2026-01-03T22:00:00Z"});
        assert!(
            refused(&extension(&json!({}), &window), None).ends_with("which opens at 2026-01-03T22:00:00Z")
        );
    }

    #[test]
    fn pause_and_resume_change_one_field() {
        let (running, paused) = (
            extension(&json!({}), &json!({})),
            extension(&json!({"paused": true}), &json!({})),
        );
        let (change, text) = pausing("kite", &running, true);
        assert_eq!(
            (change.needed, &change.object["spec"]),
            (true, &json!({"rollout": {"paused": true}}))
        );
        assert_eq!(text, "clusterextension/kite: paused");
        let (change, text) = pausing("kite", &paused, false);
        assert_eq!(
            (change.needed, &change.object["spec"]),
            (true, &json!({"rollout": {"paused": null}}))
        );
        assert_eq!(text, "clusterextension/kite: not paused");
        assert!(!pausing("kite", &paused, true).0.needed && !pausing("kite", &running, false).0.needed);
    }
}
