//! What is to be done with a revision, and whether what was gathered may be applied. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, LifecycleState, ObservedPhase, keys};
use olm_applier::ownership::{Identity, Sibling};
use olm_applier::plan::{Phase, group_kind};
use serde_json::Value;

/// What a revision is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Applied and kept.
    Keep,
    /// Taken down and kept as a record.
    Archive,
    /// Taken down and gone.
    Remove,
    /// It is what it is to become.
    Nothing,
}

pub(super) fn course(set: &ClusterObjectSet) -> Course {
    let held = set.finalizers().iter().any(|f| f == keys::TEARDOWN_FINALIZER);
    let archived = set.spec.lifecycle_state == LifecycleState::Archived;
    let told = condition(set, "Progressing").is_some_and(|(_, reason)| reason == "Archived");
    match (set.metadata.deletion_timestamp.is_some(), archived) {
        (true, _) if held => Course::Remove,
        (true, _) => Course::Nothing,
        (false, true) if told && !held => Course::Nothing,
        (false, true) => Course::Archive,
        (false, false) => Course::Keep,
    }
}

fn condition<'a>(set: &'a ClusterObjectSet, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = set.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|c| c.type_ == type_)?;
    Some((&found.status, &found.reason))
}

/// Differs when the revision is to be looked at anew, its objects read from their Secrets again: after a change of the spec, and
/// of any annotation, which is how people ask for it. Nothing else tells of a Secret that was deleted and created again.
pub(super) fn state(set: &ClusterObjectSet) -> u64 {
    let mut hasher = DefaultHasher::new();
    (set.metadata.generation, &set.metadata.annotations).hash(&mut hasher);
    hasher.finish()
}

/// Version of the bundle, as messages name it.
pub(super) fn version(set: &ClusterObjectSet) -> &str {
    set.annotations()
        .get(keys::BUNDLE_VERSION_ANNOTATION)
        .map_or("", String::as_str)
}

/// The owner-name label; empty when there is none.
pub(super) fn owner_name(set: &ClusterObjectSet) -> &str {
    set.labels()
        .get(keys::OWNER_NAME_LABEL)
        .map_or("", String::as_str)
}

/// Time left until the revision is overdue, zero when it is; `None` when no deadline applies.
pub(super) fn remaining(set: &ClusterObjectSet, now: Timestamp) -> Option<Duration> {
    let minutes = set
        .spec
        .progress_deadline_minutes
        .filter(|minutes| *minutes > 0)?;
    let done = condition(set, "Succeeded").is_some_and(|(status, _)| status == "True");
    if done || course(set) != Course::Keep {
        return None;
    }
    let created = set.metadata.creation_timestamp.as_ref()?.0;
    let left = SignedDuration::from_mins(i64::from(minutes)) - now.duration_since(created);
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

/// The revision as the engine knows it, with the other revisions of its extension among `all`.
pub(super) fn identity<'a>(
    set: &ClusterObjectSet,
    all: impl Iterator<Item = &'a ClusterObjectSet>,
) -> Identity {
    let siblings = all
        .filter(|other| is_sibling(set, other))
        .map(|other| Sibling {
            uid: other.uid().unwrap_or_default(),
            number: other.spec.revision,
        })
        .collect();
    Identity {
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
        number: set.spec.revision,
        owner_name: owner_name(set).to_owned(),
        siblings,
    }
}

fn is_sibling(set: &ClusterObjectSet, other: &ClusterObjectSet) -> bool {
    !owner_name(set).is_empty() && owner_name(set) == owner_name(other) && set.uid() != other.uid()
}

/// Whether `other` is to be archived now that `set` has rolled out.
pub(super) fn outdone(set: &ClusterObjectSet, other: &ClusterObjectSet) -> bool {
    is_sibling(set, other)
        && other.spec.revision < set.spec.revision
        && other.spec.lifecycle_state == LifecycleState::Active
        && other.metadata.deletion_timestamp.is_none()
}

/// Digests of the phases, in order.
pub(super) fn digests(phases: &[Phase]) -> Vec<ObservedPhase> {
    phases
        .iter()
        .map(|phase| ObservedPhase {
            name: phase.name.clone(),
            digest: phase.digest(),
        })
        .collect()
}

/// Why the content is not what was observed first; `None` when it is.
pub(super) fn changed(observed: &[ObservedPhase], now: &[ObservedPhase]) -> Option<String> {
    if observed.is_empty() {
        return None;
    }
    if observed.len() != now.len() {
        return Some(format!(
            "number of phases has changed (expected {} phases, got {})",
            observed.len(),
            now.len()
        ));
    }
    let different: Vec<String> = observed
        .iter()
        .zip(now)
        .filter(|(old, new)| old != new)
        .map(|(old, new)| {
            format!(
                "phase \"{}\" (expected digest {}, got {})",
                old.name, old.digest, new.digest
            )
        })
        .collect();
    if different.is_empty() {
        return None;
    }
    Some(format!(
        "resolved content of {} phase(s) has changed: {}; a referenced object source may have been deleted and recreated with different content",
        different.len(),
        different.join("; ")
    ))
}

