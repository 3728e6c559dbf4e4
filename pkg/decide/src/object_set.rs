//! Decisions about a revision: its goal, its identity, and the times of its deadline and its soak. Pure.

mod grace;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use olm_api::condition::{find, find_true, is_true, reasons::ObjectSet as Reason, types::ObjectSet as Type};
use olm_api::{ClusterObjectSet, CustomResourcePolicy, LifecycleState, ObservedPhase, keys};
use olm_applier::ownership::{Identity, Sibling};
use olm_applier::plan::Phase;
use olm_text::object::ObjectId;

pub use grace::{Grace, grace};

/// State that a revision is to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The objects are applied and kept in repair.
    Applied,
    /// The objects are deleted; the revision stays as a record.
    Archived,
    /// The objects and the revision are deleted.
    Deleted,
    /// The revision has reached its goal.
    Reached,
}

/// Returns the goal of the revision.
pub fn goal(set: &ClusterObjectSet) -> Goal {
    let held = is_held(set);
    let archived = set.spec.lifecycle_state == LifecycleState::Archived;
    let reported = find(set.conditions(), Type::Progressing)
        .is_some_and(|condition| condition.reason == Reason::Archived);
    match (set.metadata.deletion_timestamp.is_some(), archived) {
        (true, _) if held => Goal::Deleted,
        (true, _) => Goal::Reached,
        (false, true) if reported && !held => Goal::Reached,
        (false, true) => Goal::Archived,
        (false, false) => Goal::Applied,
    }
}

/// Returns the goal of the revision. `late` says if watches show an object that it controls, and is asked only of a revision that has
/// reached its goal.
///
/// A process that lost its lease can still have a write on its way. If that write creates an object after the revision was
/// archived, nobody else deletes the object, so the teardown starts again.
pub fn goal_with(set: &ClusterObjectSet, late: impl FnOnce() -> bool) -> Goal {
    match goal(set) {
        Goal::Reached if set.metadata.deletion_timestamp.is_none() && late() => Goal::Archived,
        goal => goal,
    }
}

/// Time for which watches look for late objects of an archived revision: longer than a lost call of a former leader lives.
const LATE_WRITES: SignedDuration = SignedDuration::from_mins(10);

