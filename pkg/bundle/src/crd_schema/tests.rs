use serde_json::{Value, json};

use super::{Schema, Verdict, plan};

fn check(schema: &Value, object: Value) -> Verdict {
    Schema::compile(schema).check(object)
}

fn faults(schema: &Value, object: Value) -> Vec<String> {
    let verdict = check(schema, object);
    assert!(verdict.unknown.is_empty(), "{:?}", verdict.unknown);
    verdict.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn values_as_the_api_server_takes_them() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in include_str!("../../../../test/testdata/crd-schema/values.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "value": case["schema"]}}}});
        let compiled = Schema::compile(&schema);
        for (list, want) in [("valid", Some(true)), ("invalid", Some(false)), ("unknown", None)] {
            for value in case[list].as_array().into_iter().flatten() {
                let verdict = compiled.check(json!({"spec": {"value": value}}));
                let undecided = !verdict.unknown.is_empty() || !compiled.unknown().is_empty();
                let got = match (verdict.faults.is_empty(), undecided) {
                    (false, _) => Some(false),
                    (true, true) => None,
                    (true, false) => Some(true),
                };
                if got != want {
                    wrong.push(format!(
                        "{} {value}: {verdict:?} {:?}",
                        case["schema"],
                        compiled.unknown()
                    ));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count}");
}

#[test]
fn faults_say_where_and_why() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["mode"], "properties": {
        "size": {"type": "integer", "maximum": 5},
        "mode": {"type": "string", "enum": ["fast", "safe"]},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}},
    }}}});
    let object = json!({"spec": {"size": 7, "mode": "slow", "parts": [{"name": "ab"}, {"name": "b"}], "labels": {"k": "long"}}});
    assert_eq!(
        faults(&schema, object),
        [
            "spec.labels[k]: has 4 characters, more than the maximum 1",
            "spec.mode: \"slow\" is not one of \"fast\", \"safe\"",
            "spec.parts[1].name: \"b\" does not match the pattern \"^a\"",
            "spec.size: 7 is more than the maximum 5",
        ]
    );
    assert_eq!(faults(&schema, json!({"spec": {}})), ["spec.mode: is required"]);
    assert_eq!(
        faults(&schema, json!({"spec": []})),
        ["spec: a list is not an object"]
    );
}

#[test]
fn rules_of_the_root_see_its_name_and_version() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}, "x-kubernetes-validations": [
        {"rule": "self.metadata.name == 'one' && self.kind == 'Test'", "message": "there can be only one"}]});
    let object =
        |name: &str| json!({"apiVersion": "g/v1", "kind": "Test", "metadata": {"name": name, "uid": "1"}});
    assert_eq!(faults(&schema, object("one")), Vec::<String>::new());
    assert_eq!(faults(&schema, object("two")), ["there can be only one"]);
}

#[test]
fn undecided_checks_are_named_once() {
    let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {
        "type": "string", "format": "isbn"}}}});
    let verdict = check(&schema, json!({"list": ["a", "b", "c"]}));
    assert!(verdict.faults.is_empty());
    assert_eq!(
        verdict.unknown.into_iter().collect::<Vec<_>>(),
        ["list[]: format isbn cannot be checked"]
    );
    let broken = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=x)y"}}, "x-kubernetes-validations": [
        {"rule": "self.a =="}]});
    let compiled = Schema::compile(&broken);
    assert_eq!(compiled.unknown().len(), 2, "{:?}", compiled.unknown());
    // The negation of an undecidable condition is undecidable, too.
    for key in ["not", "anyOf", "oneOf"] {
        let part = json!({"pattern": "(?<=x)y"});
        let part = if key == "not" {
            part
        } else {
            json!([part, {"maxLength": 1}])
        };
        let mut schema = json!({"type": "string"});
        schema[key] = part;
        let schema = json!({"type": "object", "properties": {"a": schema}});
        let verdict = check(&schema, json!({"a": "long"}));
        assert!(
            verdict.faults.is_empty() && !verdict.unknown.is_empty(),
            "{key} {verdict:?}"
        );
    }
}

#[test]
fn a_rule_with_too_many_steps_is_undecided() {
    let all = "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c > 0)))";
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": all}]});
    let few = check(&schema, json!({"l": [1, 2, 3]}));
    assert_eq!(few, Verdict::default());
    let many = check(&schema, json!({"l": vec![1; 1000]}));
    assert!(many.unknown.iter().any(|why| why.contains("steps")), "{many:?}");
}

