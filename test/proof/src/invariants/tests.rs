//! Each test breaks an invariant by the smallest possible change, and shows that the same change by somebody else or for a valid
//! reason breaks none.

use serde_json::{Value, json};

use super::*;
use crate::Preconditions;

const US: Actor = Actor::Controller(0);

fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

/// Returns a change by the controller; `null` stands for an absent object.
pub(super) fn change(kind: &str, name: &str, before: Value, after: Value) -> Change {
    let group = match kind {
        "ClusterExtension" | "ClusterObjectSet" => GROUP,
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "Word" => "words.example",
        _ => "",
    };
    let some = |value: Value| (!value.is_null()).then(|| Arc::new(value));
    Change {
        actor: US,
        object: key(group, kind, name),
        before: some(before),
        after: some(after),
        deletion: None,
    }
}

pub(super) fn deletion(kind: &str, name: &str, before: Value) -> Change {
    Change {
        deletion: Some(Preconditions {
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
        }),
        ..change(kind, name, before, Value::Null)
    }
}

pub(super) fn extension(generation: i64) -> Value {
    json!({"metadata": {"name": "x", "uid": "x-uid", "generation": generation}, "spec": {"source": {"catalog": {}}}})
}

fn revision(number: i64, version: &str, succeeded: bool) -> Value {
    json!({
        "metadata": {
            "name": format!("x-{number}"), "uid": format!("r{number}"),
            "annotations": {"olm.operatorframework.io/bundle-version": version},
            "ownerReferences": [{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "uid": "x-uid", "controller": true}]
        },
        "spec": {"revision": number, "lifecycleState": "Active",
            "phases": [{"name": "deploy", "objects": [{"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}}]}]},
        "status": {"conditions": [{"type": "Succeeded", "status": if succeeded { "True" } else { "False" }}]},
    })
}

fn ours() -> Value {
    json!({"metadata": {"name": "c", "uid": "u", "labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension",
        "olm.operatorframework.io/owner-name": "x"}}})
}

/// Observes the changes, of which all but the last must break nothing. Returns the names of the invariants that the last one
/// breaks.
pub(super) fn broken(settings: Settings, changes: &[Change]) -> Vec<String> {
    let mut invariants = Invariants::new(settings);
    let mut last = Vec::new();
    for change in changes {
        assert_eq!(last, Vec::<Violation>::new());
        last = invariants.observe(change);
    }
    last.into_iter().map(|violation| violation.invariant).collect()
}

fn broken_by(changes: &[Change]) -> Vec<String> {
    broken(Settings::default(), changes)
}

/// Returns the changes that create an extension and one succeeded revision.
fn installed() -> Vec<Change> {
    vec![
        change("ClusterExtension", "x", Value::Null, extension(1)),
        change("ClusterObjectSet", "x-1", Value::Null, revision(1, "1.2.0", true)),
    ]
}

fn after_install(next: Change) -> Vec<Change> {
    let mut changes = installed();
    changes.push(next);
    changes
}

#[test]
fn an_object_has_one_controller() {
    let two = json!({"metadata": {"ownerReferences": [{"uid": "a", "controller": true}, {"uid": "b", "controller": true}]}});
    let one = json!({"metadata": {"ownerReferences": [{"uid": "a", "controller": true}, {"uid": "b"}]}});
    assert_eq!(
        broken_by(&[change("ConfigMap", "c", Value::Null, two)]),
        ["one-controller"]
    );
    assert_eq!(broken_by(&[change("ConfigMap", "c", Value::Null, one)]), [""; 0]);
}

#[test]
fn objects_of_others_stay_as_they_are() {
    let foreign = json!({"metadata": {"name": "c", "uid": "u"}});
    let changed = json!({"metadata": {"name": "c", "uid": "u"}, "data": {}});
    let write = change("ConfigMap", "c", foreign.clone(), changed.clone());
    assert_eq!(
        broken_by(std::slice::from_ref(&write)),
        ["nothing-foreign-written"]
    );
    assert_eq!(
        broken_by(&[deletion("ConfigMap", "c", foreign.clone())]),
        ["nothing-foreign-deleted"]
    );
    assert_eq!(
        broken_by(&[change("ConfigMap", "c", ours(), changed.clone())]),
        [""; 0]
    );
    assert_eq!(broken_by(&[change("Lease", "c", foreign, changed)]), [""; 0]);
    let by_others = Change {
        actor: Actor::Other("user".to_owned()),
        ..write
    };
    assert_eq!(broken_by(&[by_others]), [""; 0]);
}

#[test]
fn a_revision_adopts_only_with_permission() {
    let foreign = json!({"metadata": {"name": "c", "uid": "u"}});
    let adopted = json!({"metadata": {"name": "c", "uid": "u", "ownerReferences": [{"uid": "r1", "controller": true}]}});
    let adopt = change("ConfigMap", "c", foreign, adopted);
    let with = |protection: &str| {
        let mut revision = revision(1, "1.2.0", false);
        revision["spec"]["phases"][0]["collisionProtection"] = json!(protection);
        broken_by(&[
            change("ClusterObjectSet", "x-1", Value::Null, revision),
            adopt.clone(),
        ])
    };
    assert_eq!(with("Prevent"), ["nothing-foreign-written"]);
    assert_eq!(with("IfNoController"), [""; 0]);
}

#[test]
fn a_deletion_names_what_was_read() {
    let mut blind = deletion("ConfigMap", "c", ours());
    assert_eq!(broken_by(std::slice::from_ref(&blind)), [""; 0]);
    blind.deletion = Some(Preconditions {
        uid: Some("u".to_owned()),
        resource_version: None,
    });
    assert_eq!(broken_by(std::slice::from_ref(&blind)), ["guarded-deletion"]);
    let common = Settings {
        common_only: true,
        ..Settings::default()
    };
    assert_eq!(broken(common, &[blind]), [""; 0]);
}

#[test]
fn objects_of_the_newest_revision_stay() {
    assert_eq!(
        broken_by(&after_install(deletion("ConfigMap", "c", ours()))),
        ["newest-stays"]
    );
    let mut leaving = extension(1);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut changes = after_install(change("ClusterExtension", "x", extension(1), leaving));
    changes.push(deletion("ConfigMap", "c", ours()));
    assert_eq!(broken_by(&changes), [""; 0]);
    let mut given_up = revision(1, "1.2.0", true);
    given_up["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let by = |actor: Actor| {
        let marked = change(
            "ClusterObjectSet",
            "x-1",
            revision(1, "1.2.0", true),
            given_up.clone(),
        );
        let mut changes = after_install(Change { actor, ..marked });
        changes.push(deletion("ConfigMap", "c", ours()));
        broken_by(&changes)
    };
    assert_eq!(by(Actor::Other("user".to_owned())), [""; 0]);
    assert_eq!(by(US), ["newest-stays"]);
    let other = deletion("ConfigMap", "d", ours());
    assert_eq!(broken_by(&after_install(other)), [""; 0]);
}

#[test]
fn objects_of_a_revision_are_found_in_secrets() {
    let content = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}).to_string();
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, content);
    let secret = json!({"metadata": {"name": "s"}, "data": {"k": data}});
    let mut held = revision(1, "1.2.0", true);
    held["spec"]["phases"][0]["objects"] = json!([{"ref": {"name": "s", "key": "k"}}]);
    let changes = [
        change("ClusterExtension", "x", Value::Null, extension(1)),
        change("Secret", "s", Value::Null, secret),
        change("ClusterObjectSet", "x-1", Value::Null, held),
        deletion("ConfigMap", "c", ours()),
    ];
    assert_eq!(broken_by(&changes), ["newest-stays"]);
}

#[test]
fn a_crd_stays_with_its_custom_resources() {
    let crd = json!({"metadata": {"labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension"},
            "ownerReferences": [{"uid": "r1"}]},
        "spec": {"group": "words.example", "names": {"kind": "Word"}}});
    let word = Change {
        actor: Actor::Other("user".to_owned()),
        ..change("Word", "w", Value::Null, json!({"metadata": {"name": "w"}}))
    };
    let gone = deletion("CustomResourceDefinition", "words", crd);
    assert_eq!(broken_by(&[word.clone(), gone.clone()]), ["crd-with-resources"]);
    assert_eq!(
        broken_by(std::slice::from_ref(&gone)),
        [""; 0],
        "no custom resource"
    );
    let mut told = revision(1, "1.2.0", true);
    told["metadata"]["annotations"]["olm.operatorframework.io/custom-resources-on-delete"] = json!("Delete");
    let told = change("ClusterObjectSet", "x-1", Value::Null, told);
    assert_eq!(
        broken_by(&[told, word, gone]),
        [""; 0],
        "the revision asks for it"
    );
}

