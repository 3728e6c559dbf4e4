use olm_harness::audit::OPERATOR_CONTROLLER;
use serde_json::{Value, json};

use super::{Verdict, Write, check};

/// Change of a story that breaks a rule, or none.
type Tamper = fn(&mut Story);

/// A story: the writes about one extension, in order.
#[derive(Default)]
struct Story(Vec<Write>);

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n",
        "labels": {"app": "kite"}}, "data": {"key": data}})
}

impl Story {
    fn write(
        &mut self,
        verb: &str,
        resource: (&str, &str),
        name: &str,
        body: Value,
        answer: Value,
    ) -> &mut Self {
        self.0.push(Write {
            received: format!("{:06}", self.0.len()),
            user: OPERATOR_CONTROLLER.to_owned(),
            verb: verb.to_owned(),
            group: resource.0.to_owned(),
            resource: resource.1.to_owned(),
            namespace: if resource.0.is_empty() { "n" } else { "" }.to_owned(),
            name: name.to_owned(),
            code: 200,
            body,
            answer,
            ..Write::default()
        });
        self
    }

    /// Writes revision `number` with these objects and conditions.
    fn revision(&mut self, number: i64, state: &str, reason: Option<&str>, objects: &[Value]) -> &mut Self {
        let entries: Vec<Value> = objects.iter().map(|object| json!({"object": object})).collect();
        let name = format!("kite-{number}");
        let conditions: Vec<Value> = reason
            .into_iter()
            .map(|reason| {
                json!({"type": "Progressing", "status": "True", "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        let set = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": name, "uid": name, "labels": {"olm.operatorframework.io/owner-name": "kite"},
                "annotations": {"olm.operatorframework.io/bundle-name": format!("kite.v{number}")}},
            "spec": {"lifecycleState": state, "revision": number, "collisionProtection": "Prevent",
                "phases": [{"name": "deploy", "objects": entries}]},
            "status": {"conditions": conditions}});
        let group = "olm.operatorframework.io";
        self.write(
            "patch",
            (group, "clusterobjectsets"),
            &name,
            json!({"kind": "ClusterObjectSet"}),
            set,
        )
    }

    /// Applies an object for revision `number`, with the labels and the owner that the applier adds.
    fn apply(&mut self, number: i64, object: &Value) -> &mut Self {
        let mut body = object.clone();
        let uid = format!("kite-{number}");
        body["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("olm.operatorframework.io");
        body["metadata"]["annotations"]["olm.operatorframework.io/revision"] = json!(number.to_string());
        body["metadata"]["ownerReferences"] =
            json!([{"kind": "ClusterObjectSet", "uid": uid, "controller": true}]);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.write("patch", ("", "configmaps"), &name, body, Value::Null)
    }

    fn delete(&mut self, name: &str) -> &mut Self {
        let options = json!({"kind": "DeleteOptions"});
        self.write("delete", ("", "configmaps"), name, options, Value::Null)
    }

    fn verdict(&self) -> Verdict {
        check(&self.0)
    }
}

/// Returns an upgrade that changes `a`, keeps `b`, deletes `c` and creates `d`, up to the creation of the new revision, and the
/// new objects.
fn upgrade() -> (Story, [Value; 3]) {
    let old = [config_map("a", "1"), config_map("b", "1"), config_map("c", "1")];
    let new = [config_map("a", "2"), config_map("b", "1"), config_map("d", "1")];
    let mut story = Story::default();
    story.revision(1, "Active", None, &old);
    for object in &old {
        story.apply(1, object);
    }
    story
        .revision(1, "Active", Some("Succeeded"), &old)
        .revision(2, "Active", None, &new);
    (story, new)
}

fn finish(story: &mut Story, new: &[Value]) {
    story
        .revision(2, "Active", Some("Succeeded"), new)
        .revision(1, "Archived", None, &[]);
}

fn torn_down(story: &mut Story) -> Verdict {
    story.revision(1, "Archived", Some("Archived"), &[]).verdict()
}

#[test]
fn an_upgrade_that_does_as_planned_is_right() {
    let (mut story, new) = upgrade();
    for object in &new {
        story.apply(2, object);
    }
    // Somebody else changes an object.
    story.apply(2, &new[0]);
    finish(&mut story, &new);
    story.delete("c");
    let verdict = torn_down(&mut story);
    assert_eq!(
        (
            verdict.faults().count(),
            verdict.rollouts,
            verdict.writes,
            verdict.repairs
        ),
        (0, 2, 8, 1),
        "{verdict:?}"
    );
}

/// Returns the violations of an upgrade with `tamper` before its last write.
fn violations(tamper: impl FnOnce(&mut Story)) -> (Vec<String>, Vec<String>) {
    let (mut story, new) = upgrade();
    for object in &new {
        story.apply(2, object);
    }
    finish(&mut story, &new);
    tamper(&mut story);
    story.delete("c");
    let Verdict { outside, undone, .. } = torn_down(&mut story);
    (outside, undone)
}

#[test]
fn writes_outside_of_a_plan_are_violations() {
    let cases: [(Tamper, &str); 7] = [
        (
            |story| {
                story.apply(2, &config_map("e", "1"));
            },
            "does not hold it",
        ),
        (
            |story| {
                story.apply(2, &config_map("a", "3"));
            },
            "field /data/key is not as planned",
        ),
        (
            |story| {
                story.apply(1, &config_map("a", "1"));
            },
            "kite-2 has it already",
        ),
        (
            |story| {
                story.apply(9, &config_map("a", "2"));
            },
            "no revision owns it",
        ),
        (
            |story| {
                story.delete("b");
            },
            "no plan deletes it",
        ),
        (
            |story| {
                let body = config_map("a", "2");
                story.write("update", ("", "configmaps"), "a", body, Value::Null);
            },
            "update is no verb of a plan",
        ),
        (
            |story| {
                let patch = json!({"data": {"key": "9"}});
                story.write("patch", ("", "configmaps"), "a", patch, Value::Null);
            },
            "no change of metadata",
        ),
    ];
    for (tamper, expected) in cases {
        let (outside, undone) = violations(tamper);
        assert!(
            outside.len() == 1 && outside[0].contains(expected),
            "{expected}: {outside:?}"
        );
        assert!(undone.is_empty(), "{undone:?}");
    }
}

#[test]
fn promises_that_are_not_kept_are_violations() {
    for left_out in ["a", "c", "d"] {
        let (mut story, new) = upgrade();
        for object in new.iter().filter(|object| object["metadata"]["name"] != left_out) {
            story.apply(2, object);
        }
        finish(&mut story, &new);
        if left_out != "c" {
            story.delete("c");
        }
        let undone = torn_down(&mut story).undone;
        assert!(
            undone.len() == 1 && undone[0].contains(&format!("n/{left_out}")),
            "{undone:?}"
        );
    }
    // A rollout in progress need not have carried out its plan yet.
    let (story, _) = upgrade();
    assert_eq!(story.verdict().faults().count(), 0);
}

#[test]
fn an_approved_plan_has_the_digest_that_was_shown() {
    let objects = [config_map("a", "1")];
    let approved = |digest: &str, shown: &str| {
        let mut story = Story::default();
        let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "kite"}, "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}},
            "status": {"pendingPlan": {"digest": shown, "bundle": {"name": "kite.v1", "version": ""},
                "objects": {"created": 1, "changed": 0, "deleted": 0}}}});
        let group = "olm.operatorframework.io";
        story.write(
            "patch",
            (group, "clusterextensions"),
            "kite",
            Value::Null,
            extension,
        );
        story.revision(1, "Active", None, &objects);
        let note = format!("plan {digest} was approved by x; it is rolled out as revision kite-1");
        let event = json!({"kind": "Event", "reason": "Approved", "note": note});
        story
            .write("create", ("events.k8s.io", "events"), "e", event, Value::Null)
            .verdict()
    };
    let wrong = approved("sha256:00", "sha256:00");
    let plan = wrong.outside[0].split('"').nth(1).unwrap_or_default().to_owned();
    assert!(plan.starts_with("sha256:"), "{wrong:?}");
    assert_eq!(
        (
            approved(&plan, &plan).faults().count(),
            approved(&plan, &plan).approved
        ),
        (0, 1)
    );
    let unseen = approved(&plan, "sha256:00").outside;
    assert!(unseen[0].contains("never shown"), "{unseen:?}");
}
