//! Rules of kstatus, by which tools interpret a status, and consistency rules for the history of a status.
//!
//! Source: <https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md>. The health checks of
//! Argo CD and Flux for custom resources use the same conditions.

use serde_json::Value;

/// Status of an object by the rules of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Being deleted.
    Terminating,
    /// The controller works towards the spec.
    InProgress,
    /// The controller needs a change from outside.
    Failed,
    /// The object matches its spec.
    Current,
}

/// Computes the status of an object whose kind has no rules of its own in kstatus.
#[must_use]
pub fn compute(object: &Value) -> Status {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Status::Terminating;
    }
    let observed = object["status"]["observedGeneration"].as_i64();
    if observed.is_some_and(|observed| Some(observed) != object["metadata"]["generation"].as_i64()) {
        return Status::InProgress;
    }
    if is_true(object, "Reconciling") {
        return Status::InProgress;
    }
    if is_true(object, "Stalled") {
        return Status::Failed;
    }
    match condition(object, "Ready").map(|ready| &ready["status"]) {
        // An object without any of the three conditions counts as current.
        None => Status::Current,
        Some(status) if status == "True" => Status::Current,
        Some(_) => Status::InProgress,
    }
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_)
}

fn is_true(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition["status"] == "True")
}

fn condition_is(object: &Value, type_: &str, status: &str, reason: Option<&str>) -> bool {
    condition(object, type_).is_some_and(|condition| {
        condition["status"] == status && reason.is_none_or(|reason| condition["reason"] == reason)
    })
}

/// Returns the inconsistencies of one status of a ClusterExtension with its other conditions.
#[must_use]
pub fn extension_faults(object: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut expect = |right: bool, text: &str| {
        if !right {
            faults.push(text.to_owned());
        }
    };
    let status = compute(object);
    let observed = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let available =
        condition_is(object, "Installed", "True", None) && condition_is(object, "Available", "True", None);
    let settled = observed && condition_is(object, "Progressing", "True", Some("Succeeded"));
    // Resolving another version may fail after the rollout of the spec; the history shows the rollout.
    let looking = observed && condition_is(object, "Progressing", "True", Some("Retrying"));
    // By `spec.rollout` or by the installed operator, an upgrade may wait while the installed version is ready.
    let waiting = observed
        && ["AwaitingApproval", "AwaitingWindow", "HeldByOperator"]
            .iter()
            .any(|reason| condition_is(object, "Progressing", "True", Some(reason)));
    if status == Status::Current {
        expect(available, "current before it is installed and available");
        expect(
            settled || looking || waiting,
            "current before the spec has rolled out",
        );
    }
    let rolling_out = object["status"]["activeRevisions"]
        .as_array()
        .is_some_and(|active| active.len() > 1);
    let deleted = status == Status::Terminating;
    if settled && available && !rolling_out && !deleted {
        expect(status == Status::Current, "in progress at rest");
    }
    if observed && condition_is(object, "Progressing", "False", None) && !deleted {
        expect(status == Status::Failed, "not failed although nothing goes on");
    }
    expect(
        !(is_true(object, "Reconciling") && is_true(object, "Stalled")),
        "reconciling and stalled at once",
    );
    if observed && !deleted {
        expect(
            is_true(object, "Ready") == (status == Status::Current),
            "Ready and kstatus differ",
        );
    }
    let conditions = object["status"]["conditions"].as_array();
    for condition in conditions.into_iter().flatten() {
        let about = condition["observedGeneration"].as_i64();
        let newest = object["status"]["observedGeneration"].as_i64();
        expect(
            about <= newest,
            "a condition is of a later generation than the status",
        );
        expect(
            !matches!(condition["type"].as_str(), Some("Reconciling" | "Stalled"))
                || condition["status"] == "True",
            "Reconciling or Stalled is there without holding",
        );
    }
    faults
}

/// Returns the inconsistencies of the statuses of one ClusterExtension, in the order of its watch events.
#[must_use]
pub fn history_faults(history: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let report = |faults: &mut Vec<String>, at: usize, text: &str| {
        let status = history.get(at).map(|object| object["status"].to_string());
        faults.push(format!("version {at}: {text}: {}", status.unwrap_or_default()));
    };
    let mut current: Option<(usize, &Value)> = None;
    for (at, object) in history.iter().enumerate() {
        for fault in extension_faults(object) {
            report(&mut faults, at, &fault);
        }
        if let Some(before) = at.checked_sub(1).and_then(|before| history.get(before)) {
            for fault in step_faults(before, object) {
                report(&mut faults, at, &fault);
            }
        } else if compute(object) == Status::Current {
            report(&mut faults, at, "current as soon as it was created");
        }
        if compute(object) == Status::Current {
            let version = &object["status"]["install"]["bundle"]["version"];
            if let Some((seen, before)) = current
                && before != version
                && seen + 1 == at
            {
                report(&mut faults, at, "another version without having been in progress");
            }
            current = Some((at, version));
        }
    }
    faults
}

