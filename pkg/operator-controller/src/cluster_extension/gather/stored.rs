//! Refuses a bundle whose CRDs would make a stored object invalid: the opt-in check beyond [`crds`](super::crds).

use std::sync::Arc;

use kube::{Resource as _, ResourceExt as _};
use olm_api::ClusterExtension;
use olm_applier::stored::{Limits, Survey, survey};
use olm_bundle::crd_schema::Plan;
use olm_decide::extension::crd_findings::{CrdChange, NAME_LIMIT};
use olm_runtime::workers::without_worker;
use olm_text::head;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::{Context, account};

/// Permit for one survey at a time: each holds a page of objects in memory.
static TURN: Semaphore = Semaphore::const_new(1);
/// Longest text of the findings, in bytes. The rest of 1 KiB holds the text around them.
const TEXT_LIMIT: usize = 480;
/// Longest text of one fault, in bytes.
const FAULT_LIMIT: usize = 200;
/// Longest text of the undecided checks, in bytes.
const UNKNOWN_LIMIT: usize = 120;

/// Acquires the permit to list stored objects.
pub(super) async fn turn() -> Result<SemaphorePermit<'static>, Failure> {
    let turn = without_worker(TURN.acquire()).await;
    turn.map_err(|_| Failure::Interrupted("waiting for a survey"))
}

/// Stored objects to validate before a CRD is replaced.
pub(crate) struct StoredCheck {
    /// Name of the CRD.
    pub(crate) crd: String,
    /// Objects and schemas.
    pub(crate) plan: Plan,
    /// Findings of the comparison of schemas that hold unless all objects are decided and unharmed.
    pub(crate) presumed: Vec<String>,
}

/// Validates the stored objects of every CRD against its new schema. Objects that would be harmed are a [`Failure`] that names the
/// first ones and their number, as are presumed findings if a check is undecided; other undecided checks are reported in an event.
pub(crate) async fn check(
    context: &Context,
    extension: &ClusterExtension,
    checks: Vec<StoredCheck>,
    change: CrdChange,
) -> Result<(), Failure> {
    if checks.is_empty() {
        return Ok(());
    }
    let client = account::reader(context, extension)?;
    let _turn = turn().await?;
    let started = Instant::now();
    let mut lines = Vec::new();
    let mut unknown = Vec::new();
    for StoredCheck { crd, plan, presumed } in checks {
        let decided = unknown.len();
        // Without a schema that changes, there is nothing to check the objects against.
        let mut holds = plan.targets.is_empty();
        unknown.extend(plan.notes.into_iter().map(|note| format!("{crd}: {note}")));
        for target in plan.targets {
            let target = Arc::new(target);
            let found = without_worker(survey(
                &client,
                &plan.group,
                &plan.plural,
                Arc::clone(&target),
                &Limits::default(),
            ))
            .await
            .map_err(|source| Failure::Survey {
                crd: crd.clone(),
                source: Box::new(source),
                took: started.elapsed(),
            })?;
            tracing::info!(
                crd,
                version = target.version,
                objects = found.objects,
                broken = found.broken,
                seconds = started.elapsed().as_secs_f64(),
                "stored objects were held against a new schema"
            );
            let undecided = found.undecided(&target);
            unknown.extend(undecided.map(|why| format!("{crd} {}: {why}", target.version)));
            if found.broken > 0 {
                lines.push(line(&crd, &target.version, &found));
            }
        }
        holds |= unknown.len() > decided;
        if holds {
            lines.extend(presumed);
        }
    }
    unknown.dedup();
    if lines.is_empty() {
        tell_unknown(context, extension, &unknown);
        return Ok(());
    }
    Err(Failure::StoredObjects {
        text: message(&lines, &unknown, &next_step(&extension.name_any(), change)),
        took: started.elapsed(),
    })
}

