//! Tests of the invariants about several objects: each one is broken once, and holds for the same change with a valid reason.

use serde_json::{Value, json};

use super::tests::{broken, change, deletion, extension};
use super::*;

fn exact() -> Settings {
    Settings {
        exact_order: true,
        ..Settings::default()
    }
}

/// Returns a revision with an account in its first phase and a Deployment in its second one, or the other way round.
fn revision(kinds: [&str; 2], succeeded: bool, more: &Value) -> Value {
    let phase = |kind: &str| {
        let name = kind.to_lowercase();
        json!({"name": name, "objects": [{"object": {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}}]})
    };
    let condition = |kind: &str, status: bool, time: &str| json!({"type": kind, "status": if status { "True" } else { "False" }, "lastTransitionTime": time});
    let mut revision = json!({
        "metadata": {"name": "x-1", "uid": "r1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "uid": "x-uid", "controller": true}]},
        "spec": {"revision": 1, "lifecycleState": "Active", "phases": kinds.map(phase)},
        "status": {"conditions": [condition("Available", true, "2026-01-01T00:01:00Z"),
            condition("Succeeded", succeeded, "2026-01-01T00:06:00Z")]},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        revision["spec"][key] = value.clone();
    }
    revision
}

const USUAL: [&str; 2] = ["ServiceAccount", "Deployment"];

fn created(kinds: [&str; 2]) -> Vec<Change> {
    vec![
        change("ClusterExtension", "x", Value::Null, extension(1)),
        change(
            "ClusterObjectSet",
            "x-1",
            Value::Null,
            revision(kinds, false, &json!({})),
        ),
    ]
}

fn object(kind: &str, available: bool) -> Value {
    json!({"metadata": {"name": kind.to_lowercase(), "uid": "u", "generation": 1, "labels": {"olm.operatorframework.io/owner-name": "x"},
        "ownerReferences": [{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "uid": "r1", "controller": true}]},
        "status": {"conditions": [{"type": "Available", "status": if available { "True" } else { "False" }}]}})
}

fn applied(kind: &str, available: bool) -> Change {
    change(kind, &kind.to_lowercase(), Value::Null, object(kind, available))
}

fn broken_after(mut changes: Vec<Change>, more: Vec<Change>) -> Vec<String> {
    changes.extend(more);
    broken(exact(), &changes)
}

/// Returns the deletion of the object of this kind by a user.
fn deleted_by_user(kind: &str) -> Change {
    Change {
        actor: Actor::Other("user".to_owned()),
        ..change(kind, &kind.to_lowercase(), object(kind, true), Value::Null)
    }
}

#[test]
fn workloads_come_after_what_they_need() {
    assert_eq!(broken(exact(), &created(USUAL)), [""; 0]);
    assert_eq!(
        broken(exact(), &created(["Deployment", "ServiceAccount"])),
        ["needed-first"]
    );
}

#[test]
fn phases_are_applied_in_order() {
    let (account, workload) = (applied("ServiceAccount", true), applied("Deployment", true));
    assert_eq!(
        broken_after(created(USUAL), vec![workload.clone()]),
        ["phases-in-order"]
    );
    assert_eq!(broken_after(created(USUAL), vec![account, workload]), [""; 0]);
    let both = ["CustomResourceDefinition", "Deployment"];
    let crd = |established: &str| {
        let mut crd = applied("CustomResourceDefinition", true);
        let mut value = object("CustomResourceDefinition", true);
        value["status"] = json!({"conditions": [{"type": "Established", "status": established}]});
        crd.after = Some(Arc::new(value));
        crd.object.group = String::new();
        crd
    };
    for (established, found) in [("False", vec!["phases-in-order"]), ("True", vec![])] {
        let changes = vec![crd(established), applied("Deployment", true)];
        assert_eq!(broken_after(created(both), changes), found);
    }
}

#[test]
fn success_needs_its_objects_and_its_soak() {
    let success = |more: &Value| {
        let (before, after) = (revision(USUAL, false, more), revision(USUAL, true, more));
        change("ClusterObjectSet", "x-1", before, after)
    };
    let with = |changes: Vec<Change>, soak: &Value| {
        let mut all = changes;
        all.push(success(soak));
        broken_after(created(USUAL), all)
    };
    let account = || applied("ServiceAccount", true);
    let none = json!({});
    assert_eq!(with(vec![account()], &none), ["success-is-real"]);
    assert_eq!(
        with(vec![account(), applied("Deployment", false)], &none),
        ["success-is-real"]
    );
    let all = || vec![account(), applied("Deployment", true)];
    assert_eq!(with(all(), &none), [""; 0]);
    assert_eq!(with(all(), &json!({"soak": "5m"})), [""; 0]);
    assert_eq!(with(all(), &json!({"soak": "6m"})), ["soak-is-over"]);
    let mut changes = all();
    changes.push(deleted_by_user("Deployment"));
    assert_eq!(with(changes, &none), [""; 0]);
}

#[test]
fn the_last_phase_goes_first() {
    let archived = || {
        let after = revision(USUAL, false, &json!({"lifecycleState": "Archived"}));
        change(
            "ClusterObjectSet",
            "x-1",
            revision(USUAL, false, &json!({})),
            after,
        )
    };
    let delete = |kind: &str| deletion(kind, &kind.to_lowercase(), object(kind, true));
    let changes = |then: Vec<Change>| {
        let mut changes = vec![
            applied("ServiceAccount", true),
            applied("Deployment", true),
            archived(),
        ];
        changes.extend(then);
        broken_after(created(USUAL), changes)
    };
    assert_eq!(changes(vec![delete("ServiceAccount")]), ["teardown-in-order"]);
    assert_eq!(
        changes(vec![delete("Deployment"), delete("ServiceAccount")]),
        [""; 0]
    );
    // Another one has deleted the Deployment, and a late write creates it again.
    assert_eq!(
        changes(vec![
            deleted_by_user("Deployment"),
            applied("Deployment", true),
            delete("ServiceAccount")
        ]),
        [""; 0]
    );
}

#[test]
fn an_extension_goes_last_and_leaves_finalizers_of_others() {
    let leaving = |finalizers: Value| {
        let mut leaving = extension(2);
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:10:00Z");
        leaving["metadata"]["finalizers"] = finalizers;
        leaving
    };
    let ours = json!(["olm.operatorframework.io/cleanup"]);
    let gone = |before: &Value| change("ClusterExtension", "x", leaving(before.clone()), Value::Null);
    assert_eq!(
        broken_after(created(USUAL), vec![gone(&ours)]),
        ["extension-last"]
    );
    let no_revision = vec![created(USUAL).remove(0)];
    assert_eq!(broken_after(no_revision.clone(), vec![gone(&ours)]), [""; 0]);
    assert_eq!(
        broken_after(no_revision, vec![gone(&json!(["example.com/hold"]))]),
        ["finalizers-of-others"]
    );
}

#[test]
fn rules_over_objects_need_the_order_of_changes() {
    let mut changes = created(USUAL);
    changes.push(applied("Deployment", true));
    assert_eq!(broken(Settings::default(), &changes), [""; 0]);
}