/// Returns true if the observed spec is fulfilled and nothing is in progress.
fn at_rest(object: &Value) -> bool {
    condition(object, "Ready").is_some() && !is_true(object, "Reconciling") && !is_true(object, "Stalled")
}

fn step_faults(before: &Value, after: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let observed = |object: &Value| object["status"]["observedGeneration"].as_i64();
    let retrying = condition_is(after, "Progressing", "True", Some("Retrying"));
    if compute(after) == Status::Current
        && retrying
        && !(at_rest(before) && observed(before) == observed(after))
    {
        faults.push("current while the spec is still being tried".to_owned());
    }
    if observed(after) < observed(before) {
        faults.push("observedGeneration went back".to_owned());
    }
    for now in after["status"]["conditions"].as_array().into_iter().flatten() {
        let Some(type_) = now["type"].as_str() else {
            continue;
        };
        let Some(was) = condition(before, type_) else {
            continue;
        };
        let moved = was["lastTransitionTime"] != now["lastTransitionTime"];
        if moved && was["status"] == now["status"] {
            faults.push(format!(
                "the transition time of {type_} moved without a transition"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(generation: i64, observed: Option<i64>, conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| json!({"type": type_, "status": status, "reason": "Succeeded"}))
            .collect();
        json!({"metadata": {"generation": generation},
            "status": {"observedGeneration": observed, "conditions": conditions}})
    }

    #[test]
    fn the_documented_rules() {
        let computed = |conditions: &[(&str, &str)]| compute(&object(2, Some(2), conditions));
        assert_eq!(computed(&[]), Status::Current);
        assert_eq!(computed(&[("Ready", "True")]), Status::Current);
        assert_eq!(computed(&[("Ready", "False")]), Status::InProgress);
        assert_eq!(computed(&[("Ready", "Unknown")]), Status::InProgress);
        assert_eq!(
            computed(&[("Ready", "False"), ("Stalled", "True")]),
            Status::Failed
        );
        assert_eq!(
            computed(&[("Ready", "True"), ("Reconciling", "True")]),
            Status::InProgress
        );
        assert_eq!(
            compute(&object(3, Some(2), &[("Ready", "True")])),
            Status::InProgress
        );
        assert_eq!(compute(&object(1, Some(-1), &[])), Status::InProgress);
        assert_eq!(
            compute(&object(1, None, &[])),
            Status::Current,
            "nothing is known"
        );
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(compute(&deleted), Status::Terminating);
    }

    #[test]
    fn faults_are_found() {
        let done = [
            ("Installed", "True"),
            ("Available", "True"),
            ("Progressing", "True"),
            ("Ready", "True"),
        ];
        let new = object(1, Some(-1), &[]);
        assert_eq!(history_faults(&[new.clone(), object(1, Some(1), &done)]), [""; 0]);
        let early = object(1, Some(1), &[("Progressing", "True"), ("Ready", "True")]);
        assert!(extension_faults(&early)[0].contains("current before it is installed"));
        let late = object(1, Some(1), &done[..3]);
        assert_eq!(extension_faults(&late), ["Ready and kstatus differ"]);
        let stuck = object(
            1,
            Some(1),
            &[
                ("Progressing", "False"),
                ("Ready", "False"),
                ("Reconciling", "True"),
            ],
        );
        assert!(extension_faults(&stuck)[0].contains("nothing goes on"));
        let both = object(1, Some(1), &[("Reconciling", "True"), ("Stalled", "True")]);
        assert!(
            extension_faults(&both)
                .iter()
                .any(|fault| fault.contains("at once"))
        );
        let born = history_faults(&[object(1, None, &[])]);
        assert!(
            born.iter()
                .any(|fault| fault.contains("as soon as it was created"))
        );
        let mut other = object(1, Some(1), &done);
        let first = other.clone();
        other["status"]["install"]["bundle"]["version"] = json!("2.0.0");
        assert!(history_faults(&[new, first, other])[0].contains("another version"));
    }
}
