use serde_json::{Value, json};

use super::{Type, compare, custom, merge, remove, to_set};

/// Type of a custom resource with this field below `spec`, and any field beside `spec`.
fn of(field: &Value) -> Type {
    custom(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": {"type": "object", "properties": {"field": field}}}}),
    )
}

fn sets(before: &Value, after: &Value) -> [Value; 3] {
    let found = compare(before, after, &of(&json!({"type": "string"})));
    [found.removed, found.modified, found.added].map(|set| set.encode())
}

#[test]
fn a_value_that_takes_another_form_is_compared_in_both() {
    let none = json!({});
    let (field, below) = (json!({"f:more": {}}), json!({"f:more": {"f:a": {}}}));
    let with = |more: Value| json!({ "more": more });
    let cases = [
        // A null has the form of the other value.
        (json!(null), json!({"a": 1}), [&none, &none, &below]),
        (json!({"a": 1}), json!(null), [&below, &none, &none]),
        (json!({}), json!(null), [&none, &field, &none]),
        (json!(null), json!("x"), [&none, &field, &none]),
        (json!({"a": 1}), json!("x"), [&below, &field, &none]),
        (json!(["x"]), json!({"a": 1}), [&none, &field, &below]),
        (json!({"a": 1}), json!({}), [&below, &none, &none]),
    ];
    for (before, after, want) in cases {
        let found = sets(&with(before.clone()), &with(after.clone()));
        assert_eq!(found.each_ref(), want, "{before} to {after}");
    }
}

#[test]
fn an_applied_null_keeps_what_a_map_or_list_has() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let merged = |live: &Value, applied: &Value, field: &Value| merge(live, applied, &of(field)).unwrap();
    let live = json!({"spec": {"field": ["x"]}});
    assert_eq!(merged(&live, &json!({"spec": null}), &list), live);
    assert_eq!(merged(&live, &json!({"spec": {"field": null}}), &list), live);
    let text = json!({"type": "string"});
    let applied = json!({"spec": {"field": null}});
    assert_eq!(merged(&json!({"spec": {"field": "x"}}), &applied, &text), applied);
}

#[test]
fn merged_lists_follow_the_configuration() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let object = |items: Value| json!({"spec": {"field": items}});
    for (live, applied, want) in [
        (json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"])),
        (json!(["a", "b"]), json!(["x", "b"]), json!(["a", "x", "b"])),
        (json!(["a", "b"]), json!(["b", "x"]), json!(["a", "b", "x"])),
    ] {
        let merged = merge(&object(live), &object(applied), &of(&list)).unwrap();
        assert_eq!(merged, object(want));
    }
}

#[test]
fn a_map_without_its_last_field_is_null() {
    let of = of(&json!({"type": "string"}));
    let object = json!({"spec": {"field": "x"}});
    let fields = to_set(&object, &of).unwrap();
    assert_eq!(remove(&object, &fields, &of), Some(json!({"spec": null})));
}
