//! Rules of kstatus, by which tools interpret a status, and consistency rules for the history of a status.
//!
//! Source: <https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md>. The health checks of
//! Argo CD and Flux for custom resources use the same conditions.

use serde_json::Value;

/// Status of an object by the rules of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
pub fn verdict(object: &Value) -> Verdict {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Verdict::Terminating;
    }
    let observed = object["status"]["observedGeneration"].as_i64();
    if observed.is_some_and(|observed| Some(observed) != object["metadata"]["generation"].as_i64()) {
        return Verdict::InProgress;
    }
    if holds(object, "Reconciling") {
        return Verdict::InProgress;
    }
    if holds(object, "Stalled") {
        return Verdict::Failed;
    }
    match condition(object, "Ready").map(|ready| &ready["status"]) {
        // An object without any of the three conditions counts as current.
        None => Verdict::Current,
        Some(status) if status == "True" => Verdict::Current,
        Some(_) => Verdict::InProgress,
    }
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_)
}

fn holds(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition["status"] == "True")
}

fn is(object: &Value, type_: &str, status: &str, reason: Option<&str>) -> bool {
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
    let verdict = verdict(object);
    let observed = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let available = is(object, "Installed", "True", None) && is(object, "Available", "True", None);
    let settled = observed && is(object, "Progressing", "True", Some("Succeeded"));
    // Resolving another version may fail after the rollout of the spec; the history shows the rollout.
    let looking = observed && is(object, "Progressing", "True", Some("Retrying"));
    if verdict == Verdict::Current {
        expect(available, "current before it is installed and available");
        expect(settled || looking, "current before the spec has rolled out");
    }
    let rolling_out = object["status"]["activeRevisions"]
        .as_array()
        .is_some_and(|active| active.len() > 1);
    let deleted = verdict == Verdict::Terminating;
    if settled && available && !rolling_out && !deleted {
        expect(verdict == Verdict::Current, "in progress at rest");
    }
    if observed && is(object, "Progressing", "False", None) && !deleted {
        expect(verdict == Verdict::Failed, "not failed although nothing goes on");
    }
    expect(
        !(holds(object, "Reconciling") && holds(object, "Stalled")),
        "reconciling and stalled at once",
    );
    if observed && !deleted {
        expect(
            holds(object, "Ready") == (verdict == Verdict::Current),
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
    let tell = |faults: &mut Vec<String>, at: usize, text: &str| {
        let status = history.get(at).map(|object| object["status"].to_string());
        faults.push(format!("version {at}: {text}: {}", status.unwrap_or_default()));
    };
    let mut current: Option<(usize, &Value)> = None;
    for (at, object) in history.iter().enumerate() {
        for fault in extension_faults(object) {
            tell(&mut faults, at, &fault);
        }
        if let Some(before) = at.checked_sub(1).and_then(|before| history.get(before)) {
            for fault in step_faults(before, object) {
                tell(&mut faults, at, &fault);
            }
        } else if verdict(object) == Verdict::Current {
            tell(&mut faults, at, "current as soon as it was created");
        }
        if verdict(object) == Verdict::Current {
            let version = &object["status"]["install"]["bundle"]["version"];
            if let Some((seen, before)) = current
                && before != version
                && seen + 1 == at
            {
                tell(&mut faults, at, "another version without having been in progress");
            }
            current = Some((at, version));
        }
    }
    faults
}

/// Returns true if the observed spec is fulfilled and nothing is in progress.
fn at_rest(object: &Value) -> bool {
    condition(object, "Ready").is_some() && !holds(object, "Reconciling") && !holds(object, "Stalled")
}

fn step_faults(before: &Value, after: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let observed = |object: &Value| object["status"]["observedGeneration"].as_i64();
    let retrying = is(after, "Progressing", "True", Some("Retrying"));
    if verdict(after) == Verdict::Current
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
        let told = |conditions: &[(&str, &str)]| verdict(&object(2, Some(2), conditions));
        assert_eq!(told(&[]), Verdict::Current);
        assert_eq!(told(&[("Ready", "True")]), Verdict::Current);
        assert_eq!(told(&[("Ready", "False")]), Verdict::InProgress);
        assert_eq!(told(&[("Ready", "Unknown")]), Verdict::InProgress);
        assert_eq!(told(&[("Ready", "False"), ("Stalled", "True")]), Verdict::Failed);
        assert_eq!(
            told(&[("Ready", "True"), ("Reconciling", "True")]),
            Verdict::InProgress
        );
        assert_eq!(
            verdict(&object(3, Some(2), &[("Ready", "True")])),
            Verdict::InProgress
        );
        assert_eq!(verdict(&object(1, Some(-1), &[])), Verdict::InProgress);
        assert_eq!(
            verdict(&object(1, None, &[])),
            Verdict::Current,
            "nothing is known"
        );
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(verdict(&deleted), Verdict::Terminating);
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