#[test]
fn a_blocked_deletion_deletes_nothing() {
    let settings = || Settings {
        exact_order: true,
        ..Settings::default()
    };
    let crd = json!({"metadata": {"name": "words", "ownerReferences": [{"uid": "r1", "controller": true}]},
        "spec": {"group": "words.example", "names": {"kind": "Word"}}});
    let with = |policy: &str, at: Option<&str>| {
        let mut extension = extension(1);
        extension["spec"]["deletion"] = json!({"customResources": policy});
        extension["metadata"]["deletionTimestamp"] = json!(at);
        extension
    };
    let word = |created: &str| {
        let word = json!({"metadata": {"name": "w", "creationTimestamp": created}});
        Change {
            actor: Actor::Other("user".to_owned()),
            ..change("Word", "w", Value::Null, word)
        }
    };
    let marked = |before: &str, after: &str| {
        let time = Some("2026-01-01T00:00:10Z");
        let before = with(before, time.filter(|_| before != after));
        change("ClusterExtension", "x", before, with(after, time))
    };
    let tried = |more: &[Change]| {
        let owner = change("ClusterExtension", "x", Value::Null, with("Block", None));
        let revision = change("ClusterObjectSet", "x-1", Value::Null, revision(1, "1.2.0", true));
        let crd = change("CustomResourceDefinition", "words", Value::Null, crd.clone());
        let mut changes = vec![owner, revision, crd];
        changes.extend_from_slice(more);
        changes.push(deletion("ConfigMap", "c", ours()));
        broken(settings(), &changes)
    };
    let (early, late) = (word("2026-01-01T00:00:09Z"), word("2026-01-01T00:00:10Z"));
    let blocked = || marked("Block", "Block");
    assert_eq!(tried(&[early.clone(), blocked()]), ["block-holds"]);
    assert_eq!(tried(&[blocked()]), [""; 0], "no custom resource");
    assert_eq!(tried(&[late, blocked()]), [""; 0], "created after the count");
    let kept = marked("Block", "Keep");
    assert_eq!(
        tried(&[early.clone(), blocked(), kept]),
        [""; 0],
        "changed to Keep"
    );
    let gone = Change {
        before: early.after.clone(),
        after: None,
        ..early.clone()
    };
    assert_eq!(tried(&[early, blocked(), gone]), [""; 0], "the user deleted it");
}

