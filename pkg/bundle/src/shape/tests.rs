use serde_json::json;

use super::*;

/// `value` as it comes out of the structure `name`.
fn normalized(name: &str, value: &Value) -> Value {
    shapes().normalize(name, value).unwrap()
}

#[test]
fn raw_json_in_schemas_is_unchanged() {
    for empty in [
        json!([]),
        json!({}),
        json!(""),
        json!(0),
        json!(false),
        json!([null]),
        json!({"a": null}),
    ] {
        let schema = json!({"default": empty, "example": empty, "enum": [empty, null]});
        let wrapped = json!({"items": schema, "properties": {"a": schema}, "additionalProperties": schema, "not": schema,
                             "allOf": [schema], "dependencies": {"a": schema}});
        assert_eq!(normalized("CrdSchema", &schema), schema);
        assert_eq!(normalized("CrdSchema", &wrapped), wrapped);
    }
    // Null counts as absent.
    assert_eq!(normalized("CrdSchema", &json!({"default": null})), json!({}));
}

#[test]
fn pointers_keep_empty_values() {
    let zero = json!({"minItems": 0, "maximum": 0, "x-kubernetes-preserve-unknown-fields": false, "$ref": "",
                      "x-kubernetes-list-type": "", "not": {}, "additionalProperties": false, "externalDocs": {}});
    assert_eq!(normalized("CrdSchema", &zero), zero);
    let dropped =
        json!({"title": "", "nullable": false, "required": [], "properties": {}, "enum": [], "unknown": 1});
    assert_eq!(normalized("CrdSchema", &dropped), json!({}));
    let column = json!({"name": "", "type": "", "jsonPath": "", "priority": 0});
    assert_eq!(
        normalized("CrdColumn", &column),
        json!({"name": "", "type": "", "jsonPath": ""})
    );
    let container = json!({"name": "", "stdin": false, "env": [], "resources": {},
                           "securityContext": {"privileged": false, "capabilities": {"drop": []}}});
    assert_eq!(
        normalized("io.k8s.api.core.v1.Container", &container),
        json!({"name": "", "resources": {}, "securityContext": {"privileged": false, "capabilities": {}}})
    );
}

#[test]
fn absent_fields_that_are_written() {
    let core = |name: &str| normalized(&format!("io.k8s.api.core.v1.{name}"), &json!({}));
    assert_eq!(
        core("ResourceFieldSelector"),
        json!({"resource": "", "divisor": "0"})
    );
    assert_eq!(core("GRPCAction"), json!({"port": 0, "service": null}));
    assert_eq!(core("ProjectedVolumeSource"), json!({"sources": null}));
    assert_eq!(core("ConfigMapVolumeSource"), json!({}));
    assert_eq!(core("SecretVolumeSource"), json!({}));
    assert_eq!(
        normalized("CrdCondition", &json!({})),
        json!({"type": "", "status": "", "lastTransitionTime": null})
    );
    assert_eq!(
        normalized("CrdSchema", &json!({"items": []})),
        json!({"items": null})
    );
}

#[test]
fn scalars_are_read_as_go_reads_them() {
    let schema = |value: Value| shapes().normalize("CrdSchema", &value);
    assert_eq!(schema(json!({"minItems": 2.0})), Ok(json!({"minItems": 2})));
    assert_eq!(
        schema(json!({"minItems": 2.5})),
        Err("cannot convert float64 to int64".to_owned())
    );
    assert_eq!(
        schema(json!({"additionalProperties": "x"})),
        Err("boolean or JSON schema expected".to_owned())
    );
    let probe =
        |port: Value| shapes().normalize("io.k8s.api.core.v1.TCPSocketAction", &json!({"port": port}));
    assert_eq!(probe(json!(8080.0)), Ok(json!({"port": 8080})));
    for (port, held) in [
        (json!(1.5), "number 1.5"),
        (json!(true), "bool"),
        (json!([]), "array"),
    ] {
        let text = format!("json: cannot unmarshal {held} into Go value of type int32");
        assert_eq!(probe(port), Err(text));
    }
    let meta = |time: Value| shapes().normalize(OBJECT_META, &json!({"creationTimestamp": time}));
    assert_eq!(
        meta(json!("2024-01-02T03:04:05.6+01:00")),
        Ok(json!({"creationTimestamp": "2024-01-02T02:04:05Z"}))
    );
    assert!(meta(json!("yesterday")).is_err() && meta(json!(5)).is_err());
    let client = |text: &str| shapes().normalize("CrdClientConfig", &json!({"caBundle": text}));
    assert_eq!(client("Cg=="), Ok(json!({"caBundle": "Cg=="})));
    assert_eq!(
        client("?"),
        Err("error decoding from json: illegal base64 data at input byte 0".to_owned())
    );
}

/// Every exception names a field that is there.
#[test]
fn exceptions_are_of_known_fields() {
    for name in presence::exceptions() {
        let known = shapes().types.iter().any(|(type_name, fields)| {
            let structure = type_name.rsplit('.').next().unwrap();
            match name.split_once('.') {
                Some((wanted, field)) => wanted == structure && fields.contains_key(field),
                None => fields.contains_key(name),
            }
        });
        assert!(known, "{name}");
    }
}
