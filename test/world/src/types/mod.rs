//! Types of objects as server-side apply sees them: which lists are sets or maps, which maps are one value.
//!
//! Types of built-in kinds come from the API server's `OpenAPI` documents, reduced to `builtin.json`. Types of custom
//! resources come from the schema of their CRD.

mod builtin;
mod compare;
mod custom;
mod element;
mod merge;
mod normal;
mod remove;
mod set;
mod to_set;
mod undeclared;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use builtin::builtin;
pub(crate) use compare::{Comparison, compare};
pub(crate) use custom::custom;
pub(crate) use merge::merge;
pub(crate) use normal::normalise;
pub(crate) use remove::remove;
pub(crate) use set::Set;
pub(crate) use to_set::to_set;
pub(crate) use undeclared::{duplicate, undeclared};

/// Type of a value.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Scalar(Scalar),
    /// Any value: maps are granular, lists are one value.
    Any,
    List(Box<ListType>),
    Map(Box<MapType>),
    /// Built-in type of this name.
    Named(String),
}

/// Kind of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    /// Bytes as base64.
    Bytes,
    Number,
    Boolean,
    Untyped,
}

/// List.
#[derive(Clone, Debug)]
pub(crate) struct ListType {
    pub element: Type,
    pub identity: Identity,
}

/// Identity of a list's elements.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The list is one value.
    Atomic,
    /// Elements are their own keys.
    Set,
    /// Values of these fields are the key.
    Keys(Vec<String>),
}

/// Map, or object with named fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapType {
    pub fields: BTreeMap<String, Type>,
    /// Type of all other fields; `None` if there are no other fields.
    pub element: Option<Type>,
    /// True if the map is one value.
    pub atomic: bool,
    /// Fields that a client sees even if they are empty.
    pub required: Vec<String>,
    /// Defaults of fields that are keys of a list.
    pub defaults: BTreeMap<String, Value>,
}

impl MapType {
    /// Returns the type of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&Type> {
        self.fields.get(name).or(self.element.as_ref())
    }
}

/// Shape of a type, with names resolved and [`Type::Any`] deduced from a value.
pub(crate) enum Shape<'a> {
    Scalar,
    List(&'a ListType),
    Map(&'a MapType),
}

impl Type {
    /// Resolves names.
    pub(crate) fn resolve(&self) -> &Self {
        match self {
            Self::Named(name) => builtin().named(name),
            other => other,
        }
    }

    /// Returns the shape for a value of this type.
    pub(crate) fn shape(&self, value: &Value) -> Shape<'_> {
        match self.resolve() {
            Self::List(list) => Shape::List(list),
            Self::Map(map) => Shape::Map(map),
            Self::Any => match value {
                // A null takes any form, the one of a map first.
                Value::Object(_) | Value::Null => Shape::Map(&builtin().any_map),
                Value::Array(_) => Shape::List(&builtin().any_list),
                _ => Shape::Scalar,
            },
            Self::Scalar(_) | Self::Named(_) => Shape::Scalar,
        }
    }

    /// Returns the form of a value of this type; values of one declared type all have one form.
    fn form(&self, value: &Value) -> Form {
        match (self.resolve(), value) {
            (Self::Any, Value::Null) => Form::Unknown,
            (Self::Any, Value::Object(_)) => Form::Map,
            (Self::Any, Value::Array(_)) => Form::List,
            (Self::Any, _) => Form::Scalar,
            _ => Form::Declared,
        }
    }
}

/// Form of a value whose type is deduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The type is declared.
    Declared,
    /// The value is null.
    Unknown,
    Scalar,
    List,
    Map,
}