#[test]
fn versions_do_not_fall() {
    let lower = revision(2, "1.1.0", false);
    let created = |revision: &Value| change("ClusterObjectSet", "x-2", Value::Null, revision.clone());
    assert_eq!(broken_by(&after_install(created(&lower))), ["no-downgrade"]);
    assert_eq!(
        broken_by(&after_install(created(&revision(2, "1.10.0", false)))),
        [""; 0]
    );
    let mut back = lower.clone();
    back["metadata"]["annotations"]["olm.operatorframework.io/rollback"] = json!("{}");
    assert_eq!(broken_by(&after_install(created(&back))), [""; 0]);
    let mut free = extension(2);
    free["spec"]["source"]["catalog"]["upgradeConstraintPolicy"] = json!("SelfCertified");
    let mut changes = after_install(change("ClusterExtension", "x", extension(1), free));
    changes.push(created(&lower));
    assert_eq!(broken_by(&changes), [""; 0]);
}

#[test]
fn numbers_grow_and_archives_stay() {
    let again = change(
        "ClusterObjectSet",
        "x-one",
        Value::Null,
        revision(1, "1.2.0", false),
    );
    assert_eq!(broken_by(&after_install(again.clone())), ["numbers-grow"]);
    let mut gone = after_install(change("ClusterExtension", "x", extension(1), Value::Null));
    gone.push(again);
    let late = broken_by(&gone);
    assert!(!late.contains(&"numbers-grow".to_owned()), "{late:?}");
    let mut archived = revision(1, "1.2.0", true);
    archived["spec"]["lifecycleState"] = json!("Archived");
    let mut changes = after_install(change(
        "ClusterObjectSet",
        "x-1",
        revision(1, "1.2.0", true),
        archived.clone(),
    ));
    changes.push(change(
        "ClusterObjectSet",
        "x-1",
        archived,
        revision(1, "1.2.0", true),
    ));
    assert_eq!(broken_by(&changes), ["archived-stays"]);
}

