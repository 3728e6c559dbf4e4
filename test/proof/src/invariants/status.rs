//! Statuses, events and revisions: no contents of Secrets, and generations that only grow.

use serde_json::Value;

use super::{Found, Invariants, is_event};
use crate::object::{self, GROUP};
use crate::{Change, ObjectKey};

/// Checks a write by a controller.
pub(super) fn check(known: &Invariants, change: &Change, found: &mut Found) {
    let Some(after) = &change.after else {
        return;
    };
    let key = &change.object;
    let whole = is_event(key) || key.group == GROUP && key.kind == "ClusterObjectSet";
    let said = if whole { after } else { &after["status"] };
    let text = said.to_string();
    for secret in &known.settings.secrets {
        if !secret.is_empty() && text.contains(secret) {
            found.add("no-secrets", format!("{key} shows the content of a Secret"));
        }
    }
    let before = change.before.as_deref().unwrap_or(&Value::Null);
    if key.group == GROUP && before["status"] != after["status"] {
        generations(key, before, after, found);
    }
}

/// Checks `ready-is-current` and `generations-go-forward` on a changed status.
fn generations(key: &ObjectKey, before: &Value, after: &Value, found: &mut Found) {
    let generation = after["metadata"]["generation"].as_i64().unwrap_or_default();
    if let Some(ready) = object::condition(after, "Ready")
        && ready["status"] == "True"
        && observed(ready) < Some(generation)
    {
        found.add(
            "ready-is-current",
            format!(
                "{key} is ready for generation {}, and it has generation {generation}",
                ready["observedGeneration"]
            ),
        );
    }
    let mut fell = |what: &str, old: Option<i64>, new: Option<i64>| {
        if let (Some(old), Some(new)) = (old, new)
            && new < old
        {
            found.add(
                "generations-go-forward",
                format!("the observed generation of {what} of {key} fell from {old} to {new}"),
            );
        }
    };
    fell(
        "the status",
        observed(&before["status"]),
        observed(&after["status"]),
    );
    for condition in after["status"]["conditions"].as_array().into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        let former = object::condition(before, kind);
        fell(kind, former.and_then(observed), observed(condition));
    }
}

fn observed(value: &Value) -> Option<i64> {
    value["observedGeneration"].as_i64()
}
