//! Random sequences of requests.

use serde_json::{Value, json};

use crate::kinds::{KINDS, Kind, fields};
use crate::rng::Rng;
use crate::step::Step;

const NAMES: [&str; 3] = ["a", "b", "c"];
const MANAGERS: [&str; 3] = ["m1", "m2", "m3"];
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Maximum number of requests of a sequence.
const LENGTH: usize = 16;

/// Returns the kinds of the sequence of a seed.
pub(crate) fn kinds(seed: u64) -> Vec<Kind> {
    let mut rng = Rng::new(seed ^ 0x1234_5678);
    let mut kinds = vec![rng.pick(KINDS)];
    if rng.chance(40) {
        kinds.push(rng.pick(KINDS));
    }
    kinds
}

/// Returns the sequence of a seed.
pub(crate) fn sequence(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let kinds = kinds(seed);
    let length = 3 + rng.below(LENGTH - 3);
    let mut out = Vec::new();
    for _ in 0..length {
        let kind = rng.pick(&kinds);
        out.push(step(&mut rng, &kind));
    }
    out
}

fn step(rng: &mut Rng, kind: &Kind) -> Step {
    let name = if rng.chance(60) {
        NAMES[0]
    } else {
        rng.pick(&NAMES)
    };
    let step = match rng.below(100) {
        0..=17 => create(rng, kind, name),
        18..=21 => get(rng, kind, name),
        22..=34 => update(rng, kind, name),
        35..=46 => merge(rng, kind, name),
        47..=55 => json_patch(rng, kind, name),
        56..=77 => apply(rng, kind, name),
        78..=84 => status(rng, kind, name),
        85..=93 => delete(rng, kind, name),
        94..=97 => list(rng, kind),
        _ => odd(rng, kind, name),
    };
    if step.method != "GET" && step.method != "DELETE" && rng.chance(6) {
        return step.query("dryRun", "All");
    }
    step
}

/// Returns random metadata without a name.
fn metadata(rng: &mut Rng, rare: bool) -> Value {
    let mut out = json!({});
    let words = ["x", "y", "z"];
    if rng.chance(35) {
        out["labels"] = crate::kinds::some(rng, &["l1", "l2"], |rng| json!(rng.pick(&words)));
    }
    if rng.chance(25) {
        out["annotations"] =
            crate::kinds::some(rng, &["a1", "example.com/a2"], |rng| json!(rng.pick(&words)));
    }
    if rng.chance(15) {
        let mut names: Vec<&str> = (0..rng.below(3))
            .map(|_| rng.pick(&["world.test/f1", "world.test/f2"]))
            .collect();
        names.dedup();
        out["finalizers"] = json!(names);
    }
    if rng.chance(6) {
        // The owner does not exist, and its kind is unknown: the garbage collector leaves the object alone.
        out["ownerReferences"] = json!([{"apiVersion": "unknown.test/v1", "kind": "Nobody", "name": rng.pick(&words),
            "uid": rng.pick(&["u1", "u2"]), "controller": rng.chance(50)}]);
    }
    if rare && rng.chance(20) {
        let odd = rng.below(4);
        match odd {
            0 => out["labels"] = json!({"l1": "not valid"}),
            1 => out["finalizers"] = json!(["short"]),
            2 => out["labels"] = json!({"l1": 1}),
            _ => out["ownerReferences"] = json!([{"kind": "X", "name": "x"}]),
        }
    }
    out
}

/// Returns a random object.
pub(crate) fn object(rng: &mut Rng, kind: &Kind, name: &str) -> Value {
    let rare = rng.chance(12);
    let mut out = fields(rng, kind, rare);
    out["apiVersion"] = json!(kind.api_version());
    out["kind"] = json!(kind.kind);
    let mut metadata = metadata(rng, rare);
    metadata["name"] = json!(kind.name(name));
    if kind.namespaced && rng.chance(50) {
        metadata["namespace"] = json!("{ns}");
    }
    out["metadata"] = metadata;
    out
}

fn create(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let mut object = object(rng, kind, name);
    if rng.chance(3) {
        object["metadata"]["resourceVersion"] = json!("${rv:".to_owned() + kind.kind + "/" + name + "}");
    }
    if kind.status && rng.chance(10) {
        object["status"] = json!({"conditions": []});
    }
    let step = Step::new("POST", kind.list()).body(object);
    if rng.chance(30) {
        step.query("fieldManager", rng.pick(&MANAGERS))
    } else {
        step
    }
}

fn get(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let mut step = Step::new("GET", kind.path(name));
    if rng.chance(25) {
        step.accept = METADATA;
    }
    step
}

