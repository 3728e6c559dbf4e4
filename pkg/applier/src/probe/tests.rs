use super::*;
use crate::plan::default_probes;
use serde_json::json;

fn check(object: &Value) -> String {
    let prober = Prober::new(&default_probes()).unwrap();
    let result = prober.check(object);
    assert_eq!(result.ready, result.messages.is_empty());
    result.messages.join(" and ")
}

fn prober(probes: Value) -> Result<Prober, WrongExpression> {
    let probes: Vec<ProgressionProbe> = serde_json::from_value(probes).unwrap();
    Prober::new(&probes)
}

fn on_maps(expressions: &[Value]) -> Result<Prober, WrongExpression> {
    let assertion = |value| json!({"type": "CELExpression", "celExpression": value});
    let assertions: Vec<Value> = expressions.iter().map(assertion).collect();
    prober(
        json!([{"selector": {"type": "GroupKind", "groupKind": {"group": "", "kind": "ConfigMap"}},
            "assertions": assertions}]),
    )
}

fn apps(kind: &str, spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status})
}

#[test]
fn messages_of_a_deployment() {
    let spec = json!({"replicas": 1});
    assert_eq!(
        check(&apps("Deployment", &spec, &json!({}))),
        "\"status.updatedReplicas\" missing and missing .status.conditions"
    );
    let old = json!({"observedGeneration": 1});
    assert_eq!(check(&apps("Deployment", &spec, &old)), ".status outdated");
    let status = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1,
            "conditions": [{"type": "Available", "status": "False"}]});
    assert_eq!(
        check(&apps("Deployment", &spec, &status)),
        "\"status.updatedReplicas\" != \"status.replicas\" expected: 1 got: 2 and .status.condition[\"Available\"] is False"
    );
    let status = json!({"observedGeneration": 2, "conditions": [{"type": "Available", "status": "True"}]});
    assert_eq!(check(&apps("Deployment", &json!({"replicas": 0}), &status)), "");
}

#[test]
fn an_outdated_status_may_be_the_only_failure() {
    let prober = Prober::new(&default_probes()).unwrap();
    let spec = json!({"replicas": 3});
    let status = |observed: i64, available: &str| {
        json!({"observedGeneration": observed, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "status": available}]})
    };
    for (observed, available, ready, outdated) in [
        (1, "True", false, true),
        (1, "False", false, false),
        (2, "True", true, false),
        (2, "False", false, false),
        // A status of a later generation is none of this object's past.
        (3, "True", false, false),
    ] {
        let result = prober.check(&apps("Deployment", &spec, &status(observed, available)));
        let found = (result.ready, result.outdated);
        assert_eq!(found, (ready, outdated), "{observed} {available}");
    }
    let unprobed = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": 2},
            "status": {"observedGeneration": 1}});
    assert!(prober.check(&unprobed).outdated);
    let no_status = apps("Deployment", &spec, &json!({}));
    assert!(!prober.check(&no_status).outdated);
}

#[test]
fn outdated_conditions_count_like_an_outdated_status() {
    let selector = json!({"type": "GroupKind", "groupKind": {"group": "example.com", "kind": "Thing"}});
    let prober = by(
        &selector,
        &json!({"type": "ConditionEqual", "conditionEqual": {"type": "Ready", "status": "True"}}),
    );
    let outdated = |conditions: Value| {
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": 3},
                "status": {"conditions": conditions}});
        prober.check(&thing).outdated
    };
    let condition = |type_: &str, status: &str, observed: i64| json!({"type": type_, "status": status, "observedGeneration": observed});
    assert!(outdated(json!([condition("Ready", "True", 2)])));
    assert!(!outdated(json!([condition("Ready", "False", 2)])));
    assert!(!outdated(json!([condition("Ready", "True", 3)])), "ready");
    let older = json!([condition("Ready", "True", 1), condition("Other", "True", 2)]);
    assert!(
        !outdated(older),
        "the condition was outdated before the last change"
    );
}

#[test]
fn a_stateful_set_is_ready_by_its_replicas() {
    let spec = json!({"replicas": 2});
    let status =
        json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1});
    assert_eq!(
        check(&apps("StatefulSet", &spec, &status)),
        "1 of 2 replicas are available"
    );
    let status =
        json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    assert_eq!(check(&apps("StatefulSet", &spec, &status)), "");
}

#[test]
fn messages_of_fields_and_conditions() {
    let claim =
        |status: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": status});
    assert_eq!(check(&claim(json!({}))), "missing key: \"status.phase\"");
    assert_eq!(
        check(&claim(json!({"phase": "Pending"}))),
        "value at key \"status.phase\" != \"Bound\"; expected: \"Bound\" got: \"Pending\""
    );
    let crd = |c: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"generation": 3}, "status": {"conditions": c}})
    };
    assert_eq!(
        check(&crd(json!([]))),
        "missing .status.condition[\"Established\"]"
    );
    assert_eq!(check(&crd(json!("x"))), "malformed .status.conditions");
    assert_eq!(
        check(&crd(
            json!([{"type": "Established", "status": "True", "observedGeneration": 2}])
        )),
        ".status.condition[\"Established\"] outdated"
    );
}