/// What is wrong with the objects themselves; `None` when nothing is.
pub(super) fn invalid(name: &str, number: i64, phases: &[Phase]) -> Option<String> {
    let mut places: BTreeMap<[String; 4], BTreeSet<usize>> = BTreeMap::new();
    let mut twice: BTreeSet<String> = BTreeSet::new();
    for (index, phase) in phases.iter().enumerate() {
        for object in &phase.objects {
            let meta = |key: &str| {
                object
                    .get("metadata")
                    .and_then(|m| m.get(key))
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (group, kind) = group_kind(object);
            if kind.is_empty() || meta("name").is_empty() {
                return Some(format!(
                    "phase {index} validation error: an object has no kind or no name"
                ));
            }
            for key in [
                "uid",
                "generation",
                "generateName",
                "finalizers",
                "ownerReferences",
                "resourceVersion",
            ] {
                if object
                    .get("metadata")
                    .is_some_and(|m| m.get(key).is_some_and(|v| !v.is_null()))
                {
                    return Some(format!(
                        "phase {index} validation error: {kind} {}: metadata.{key} must be empty",
                        meta("name")
                    ));
                }
            }
            let key = [group, kind, meta("namespace").to_owned(), meta("name").to_owned()];
            let seen = places.entry(key).or_default();
            if !seen.is_empty() {
                twice.extend(seen.iter().filter_map(|i| phases.get(*i)).map(|p| p.name.clone()));
                twice.insert(phase.name.clone());
            }
            seen.insert(index);
        }
    }
    if twice.is_empty() {
        return None;
    }
    let list: Vec<String> = twice.into_iter().collect();
    Some(format!(
        "revision validation error: revision \"{name}\" ({number}): duplicate object found in phases: {}",
        list.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(value: &Value) -> ClusterObjectSet {
        let mut base = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "labels": {keys::OWNER_NAME_LABEL: "x"},
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}});
        for (section, fields) in value.as_object().unwrap() {
            for (key, field) in fields.as_object().unwrap() {
                base[section][key] = field.clone();
            }
        }
        serde_json::from_value(base).unwrap()
    }

    #[test]
    fn the_course_follows_state_and_finalizer() {
        let finalizers = json!([keys::TEARDOWN_FINALIZER]);
        assert_eq!(course(&set(&json!({}))), Course::Keep);
        let archived =
            json!({"spec": {"lifecycleState": "Archived"}, "metadata": {"finalizers": finalizers}});
        assert_eq!(course(&set(&archived)), Course::Archive);
        let gone =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}});
        assert_eq!(course(&set(&gone)), Course::Remove);
        let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(course(&set(&gone)), Course::Nothing);
    }

    #[test]
    fn deadlines_run_from_creation_and_end_with_success() {
        let spec = json!({"progressDeadlineMinutes": 10});
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let running = set(&json!({"spec": spec}));
        assert_eq!(
            remaining(&running, at("2026-01-01T00:04:00Z")),
            Some(Duration::from_mins(6))
        );
        assert_eq!(
            remaining(&running, at("2026-01-01T00:14:00Z")),
            Some(Duration::ZERO)
        );
        let done = json!([{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let done = set(&json!({"spec": spec, "status": {"conditions": done}}));
        assert_eq!(remaining(&done, at("2026-01-01T00:14:00Z")), None);
    }

    #[test]
    fn only_older_active_siblings_are_outdone() {
        let newer = set(&json!({"metadata": {"uid": "v", "name": "x-2"}, "spec": {"revision": 2}}));
        assert!(outdone(&newer, &set(&json!({}))));
        assert!(!outdone(&set(&json!({})), &newer));
        assert!(!outdone(&newer, &set(&json!({"metadata": {"labels": {}}}))));
    }

    #[test]
    fn changed_content_and_duplicates_are_told() {
        let phase = |name: &str, objects: Vec<Value>| Phase {
            name: name.to_owned(),
            objects,
        };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let one = digests(&[phase("deploy", vec![object.clone()])]);
        let two = digests(&[phase("deploy", Vec::new())]);
        assert_eq!(changed(&one, &one), None);
        assert!(changed(&one, &two).unwrap().starts_with(
            "resolved content of 1 phase(s) has changed: phase \"deploy\" (expected digest sha256:"
        ));
        assert_eq!(
            changed(&one, &[]).unwrap(),
            "number of phases has changed (expected 1 phases, got 0)"
        );
        let twice = [phase("a", vec![object.clone()]), phase("b", vec![object])];
        assert_eq!(
            invalid("x-1", 1, &twice).unwrap(),
            "revision validation error: revision \"x-1\" (1): duplicate object found in phases: a, b"
        );
    }
}