/// Returns the findings of one version: the number of invalid objects, and the first with their fields and causes.
fn line(crd: &str, version: &str, found: &Survey) -> String {
    let at_least = if found.stopped { "at least " } else { "" };
    let mut text = format!(
        "validating stored objects for CRD \"{crd}\": {at_least}{} of {} would not be valid in version {version}: ",
        found.broken, found.objects
    );
    for (shown, object) in found.named.iter().enumerate() {
        let first = object.faults.first().map(ToString::to_string).unwrap_or_default();
        let part = format!("{object}: {}", head(&first, FAULT_LIMIT));
        if shown > 0 && text.len() + part.len() > TEXT_LIMIT {
            break;
        }
        if shown > 0 {
            text.push_str("; ");
        }
        text.push_str(&part);
    }
    text
}

fn next_step(extension: &str, change: CrdChange) -> String {
    match change {
        CrdChange::Upgrade => format!(
            "Mend or delete these objects; `kubectl olm crd-safety --stored-objects --extension {}` names more.",
            head(extension, NAME_LIMIT)
        ),
        CrdChange::Rollback => {
            "Mend or delete these objects, or accept the loss with waivers of crdUpgradeSafety.".to_owned()
        }
    }
}

fn message(lines: &[String], unknown: &[String], next_step: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for line in lines {
        if bytes > 0 && bytes + line.len() > TEXT_LIMIT {
            break;
        }
        bytes += line.len();
        out.push(line);
    }
    let mut text = head(&out.join("\n"), TEXT_LIMIT).to_owned();
    if !unknown.is_empty() {
        let unknown = unknown.join("; ");
        text.push_str("\n(not checked: ");
        text.push_str(head(&unknown, UNKNOWN_LIMIT));
        text.push(')');
    }
    text.push('\n');
    text.push_str(next_step);
    text
}

/// Undecidable checks do not block the upgrade; they are reported in an event.
fn tell_unknown(context: &Context, extension: &ClusterExtension, unknown: &[String]) {
    if unknown.is_empty() {
        return;
    }
    let note = format!("stored objects were not checked for all: {}", unknown.join("; "));
    context.events.warning(
        extension.object_ref(&()),
        "StoredObjectsNotChecked",
        "Reconcile",
        &note,
    );
}

#[cfg(test)]
mod tests {
    use olm_applier::stored::InvalidObject;
    use olm_bundle::crd_schema::Fault;

    use super::*;

    fn found(name: &str, cause: &str) -> Survey {
        let broken = |at| InvalidObject {
            namespace: "ns".to_owned(),
            name: format!("{name}-{at}"),
            faults: vec![Fault {
                path: "spec.size".to_owned(),
                cause: cause.to_owned(),
            }],
        };
        Survey {
            objects: 120,
            broken: 40,
            named: (0..10).map(broken).collect(),
            ..Survey::default()
        }
    }

    #[test]
    fn the_message_names_the_first_and_is_short() {
        let few = line(
            "tests.example.com",
            "v1",
            &found("a", "7 is more than the maximum 5"),
        );
        assert!(few.starts_with(
            "validating stored objects for CRD \"tests.example.com\": 40 of 120 would not be valid in version v1: \
             ns/a-0: spec.size: 7 is more than the maximum 5; ns/a-1: "
        ));
        let long = line(
            "tests.example.com",
            "v1",
            &found(&"ä".repeat(60), &"ö".repeat(400)),
        );
        for lines in [
            vec![few.clone()],
            vec![long.clone()],
            vec![long.clone(), few, long],
        ] {
            for (change, end) in [
                (CrdChange::Upgrade, "names more."),
                (CrdChange::Rollback, "of crdUpgradeSafety."),
            ] {
                let next = next_step(&"e".repeat(253), change);
                let text = message(&lines, &["ü".repeat(500)], &next);
                assert!(text.len() < 1024, "{}", text.len());
                assert!(text.contains("(not checked: ü") && text.ends_with(end));
            }
        }
    }
}