#[test]
fn labels_select() {
    let prober = prober(
        json!([{"selector": {"type": "Label", "label": {"matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["x"]}]}},
            "assertions": [{"type": "FieldValue", "fieldValue": {"fieldPath": "data.k", "value": "v"}}]}]),
    )
    .unwrap();
    assert!(!prober.check(&json!({"metadata": {"labels": {"a": "y"}}})).ready);
    assert!(prober.check(&json!({"metadata": {"labels": {"a": "x"}}})).ready);
    assert!(
        prober
            .check(&json!({"metadata": {"labels": {"a": "y"}}, "data": {"k": "v"}}))
            .ready
    );
}

#[test]
fn expressions_hold_or_say_why_not() {
    let open = json!({"expression": "self.data.gate == 'open'", "message": "the gate is not open"});
    let plain = json!({"expression": "self.data.count == '3'"});
    let prober = on_maps(&[open, plain]).unwrap();
    let check = |data: Value| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": data});
        prober.check(&map).messages
    };
    assert!(check(json!({"gate": "open", "count": "3"})).is_empty());
    assert_eq!(
        check(json!({"gate": "shut", "count": "2"})),
        [
            "the gate is not open",
            "expression \"self.data.count == '3'\" is not true"
        ]
    );
    assert_eq!(
        check(json!({"gate": "open"})),
        ["expression \"self.data.count == '3'\" has no value: No such key: count"]
    );
    assert_eq!(
        check(json!({"count": "3"})),
        ["the gate is not open (the expression has no value: No such key: gate)"]
    );
    assert!(prober.check(&json!({"apiVersion": "v1", "kind": "Secret"})).ready);
}

#[test]
fn wrong_expressions_are_named() {
    let right = json!({"expression": "true"});
    let refused = on_maps(&[right, json!({"expression": "object.ready"})]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "spec.progressionProbes[0].assertions[1].celExpression.expression is refused: variable \"object\" is unknown; the \
             object is called self; correct the expression \"object.ready\""
    );
}

fn by(selector: &Value, assertion: &Value) -> Prober {
    prober(json!([{"selector": selector, "assertions": [assertion]}])).unwrap()
}

#[test]
fn group_and_kind_select() {
    let selector = json!({"type": "GroupKind", "groupKind": {"group": "apps", "kind": "Deployment"}});
    let prober = by(
        &selector,
        &json!({"type": "CELExpression", "celExpression": {"expression": "false"}}),
    );
    for (version, kind, selected) in [
        ("apps/v1", "Deployment", true),
        ("apps/v1", "DaemonSet", false),
        ("v1", "Deployment", false),
    ] {
        let object = json!({"apiVersion": version, "kind": kind});
        assert_eq!(prober.selects(&object), selected, "{object}");
        assert_eq!(prober.check(&object).ready, !selected, "{object}");
    }
}

#[test]
fn every_requirement_of_a_label_selector_counts() {
    let required = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
    let both = json!({"matchLabels": {"b": "z"},
            "matchExpressions": [{"key": "a", "operator": "Exists"}]});
    for (label, labels, selected) in [
        (required("In", json!(["x", "y"])), json!({"a": "y"}), true),
        (required("In", json!(["x"])), json!({"a": "y"}), false),
        (required("In", json!(["x"])), json!({}), false),
        (required("NotIn", json!(["x"])), json!({}), true),
        (required("NotIn", json!(["x"])), json!({"a": "x"}), false),
        (required("Exists", json!([])), json!({"a": ""}), true),
        (required("Exists", json!([])), json!({"b": ""}), false),
        (required("DoesNotExist", json!([])), json!({"a": ""}), false),
        (required("DoesNotExist", json!([])), json!({"b": ""}), true),
        (required("Like", json!(["x"])), json!({"a": "x"}), false),
        (json!({"matchLabels": {"a": "x"}}), json!({"a": "x"}), true),
        (json!({"matchLabels": {"a": "x"}}), json!({"a": "y"}), false),
        (both.clone(), json!({"a": "x", "b": "z"}), true),
        (both.clone(), json!({"b": "z"}), false),
        (both, json!({"a": "x"}), false),
    ] {
        let selector = json!({"type": "Label", "label": label});
        let assertion = json!({"type": "FieldValue", "fieldValue": {"fieldPath": "x", "value": "y"}});
        let object = json!({"metadata": {"labels": labels}});
        assert_eq!(
            by(&selector, &assertion).selects(&object),
            selected,
            "{label} {object}"
        );
    }
}

#[test]
fn a_condition_may_have_to_be_false() {
    let selector = json!({"type": "GroupKind", "groupKind": {"group": "", "kind": "Node"}});
    let prober = by(
        &selector,
        &json!({"type": "ConditionEqual", "conditionEqual": {"type": "Pressure", "status": "False"}}),
    );
    let check = |condition: Value| {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"generation": 3},
                "status": {"conditions": [{"type": "Other", "status": "True"}, condition]}});
        prober.check(&node).messages.join(" and ")
    };
    assert_eq!(check(json!({"type": "Pressure", "status": "False"})), "");
    assert_eq!(
        check(json!({"type": "Pressure", "status": "False", "observedGeneration": 3})),
        ""
    );
    assert_eq!(
        check(json!({"type": "Pressure", "status": "True"})),
        ".status.condition[\"Pressure\"] is True"
    );
}