/// Sets a resource version or uid as a precondition, seldom a wrong one.
fn preconditions(rng: &mut Rng, kind: &Kind, name: &str, metadata: &mut Value, usually: usize) {
    let holder = |what: &str| json!(format!("${{{what}:{}/{name}}}", kind.kind));
    if rng.chance(usually) {
        metadata["resourceVersion"] = holder(if rng.chance(85) { "rv" } else { "old" });
    }
    if rng.chance(12) {
        metadata["uid"] = if rng.chance(75) {
            holder("uid")
        } else {
            json!("00000000-0000-0000-0000-00000000000f")
        };
    }
}

fn update(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let mut object = object(rng, kind, name);
    preconditions(rng, kind, name, &mut object["metadata"], 75);
    if rng.chance(3) {
        object["metadata"]["managedFields"] = json!([]);
    }
    let step = Step::new("PUT", kind.path(name)).body(object);
    if rng.chance(40) {
        step.query("fieldManager", rng.pick(&MANAGERS))
    } else {
        step
    }
}

/// Replaces some values by nulls, which remove fields.
fn with_nulls(rng: &mut Rng, value: &mut Value) {
    if let Value::Object(fields) = value {
        for value in fields.values_mut() {
            if rng.chance(15) {
                *value = Value::Null;
            } else {
                with_nulls(rng, value);
            }
        }
    }
}

fn merge(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let rare = rng.chance(12);
    let mut patch = if rng.chance(60) {
        fields(rng, kind, rare)
    } else {
        json!({})
    };
    let mut metadata = metadata(rng, rare);
    with_nulls(rng, &mut patch);
    with_nulls(rng, &mut metadata);
    preconditions(rng, kind, name, &mut metadata, 15);
    patch["metadata"] = metadata;
    let mut step = Step::new("PATCH", kind.path(name)).body(patch);
    step.content_type = MERGE;
    if rng.chance(15) {
        step.accept = METADATA;
    }
    if rng.chance(40) {
        step.query("fieldManager", rng.pick(&MANAGERS))
    } else {
        step
    }
}

fn json_patch(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let holder = |what: &str| json!(format!("${{{what}:{}/{name}}}", kind.kind));
    let count = 1 + rng.below(2);
    let mut operations = Vec::new();
    for _ in 0..count {
        operations.push(match rng.below(8) {
            0 => json!({"op": "test", "path": "/metadata/resourceVersion", "value": holder(if rng.chance(80) { "rv" } else { "old" })}),
            1 => json!({"op": "test", "path": "/metadata/uid", "value": holder("uid")}),
            2 => json!({"op": "add", "path": "/metadata/labels", "value": {"l1": rng.pick(&["x", "y"])}}),
            3 => json!({"op": "add", "path": "/metadata/labels/l2", "value": "z"}),
            4 => json!({"op": "remove", "path": rng.pick(&["/metadata/labels", "/metadata/finalizers", "/metadata/finalizers/0", "/data", "/spec"])}),
            5 => json!({"op": "replace", "path": rng.pick(&["/data/a", "/spec/word", "/metadata/labels/l1"]), "value": "x"}),
            6 => json!({"op": "add", "path": rng.pick(&["/metadata/finalizers", "/metadata/finalizers/-"]), "value": if rng.chance(50) { json!(["world.test/f1"]) } else { json!("world.test/f2") }}),
            _ => json!({"op": "add", "path": rng.pick(&["/spec/list", "/spec/tags", "/data", "/spec/size"]), "value": rng.pick(&[json!(["x"]), json!({"b": "y"}), json!(3)])}),
        });
    }
    let mut step = Step::new("PATCH", kind.path(name)).body(json!(operations));
    step.content_type = PATCH;
    step
}

fn apply(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let mut object = object(rng, kind, name);
    preconditions(rng, kind, name, &mut object["metadata"], 5);
    let mut step = Step::new("PATCH", kind.path(name))
        .body(object)
        .query("fieldManager", rng.pick(&MANAGERS));
    step.content_type = APPLY;
    if rng.chance(45) {
        step.query("force", "true")
    } else {
        step
    }
}

