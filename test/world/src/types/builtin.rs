//! Types of the built-in kinds.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

use super::{Identity, ListType, MapType, Scalar, Type};

/// Types by name, and the name of each kind's type.
pub(crate) struct Builtin {
    kinds: HashMap<String, String>,
    types: HashMap<String, Type>,
    pub(super) any_map: MapType,
    pub(super) any_list: ListType,
    unknown: Type,
}

static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(include_str!("builtin.json")).unwrap_or_default();
    let kinds = document["kinds"].as_object().into_iter().flatten();
    let types = document["types"].as_object().into_iter().flatten();
    Builtin {
        kinds: kinds
            .map(|(kind, name)| (kind.clone(), name.as_str().unwrap_or_default().to_owned()))
            .collect(),
        types: types
            .map(|(name, definition)| (name.clone(), object(definition)))
            .collect(),
        any_map: MapType {
            element: Some(Type::Any),
            ..MapType::default()
        },
        any_list: ListType {
            element: Type::Any,
            identity: Identity::Atomic,
        },
        unknown: Type::Any,
    }
});

/// Returns the types of the built-in kinds.
pub(crate) fn builtin() -> &'static Builtin {
    &BUILTIN
}

impl Builtin {
    /// Returns the type of a built-in kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Type {
        match self.kinds.get(&format!("{group}/{version}/{kind}")) {
            Some(name) => Type::Named(name.clone()),
            None => Type::Any,
        }
    }

    pub(super) fn named(&self, name: &str) -> &Type {
        self.types.get(name).unwrap_or(&self.unknown)
    }
}

fn object(definition: &Value) -> Type {
    let fields = definition["fields"].as_object().into_iter().flatten();
    let defaults = definition["defaults"].as_object().into_iter().flatten();
    Type::Map(Box::new(MapType {
        fields: fields
            .map(|(name, field)| (name.clone(), of(field)))
            .collect::<BTreeMap<_, _>>(),
        element: None,
        atomic: definition["atomic"] == true,
        required: words(&definition["required"]),
        defaults: defaults
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }))
}

fn of(written: &Value) -> Type {
    match written {
        Value::String(word) => match word.as_str() {
            "s" => Type::Scalar(Scalar::String),
            "y" => Type::Scalar(Scalar::Bytes),
            "n" => Type::Scalar(Scalar::Number),
            "b" => Type::Scalar(Scalar::Boolean),
            "q" => Type::Scalar(Scalar::Untyped),
            word => word
                .strip_prefix('@')
                .map_or(Type::Any, |name| Type::Named(name.to_owned())),
        },
        Value::Object(map) => {
            let atomic = map.get("atomic");
            if let Some(element) = map.get("set") {
                list(of(element), Identity::Set)
            } else if let Some(element) = map.get("list") {
                let identity = map
                    .get("keys")
                    .map_or(Identity::Atomic, |keys| Identity::Keys(words(keys)));
                list(of(element), identity)
            } else if let Some(element) = map.get("map") {
                Type::Map(Box::new(MapType {
                    element: Some(of(element)),
                    atomic: atomic.is_some(),
                    ..MapType::default()
                }))
            } else {
                // A reference to a type that this field holds as one value.
                atomic.map_or(Type::Any, of)
            }
        }
        _ => Type::Any,
    }
}

fn list(element: Type, identity: Identity) -> Type {
    Type::List(Box::new(ListType { element, identity }))
}

pub(super) fn words(value: &Value) -> Vec<String> {
    let words = value.as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(ToOwned::to_owned))
        .collect()
}