#[test]
fn a_status_is_of_the_present_generation() {
    let with = |generation: i64, status: &str, observed: i64| {
        let mut extension = extension(generation);
        extension["status"]["conditions"] =
            json!([{"type": "Ready", "status": status, "observedGeneration": observed}]);
        extension
    };
    let write = |before: Value, after: Value| broken_by(&[change("ClusterExtension", "x", before, after)]);
    assert_eq!(write(extension(2), with(2, "True", 1)), ["ready-is-current"]);
    assert_eq!(write(extension(2), with(2, "True", 2)), [""; 0]);
    assert_eq!(write(extension(2), with(2, "False", 1)), [""; 0]);
    assert_eq!(
        write(with(2, "False", 2), with(2, "False", 1)),
        ["generations-go-forward"]
    );
}

#[test]
fn statuses_and_events_show_no_secret() {
    let settings = || Settings {
        secrets: vec!["hunter2".to_owned()],
        ..Settings::default()
    };
    let event = change(
        "Event",
        "e",
        Value::Null,
        json!({"note": "the password is hunter2"}),
    );
    assert_eq!(broken(settings(), &[event]), ["no-secrets"]);
    let held = change(
        "Secret",
        "s",
        Value::Null,
        json!({"stringData": {"password": "hunter2"}}),
    );
    assert_eq!(broken(settings(), &[held]), [""; 0]);
}

#[test]
fn nothing_outlives_an_extension() {
    let mut invariants = Invariants::new(Settings::default());
    for change in installed() {
        invariants.observe(&change);
    }
    invariants.observe(&change("ConfigMap", "c", Value::Null, ours()));
    assert_eq!(invariants.finish(), []);
    invariants.observe(&change("ClusterExtension", "x", extension(1), Value::Null));
    let left: Vec<String> = invariants
        .finish()
        .into_iter()
        .map(|violation| violation.text)
        .collect();
    assert_eq!(
        left,
        [
            "ConfigMap \"c\" is left after its extension is gone",
            "ClusterObjectSet \"x-1\" is left after its extension is gone"
        ]
    );
    let mut kept = ours();
    kept["metadata"]["labels"]["olm.operatorframework.io/kept-from"] = json!("x");
    invariants.observe(&change("ConfigMap", "c", ours(), kept));
    invariants.observe(&change(
        "ClusterObjectSet",
        "x-1",
        revision(1, "1.2.0", true),
        Value::Null,
    ));
    assert_eq!(invariants.finish(), [], "deletion keeps what has the label");
}