fn status(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let condition = json!({"type": rng.pick(&["A", "B"]), "status": rng.pick(&["True", "False"])});
    let mut status = json!({});
    if kind.kind == "Thing" {
        if rng.chance(60) {
            status["phase"] = json!(rng.pick(&["x", "y", "y", "z"]));
        }
        if rng.chance(60) {
            status["conditions"] = json!([condition]);
        }
    } else if rng.chance(70) {
        let full = json!({"type": rng.pick(&["A", "B"]), "status": "True", "reason": "R", "message": rng.pick(&["x", "y"]),
            "lastTransitionTime": "2024-01-02T03:04:05Z", "observedGeneration": rng.below(3)});
        status["conditions"] = json!([full]);
    }
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": kind.name(name)}, "status": status});
    if rng.chance(30) {
        object["metadata"]["labels"] = json!({"l1": "s"});
    }
    let path = format!("{}/status", kind.path(name));
    match rng.below(3) {
        0 => {
            let mut whole = fields(rng, kind, false);
            whole["apiVersion"] = object["apiVersion"].take();
            whole["kind"] = object["kind"].take();
            whole["metadata"] = object["metadata"].take();
            whole["status"] = object["status"].take();
            preconditions(rng, kind, name, &mut whole["metadata"], 85);
            Step::new("PUT", path).body(whole)
        }
        1 => {
            let mut step = Step::new("PATCH", path).body(json!({"status": object["status"]}));
            step.content_type = MERGE;
            step
        }
        _ => {
            let mut step = Step::new("PATCH", path)
                .body(object)
                .query("fieldManager", rng.pick(&MANAGERS));
            step.content_type = APPLY;
            if rng.chance(50) {
                step.query("force", "true")
            } else {
                step
            }
        }
    }
}

fn delete(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    let mut options = json!({});
    // The garbage collector acts on these policies at its own pace, so they are dry runs here.
    let dry_run = rng.chance(10);
    if rng.chance(40) {
        let policies: &[&str] = if dry_run {
            &["Orphan", "Foreground", "Background", "None"]
        } else {
            &["Background"]
        };
        options["propagationPolicy"] = json!(rng.pick(policies));
    }
    if dry_run {
        options["dryRun"] = json!(["All"]);
    }
    if rng.chance(30) {
        let mut given = json!({});
        preconditions(rng, kind, name, &mut given, 70);
        options["preconditions"] = given;
    }
    let step = Step::new("DELETE", kind.path(name));
    if rng.chance(30) && options == json!({}) {
        step
    } else {
        step.body(options)
    }
}

fn list(rng: &mut Rng, kind: &Kind) -> Step {
    let mut step = Step::new("GET", kind.list());
    if rng.chance(30) {
        step.accept = METADATA_LIST;
    }
    match rng.below(6) {
        0 => step.query(
            "labelSelector",
            rng.pick(&[
                "l1=x",
                "l1",
                "!l1",
                "l1%20in%20(x,y)",
                "l1!=x",
                "l1%20notin%20(x),l2",
            ]),
        ),
        1 if kind.namespaced => step.query("fieldSelector", &format!("metadata.name={}", kind.name("a"))),
        2 => step.query("fieldSelector", "spec.unknown=x"),
        3 if kind.namespaced => step.query("limit", "1"),
        4 if kind.namespaced => step.query("limit", "2").query("continue", "${continue}"),
        _ => step,
    }
}

/// Requests that are wrong in some way.
fn odd(rng: &mut Rng, kind: &Kind, name: &str) -> Step {
    match rng.below(9) {
        0 => {
            let mut step = Step::new("PATCH", kind.path(name)).body(json!({}));
            step.content_type = rng.pick(&["application/json", "text/plain", "application/unknown+json"]);
            step
        }
        1 => {
            let mut step = Step::new("PATCH", kind.path(name)).body(object(rng, kind, name));
            step.content_type = APPLY;
            step
        }
        2 => {
            let other = object(rng, kind, "z");
            Step::new("PUT", kind.path(name)).body(other)
        }
        3 => {
            let mut other = object(rng, kind, name);
            other["kind"] = json!("Pod");
            Step::new("POST", kind.list()).body(other)
        }
        4 => {
            let mut other = object(rng, kind, name);
            other["metadata"]["name"] = json!(rng.pick(&["Not_Valid", "", "a..b", "-a"]));
            // Some kinds take these names, and nobody would delete the objects.
            Step::new("POST", kind.list()).body(other).query("dryRun", "All")
        }
        5 if kind.namespaced => {
            let mut other = object(rng, kind, name);
            other["metadata"]["namespace"] = json!("elsewhere");
            Step::new("POST", kind.list()).body(other)
        }
        6 if kind.namespaced => {
            let mut other = object(rng, kind, name);
            other["metadata"]["namespace"] = json!("missing");
            Step::new("POST", kind.list().replace("{ns}", "missing")).body(other)
        }
        7 => {
            let mut step = Step::new("PATCH", kind.path(name)).body(json!({"metadata": {"name": "z"}}));
            step.content_type = MERGE;
            step
        }
        _ => Step::new("GET", format!("{}/unknown", kind.path(name))),
    }
}