/// Returns the time for which the watches of an archived revision go on; `None` if they end now.
///
/// A late object of a kind that no active revision has would be seen by nobody otherwise.
pub fn watched_for(set: &ClusterObjectSet, now: Timestamp) -> Option<Duration> {
    if set.metadata.deletion_timestamp.is_some() || set.spec.lifecycle_state != LifecycleState::Archived {
        return None;
    }
    let archived = find(set.conditions(), Type::Available).filter(|known| known.reason == Reason::Archived);
    let since = archived.map_or(now, |condition| condition.last_transition_time.0);
    let left = LATE_WRITES - now.duration_since(since);
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

/// Returns true if the revision has the finalizer of this controller.
pub fn is_held(set: &ClusterObjectSet) -> bool {
    set.finalizers().iter().any(|f| f == keys::TEARDOWN_FINALIZER)
}

/// Returns the policy for CRDs that hold custom resources: that of the revision's annotation, else `default`.
///
/// An upgrade does not wait for the custom resources of a CRD that it drops: with `Block`, an archived revision keeps
/// them. A value that nobody knows keeps them, too.
pub fn custom_resources(set: &ClusterObjectSet, default: CustomResourcePolicy) -> CustomResourcePolicy {
    let named = set.annotations().get(keys::CUSTOM_RESOURCES_ON_DELETE_ANNOTATION);
    let policy = named.map_or(default, |name| name.parse().unwrap_or(CustomResourcePolicy::Keep));
    match policy {
        CustomResourcePolicy::Block if goal(set) != Goal::Deleted => CustomResourcePolicy::Keep,
        policy => policy,
    }
}

/// Returns true if the objects of the revision are observed only.
pub fn is_paused(set: &ClusterObjectSet) -> bool {
    set.spec.paused == Some(true) && goal(set) == Goal::Applied
}

/// Returns a hash that changes when the objects must be read from their Secrets and checked again: after a change of the
/// spec, of the owner-name label, which the objects carry too, and of any annotation. Users change an annotation to
/// request the check: nothing else reports that a Secret was deleted and created again.
pub fn state(set: &ClusterObjectSet) -> u64 {
    let mut hasher = DefaultHasher::new();
    (
        set.metadata.generation,
        &set.metadata.annotations,
        owner_name(set),
    )
        .hash(&mut hasher);
    hasher.finish()
}

/// Returns the value of the owner-name label; empty without the label.
pub fn owner_name(set: &ClusterObjectSet) -> &str {
    set.labels()
        .get(keys::OWNER_NAME_LABEL)
        .map_or("", String::as_str)
}

/// Returns the time until the deadline of the rollout, zero if it has passed; `None` without a deadline.
pub fn remaining(set: &ClusterObjectSet, now: Timestamp) -> Option<Duration> {
    let minutes = set
        .spec
        .progress_deadline_minutes
        .filter(|minutes| *minutes > 0)?;
    let done = is_true(set.conditions(), Type::Succeeded);
    if done || goal(set) != Goal::Applied {
        return None;
    }
    let created = set.metadata.creation_timestamp.as_ref()?.0;
    let left = SignedDuration::from_mins(i64::from(minutes)) - now.duration_since(created);
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

/// Returns the end of the soak of a revision whose objects are all available; `None` if it counts as rolled out.
///
/// The condition `Available` records the start, so a restart of the controller does not start the soak again.
pub fn soak_end(set: &ClusterObjectSet, now: Timestamp) -> Option<Timestamp> {
    if is_true(set.conditions(), Type::Succeeded) {
        return None;
    }
    let available = find_true(set.conditions(), Type::Available);
    let since = available.map(|condition| condition.last_transition_time.0);
    olm_rollout::soak_end(set.spec.soak.as_deref(), since, now)
}

/// Returns the identity of the revision for the engine, with its siblings among `all`.
pub fn identity<'a>(set: &ClusterObjectSet, all: impl Iterator<Item = &'a ClusterObjectSet>) -> Identity {
    let siblings = all
        .filter(|other| is_sibling(set, other))
        .map(|other| Sibling {
            uid: other.uid().unwrap_or_default(),
            number: other.spec.revision,
            deleting: other.metadata.deletion_timestamp.is_some(),
            active: other.spec.lifecycle_state == LifecycleState::Active
                && other.metadata.deletion_timestamp.is_none(),
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

/// Returns true if `other` must be archived once `set` has rolled out.
pub fn superseded(set: &ClusterObjectSet, other: &ClusterObjectSet) -> bool {
    is_sibling(set, other)
        && other.spec.revision < set.spec.revision
        && other.spec.lifecycle_state == LifecycleState::Active
        && other.metadata.deletion_timestamp.is_none()
}

/// Returns the digests of the phases, in order.
pub fn digests(phases: &[Phase]) -> Vec<ObservedPhase> {
    phases
        .iter()
        .map(|phase| ObservedPhase {
            name: phase.name.clone(),
            digest: phase.digest(),
        })
        .collect()
}

/// Returns the differences between the digests observed first and the present ones; `None` if they are equal.
pub fn changed(observed: &[ObservedPhase], now: &[ObservedPhase]) -> Option<String> {
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

/// Returns the first fault of the objects; `None` if they are valid.
pub fn invalid(name: &str, number: i64, phases: &[Phase]) -> Option<String> {
    let mut places: BTreeMap<[&str; 4], BTreeSet<usize>> = BTreeMap::new();
    let mut twice: BTreeSet<String> = BTreeSet::new();
    for (index, phase) in phases.iter().enumerate() {
        for object in &phase.objects {
            let id = ObjectId::of(object);
            if id.kind.is_empty() || id.name.is_empty() {
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
                        "phase {index} validation error: {} {}: metadata.{key} must be empty",
                        id.kind, id.name
                    ));
                }
            }
            let key = [id.group, id.kind, id.stored_namespace(), id.name];
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
    use serde_json::{Value, json};

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
    fn the_goal_follows_state_and_finalizer() {
        let finalizers = json!([keys::TEARDOWN_FINALIZER]);
        assert_eq!(goal(&set(&json!({}))), Goal::Applied);
        let archived =
            json!({"spec": {"lifecycleState": "Archived"}, "metadata": {"finalizers": finalizers}});
        assert_eq!(goal(&set(&archived)), Goal::Archived);
        let gone =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}});
        assert_eq!(goal(&set(&gone)), Goal::Deleted);
        let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(goal(&set(&gone)), Goal::Reached);
    }

    #[test]
    fn the_annotation_overrides_the_default_and_upgrades_never_block() {
        use CustomResourcePolicy::{Block, Delete, Keep};
        let named = |policy: Option<&str>, deleted: bool| {
            let mut given = json!({"metadata": {"finalizers": [keys::TEARDOWN_FINALIZER],
                "annotations": {keys::CUSTOM_RESOURCES_ON_DELETE_ANNOTATION: policy.unwrap_or_default()}}});
            if policy.is_none() {
                given["metadata"]["annotations"] = json!({});
            }
            if deleted {
                given["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            } else {
                given["spec"] = json!({"lifecycleState": "Archived"});
            }
            set(&given)
        };
        for (policy, default, deleted, expected) in [
            (None, Keep, true, Keep),
            (None, Delete, true, Delete),
            (None, Block, true, Block),
            (Some("Delete"), Keep, true, Delete),
            (Some("Block"), Delete, true, Block),
            (Some("Block"), Delete, false, Keep),
            (Some("Delete"), Keep, false, Delete),
            (Some("Sell"), Delete, true, Keep),
        ] {
            let found = custom_resources(&named(policy, deleted), default);
            assert_eq!(found, expected, "{policy:?} {default} {deleted}");
        }
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
    fn a_soak_starts_with_availability_and_ends_with_success() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:01:00Z"})
        };
        let soaking =
            |conditions: Value| set(&json!({"spec": {"soak": "10m"}, "status": {"conditions": conditions}}));
        let available = soaking(json!([condition("Available", "True")]));
        let end = Some(at("2026-01-01T00:11:00Z"));
        assert_eq!(soak_end(&available, at("2026-01-01T00:05:00Z")), end);
        assert_eq!(soak_end(&available, at("2026-01-01T00:11:00Z")), None);
        let starting = soaking(json!([condition("Available", "False")]));
        assert_eq!(
            soak_end(&starting, at("2026-01-01T00:05:00Z")),
            Some(at("2026-01-01T00:15:00Z"))
        );
        let done = soaking(json!([
            condition("Available", "True"),
            condition("Succeeded", "True")
        ]));
        assert_eq!(soak_end(&done, at("2026-01-01T00:05:00Z")), None);
        assert_eq!(soak_end(&set(&json!({})), at("2026-01-01T00:05:00Z")), None);
    }

    #[test]
    fn only_older_active_siblings_are_superseded() {
        let newer = set(&json!({"metadata": {"uid": "v", "name": "x-2"}, "spec": {"revision": 2}}));
        assert!(superseded(&newer, &set(&json!({}))));
        assert!(!superseded(&set(&json!({})), &newer));
        assert!(!superseded(&newer, &set(&json!({"metadata": {"labels": {}}}))));
    }

    #[test]
    fn changed_content_and_duplicates_are_reported() {
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

    #[test]
    fn a_namespace_that_means_nothing_makes_no_other_object() {
        let object = |api_version: &str, kind: &str, namespace: Option<&str>| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}});
        let is_invalid = |api_version: &str, kind: &str| {
            let objects = vec![
                object(api_version, kind, None),
                object(api_version, kind, Some("n")),
            ];
            let phases = [Phase {
                name: "deploy".to_owned(),
                objects,
            }];
            invalid("x-1", 1, &phases).is_some()
        };
        let webhooks = "admissionregistration.k8s.io/v1";
        assert!(is_invalid(webhooks, "ValidatingWebhookConfiguration"));
        assert!(!is_invalid("v1", "ConfigMap"));
    }

    #[test]
    fn an_archived_revision_is_done_once_it_is_reported_and_released() {
        let archived = |reason: &str, finalizers: Value| {
            set(
                &json!({"spec": {"lifecycleState": "Archived"}, "metadata": {"finalizers": finalizers},
                "status": {"conditions": [{"type": "Progressing", "status": "False", "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
            )
        };
        let held = json!([keys::TEARDOWN_FINALIZER]);
        assert_eq!(goal(&archived("Archived", held)), Goal::Archived);
        assert_eq!(goal(&archived("Succeeded", json!([]))), Goal::Archived);
        // The finalizer of somebody else keeps nothing of ours.
        assert_eq!(
            goal(&archived("Archived", json!(["example.com/other"]))),
            Goal::Reached
        );
        let active = set(
            &json!({"status": {"conditions": archived("Archived", json!([])).status.unwrap().conditions}}),
        );
        assert_eq!(goal(&active), Goal::Applied);
    }

    #[test]
    fn a_late_object_starts_the_teardown_of_an_archived_revision_again() {
        let archived = set(&json!({"spec": {"lifecycleState": "Archived"},
            "status": {"conditions": [{"type": "Progressing", "status": "False", "reason": "Archived", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}));
        assert_eq!(goal_with(&archived, || false), Goal::Reached);
        assert_eq!(goal_with(&archived, || true), Goal::Archived);
        let active = set(&json!({}));
        assert_eq!(goal_with(&active, || true), Goal::Applied);
        let deleted = set(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        assert_eq!(goal_with(&deleted, || true), Goal::Reached);
    }

    #[test]
    fn an_archived_revision_is_watched_for_a_while() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let archived = |reason: &str| {
            set(&json!({"spec": {"lifecycleState": "Archived"},
                "status": {"conditions": [{"type": "Available", "status": "Unknown", "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
        };
        let minutes = |minutes| Some(Duration::from_mins(minutes));
        let done = archived("Archived");
        assert_eq!(watched_for(&done, at("2026-01-01T00:04:00Z")), minutes(6));
        assert_eq!(watched_for(&done, at("2026-01-01T00:10:00Z")), None);
        // Its status does not say yet that it is archived.
        let leaving = archived("ProbesSucceeded");
        assert_eq!(watched_for(&leaving, at("2026-01-01T00:10:00Z")), minutes(10));
        assert_eq!(watched_for(&set(&json!({})), at("2026-01-01T00:00:00Z")), None);
        let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"lifecycleState": "Archived"}});
        assert_eq!(watched_for(&set(&gone), at("2026-01-01T00:00:00Z")), None);
    }

    #[test]
    fn only_an_applied_revision_pauses() {
        assert!(is_paused(&set(&json!({"spec": {"paused": true}}))));
        assert!(!is_paused(&set(&json!({"spec": {"paused": false}}))));
        assert!(!is_paused(&set(&json!({}))));
        assert!(!is_paused(&set(
            &json!({"spec": {"paused": true, "lifecycleState": "Archived"}})
        )));
    }

    #[test]
    fn the_objects_are_read_again_after_a_change_of_what_they_come_from() {
        let first = state(&set(&json!({})));
        let status = json!({"status": {"conditions": []}, "metadata": {"resourceVersion": "7"}});
        assert_eq!(state(&set(&status)), first);
        for changed in [
            json!({"metadata": {"generation": 2}}),
            json!({"metadata": {"annotations": {"check": "again"}}}),
            json!({"metadata": {"labels": {keys::OWNER_NAME_LABEL: "y"}}}),
        ] {
            assert_ne!(state(&set(&changed)), first, "{changed}");
        }
    }

    #[test]
    fn a_revision_without_a_rollout_has_no_deadline() {
        let now = "2026-01-01T00:04:00Z".parse::<Timestamp>().unwrap();
        for spec in [
            json!({"progressDeadlineMinutes": 0}),
            json!({"progressDeadlineMinutes": 10, "lifecycleState": "Archived"}),
        ] {
            assert_eq!(remaining(&set(&json!({"spec": spec})), now), None, "{spec}");
        }
    }

    #[test]
    fn siblings_have_the_same_owner_and_another_uid() {
        let first = set(&json!({}));
        let second = set(&json!({"metadata": {"uid": "v", "name": "x-2"}, "spec": {"revision": 2}}));
        let foreign = set(&json!({"metadata": {"uid": "w", "labels": {keys::OWNER_NAME_LABEL: "y"}}}));
        let nameless = set(&json!({"metadata": {"uid": "z", "labels": {}}}));
        let found = identity(&second, [&first, &second, &foreign, &nameless].into_iter());
        let sibling = Sibling {
            uid: "u".to_owned(),
            number: 1,
            deleting: false,
            active: true,
        };
        let expected = Identity {
            name: "x-2".to_owned(),
            uid: "v".to_owned(),
            number: 2,
            owner_name: "x".to_owned(),
            siblings: vec![sibling],
        };
        assert_eq!(found, expected);
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let found = identity(&second, [&set(&deleted)].into_iter());
        assert!(
            found
                .siblings
                .iter()
                .all(|sibling| sibling.deleting && !sibling.active)
        );
        let archived = json!({"spec": {"lifecycleState": "Archived"}});
        let found = identity(&second, [&set(&archived)].into_iter());
        assert!(
            found
                .siblings
                .iter()
                .all(|sibling| !sibling.deleting && !sibling.active)
        );
        let unnamed = set(&json!({"metadata": {"uid": "q", "labels": {}}}));
        assert_eq!(identity(&unnamed, [&nameless].into_iter()).siblings, []);
    }

    #[test]
    fn finished_and_equal_revisions_are_not_superseded() {
        let newer = set(&json!({"metadata": {"uid": "v", "name": "x-2"}, "spec": {"revision": 2}}));
        for other in [
            json!({"spec": {"revision": 2}}),
            json!({"spec": {"lifecycleState": "Archived"}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ] {
            assert!(!superseded(&newer, &set(&other)), "{other}");
        }
    }

    #[test]
    fn objects_bring_a_name_and_no_metadata_of_the_server() {
        let with = |object: Value| {
            let phases = [Phase {
                name: "deploy".to_owned(),
                objects: vec![object],
            }];
            invalid("x-1", 1, &phases)
        };
        let map = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        assert_eq!(
            with(map(json!({"name": "a", "uid": null, "labels": {"uid": "x"}}))),
            None
        );
        let nameless = "phase 0 validation error: an object has no kind or no name";
        assert_eq!(with(map(json!({}))).unwrap(), nameless);
        assert_eq!(with(map(json!("x"))).unwrap(), nameless);
        assert_eq!(with(map(json!([]))).unwrap(), nameless);
        assert_eq!(with(json!({"metadata": {"name": "a"}})).unwrap(), nameless);
        for key in [
            "uid",
            "generation",
            "generateName",
            "finalizers",
            "ownerReferences",
            "resourceVersion",
        ] {
            assert_eq!(
                with(map(json!({"name": "a", key: "x"}))).unwrap(),
                format!("phase 0 validation error: ConfigMap a: metadata.{key} must be empty")
            );
        }
    }
}
