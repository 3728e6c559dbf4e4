//! Types of custom resources, from the schema of a CRD.

use serde_json::Value;

use super::builtin::words;
use super::{Identity, ListType, MapType, Scalar, Type};

/// Returns the type of a custom resource with this `openAPIV3Schema`.
pub(crate) fn custom(schema: &Value) -> Type {
    let mut root = of(schema);
    if let Type::Map(map) = &mut root {
        map.fields
            .insert("metadata".into(), Type::Named("ObjectMeta".into()));
        for name in ["apiVersion", "kind"] {
            map.fields.insert(name.into(), Type::Scalar(Scalar::String));
        }
    }
    root
}

fn of(schema: &Value) -> Type {
    if schema["x-kubernetes-int-or-string"] == true {
        return Type::Scalar(Scalar::Untyped);
    }
    let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
    match schema["type"].as_str() {
        Some("string") => Type::Scalar(Scalar::String),
        Some("integer" | "number") => Type::Scalar(Scalar::Number),
        Some("boolean") => Type::Scalar(Scalar::Boolean),
        Some("array") => Type::List(Box::new(ListType {
            element: of(&schema["items"]),
            identity: match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => Identity::Set,
                Some("map") => Identity::Keys(words(&schema["x-kubernetes-list-map-keys"])),
                _ => Identity::Atomic,
            },
        })),
        Some("object") => object(schema, keeps),
        _ => Type::Any,
    }
}

fn object(schema: &Value, keeps: bool) -> Type {
    let named = schema["properties"].as_object();
    let mut fields: std::collections::BTreeMap<_, _> = named
        .into_iter()
        .flatten()
        .map(|(name, field)| (name.clone(), of(field)))
        .collect();
    let defaults = named
        .into_iter()
        .flatten()
        .filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())))
        .collect();
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.insert("metadata".into(), Type::Any);
    }
    let element = match schema.get("additionalProperties") {
        Some(Value::Object(map)) => Some(of(&Value::Object(map.clone()))),
        Some(Value::Bool(true)) => Some(Type::Any),
        _ if keeps => Some(Type::Any),
        _ if fields.is_empty() => Some(Type::Any),
        _ => None,
    };
    Type::Map(Box::new(MapType {
        fields,
        element,
        atomic: schema["x-kubernetes-map-type"] == "atomic",
        required: words(&schema["required"]),
        defaults,
    }))
}