fn crd(versions: &Value, strategy: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {
        "group": "example.com", "names": {"plural": "tests"}, "conversion": {"strategy": strategy}, "versions": versions}})
}

fn version(name: &str, served: bool, storage: bool, size: &Value) -> Value {
    json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema":
        {"type": "object", "properties": {"size": size}}}})
}

#[test]
fn only_versions_that_change_are_looked_at() {
    let (any, small) = (
        json!({"type": "integer"}),
        json!({"type": "integer", "maximum": 5}),
    );
    let described = json!({"type": "integer", "description": "How large."});
    let targets = |old: Value, new: Value, strategy: &str| -> (Vec<String>, usize) {
        let plan = plan(&crd(&old, "None"), &crd(&new, strategy));
        assert_eq!(
            (plan.group.as_str(), plan.plural.as_str()),
            ("example.com", "tests")
        );
        let targets = plan.targets.iter();
        (
            targets.map(|t| format!("{} as {}", t.read, t.version)).collect(),
            plan.notes.len(),
        )
    };
    let v1 = |size: &Value| json!([version("v1", true, true, size)]);
    assert_eq!(targets(v1(&any), v1(&described), "None"), (vec![], 0));
    assert_eq!(
        targets(v1(&any), v1(&small), "None"),
        (vec!["v1 as v1".to_owned()], 0)
    );
    let two = json!([
        version("v1", true, false, &any),
        version("v2", true, true, &small)
    ]);
    assert_eq!(
        targets(v1(&any), two.clone(), "None"),
        (vec!["v1 as v2".to_owned()], 0)
    );
    assert_eq!(targets(v1(&any), two, "Webhook"), (vec![], 1));
    let hidden = json!([version("v1", false, true, &any)]);
    assert_eq!(targets(hidden, v1(&small), "None"), (vec![], 1));
    let retired = json!([
        version("v1", true, true, &any),
        version("v0", false, false, &small)
    ]);
    assert_eq!(targets(v1(&any), retired, "None"), (vec![], 0));
}

#[test]
fn existing_findings_are_ignored() {
    let old = json!([version(
        "v1",
        true,
        true,
        &json!({"type": "integer", "minimum": 0})
    )]);
    let new = json!([version(
        "v1",
        true,
        true,
        &json!({"type": "integer", "minimum": 0, "maximum": 5})
    )]);
    let plan = plan(&crd(&old, "None"), &crd(&new, "None"));
    let faults = |size: i64| plan.targets[0].check(json!({"size": size})).faults.len();
    assert_eq!((faults(3), faults(-1), faults(6)), (0, 0, 1));
}

#[test]
fn a_return_to_a_former_crd_loses_no_field() {
    let crd = |fields: Value| {
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
        crd(
            &json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]),
            "None",
        )
    };
    let part = |fields: Value| json!({"type": "array", "items": {"type": "object", "properties": fields}});
    let text = json!({"type": "string"});
    let newer = crd(json!({"a": text, "color": text, "parts": part(json!({"name": text, "unit": text}))}));
    let former = crd(json!({"a": text, "parts": part(json!({"name": text}))}));
    let faults = |object: Value| -> Vec<String> {
        let upgrade = plan(&newer, &former).targets[0].check(object.clone());
        assert_eq!(
            upgrade,
            Verdict::default(),
            "only a return counts what is dropped"
        );
        let back = plan(&newer, &former).refusing_loss().targets[0].check(object);
        back.faults.iter().map(ToString::to_string).collect()
    };
    let metadata = json!({"name": "x", "labels": {"a": "b"}});
    let object =
        |spec: Value| json!({"apiVersion": "v1", "kind": "Test", "metadata": metadata, "spec": spec});
    assert_eq!(
        faults(object(json!({"a": "b", "parts": [{"name": "c"}]}))),
        [""; 0]
    );
    assert_eq!(faults(object(json!({"color": null}))), [""; 0]);
    assert_eq!(
        faults(object(
            json!({"color": "red", "parts": [{"name": "c"}, {"unit": "d"}]})
        )),
        [
            "spec.color: the schema has no such field, so its value would be lost",
            "spec.parts[1].unit: the schema has no such field, so its value would be lost",
        ]
    );
    // A field that the present CRD does not have either is not stored.
    assert_eq!(faults(object(json!({"unknown": 1}))), [""; 0]);
}