#[test]
fn only_a_stateful_set_without_conditions_is_ready_by_its_replicas() {
    let selector = |kind| json!({"type": "GroupKind", "groupKind": {"group": "apps", "kind": kind}});
    let wanted = |kind, type_: &str, status: &str| {
        by(
            &selector(kind),
            &json!({"type": "ConditionEqual", "conditionEqual": {"type": type_, "status": status}}),
        )
    };
    let available = json!({"observedGeneration": 2, "availableReplicas": 1});
    let check = |kind, type_, status, object: Value| {
        wanted(kind, type_, status)
            .check(&apps(kind, &json!({}), &object))
            .messages
            .join(" and ")
    };
    let missing = "missing .status.conditions";
    assert_eq!(check("StatefulSet", "Available", "True", available.clone()), "");
    assert_eq!(
        check(
            "StatefulSet",
            "Available",
            "True",
            json!({"observedGeneration": 2})
        ),
        "0 of 1 replicas are available"
    );
    assert_eq!(
        check(
            "StatefulSet",
            "Available",
            "True",
            json!({"availableReplicas": 1})
        ),
        "missing .status.observedGeneration"
    );
    assert_eq!(
        check("StatefulSet", "Available", "False", available.clone()),
        missing
    );
    assert_eq!(check("StatefulSet", "Ready", "True", available.clone()), missing);
    assert_eq!(check("DaemonSet", "Available", "True", available), missing);
    let reported = json!({"observedGeneration": 2, "availableReplicas": 1, "conditions": []});
    assert_eq!(
        check("StatefulSet", "Available", "True", reported),
        "missing .status.condition[\"Available\"]"
    );
}

#[test]
fn replica_counts_that_kubernetes_omits_are_zero() {
    let equal = |kind: &Value, a: &str, b: &str, object: &Value| {
        let selector = json!({"type": "GroupKind", "groupKind": kind});
        let assertion = json!({"type": "FieldsEqual", "fieldsEqual": {"fieldA": a, "fieldB": b}});
        by(&selector, &assertion).check(object).messages.join(" and ")
    };
    let deployment = json!({"group": "apps", "kind": "Deployment"});
    let scaled = apps(
        "Deployment",
        &json!({"replicas": 0}),
        &json!({"observedGeneration": 2}),
    );
    for count in [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ] {
        let path = format!("status.{count}");
        assert_eq!(equal(&deployment, "spec.replicas", &path, &scaled), "");
    }
    assert_eq!(
        equal(&deployment, "spec.replicas", "status.other", &scaled),
        "\"status.other\" missing"
    );
    let unseen = apps("Deployment", &json!({"replicas": 0}), &json!({}));
    assert_eq!(
        equal(&deployment, "spec.replicas", "status.replicas", &unseen),
        "\"status.replicas\" missing"
    );
    let foreign = json!({"apiVersion": "g.io/v1", "kind": "Deployment", "spec": {"replicas": 0},
            "metadata": {"generation": 2}, "status": {"observedGeneration": 2}});
    assert_eq!(
        equal(
            &json!({"group": "g.io", "kind": "Deployment"}),
            "status.replicas",
            "spec.replicas",
            &foreign
        ),
        "\"status.replicas\" missing"
    );
}

#[test]
fn a_failed_workload_is_handed_on_for_its_pods() {
    let prober = Prober::new(&default_probes()).unwrap();
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}});
    let mut deployment = apps("Deployment", &spec, &json!({}));
    deployment["metadata"]["name"] = json!("d");
    deployment["metadata"]["namespace"] = json!("n");
    deployment["metadata"]["uid"] = json!("u");
    assert!(prober.check(&deployment).workload.is_some());
}

#[test]
fn an_empty_message_says_the_expression() {
    let empty = json!({"expression": "self.x == 1", "message": ""});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "x": 2});
    assert_eq!(
        on_maps(&[empty]).unwrap().check(&map).messages,
        ["expression \"self.x == 1\" is not true"]
    );
}
