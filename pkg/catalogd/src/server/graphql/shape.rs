//! Fields of a catalog's objects and their types, from which the GraphQL schema is built.
//!
//! Every object is read once. A field's kind is the most specific one that fits all its values, so it does not depend
//! on their order. Memory is bounded by one object and the limits below, not by the catalog.

use std::{collections::BTreeMap, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Maximum number of schemas; the GraphQL schema omits further ones.
const MAX_SCHEMAS: usize = 256;
/// Maximum number of fields of a schema or of the elements of a list.
const MAX_FIELDS: usize = 512;
/// Maximum number of fields of all schemas together, with those of elements. Each takes one or two kilobytes of a cached
/// GraphQL schema; real catalogs have about a hundred.
const MAX_TOTAL_FIELDS: usize = 4096;
/// Maximum size of a key or schema in bytes; longer ones are ignored.
const MAX_NAME: usize = 256;

/// Schemas with their fields, by name.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) schemas: BTreeMap<String, SchemaShape>,
    /// Number of fields that may be added.
    room: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            schemas: BTreeMap::new(),
            room: MAX_TOTAL_FIELDS,
        }
    }
}

/// Bounds of the size of a GraphQL schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapeSize {
    /// Number of types.
    pub(super) types: usize,
    /// Number of fields of all types and of their arguments.
    pub(super) fields: usize,
}

impl ShapeSize {
    /// More types, enum values or directives than every GraphQL schema has.
    const OWN_TYPES: usize = 64;
    /// More fields than the types of introspection have, at any level of a query.
    const OWN_FIELDS: usize = 256;
}

/// Objects of one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaShape {
    /// Number of objects.
    pub(super) objects: u64,
    /// Their fields by key.
    pub(super) fields: Fields,
}

/// Fields by key.
pub(super) type Fields = BTreeMap<String, Kind>;

/// Kind of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every value so far is null.
    Unknown,
    /// Single values.
    One(Scalar),
    /// Lists of values; `None` if all are empty.
    Many(Option<Scalar>),
    /// Lists of objects.
    Objects(Fields),
}

/// Type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Boolean,
    /// 32-bit integer, as in GraphQL.
    Int,
    /// Any number.
    Float,
    /// Text, or the JSON of other values.
    String,
}

impl Shape {
    /// Adds one object, given as JSON.
    pub(super) fn add(&mut self, object: &[u8]) -> Result<(), serde_json::Error> {
        let (schema, fields) = TopLevel.deserialize(&mut serde_json::Deserializer::from_slice(object))?;
        if schema.is_empty() || schema.len() > MAX_NAME {
            return Ok(());
        }
        if !self.schemas.contains_key(&schema) && self.schemas.len() >= MAX_SCHEMAS {
            return Ok(());
        }
        let merged = self.schemas.entry(schema).or_default();
        merged.objects += 1;
        merge(&mut merged.fields, fields, &mut self.room);
        Ok(())
    }

    /// Returns bounds of the size of the GraphQL schema.
    pub(super) fn size(&self) -> ShapeSize {
        let (mut types, mut fields) = (ShapeSize::OWN_TYPES, ShapeSize::OWN_FIELDS);
        for schema in self.schemas.values() {
            // A root field has two arguments.
            types += 1;
            fields += 3 + schema.fields.len();
            for kind in schema.fields.values() {
                if let Kind::Objects(below) = kind {
                    types += 1;
                    fields += below.len();
                }
            }
        }
        ShapeSize { types, fields }
    }
}

impl Scalar {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Int, Self::Float) | (Self::Float, Self::Int) => Self::Float,
            _ => Self::String,
        }
    }
}

impl Kind {
    /// Returns the most specific kind that fits both. Fields that `other` adds take `room`.
    fn join(self, other: Self, room: &mut usize) -> Self {
        match (self, other) {
            (Self::Unknown, kind) | (Self::Many(None), kind @ Self::Objects(_)) => kind.within(room),
            (kind, Self::Unknown) | (kind @ Self::Objects(_), Self::Many(None)) => kind,
            (Self::One(a), Self::One(b)) => Self::One(a.join(b)),
            (Self::Many(a), Self::Many(b)) => Self::Many(match (a, b) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            }),
            (Self::Objects(mut a), Self::Objects(b)) => {
                merge(&mut a, b, room);
                Self::Objects(a)
            }
            (Self::Many(_), Self::Objects(_)) | (Self::Objects(_), Self::Many(_)) => {
                Self::Many(Some(Scalar::String))
            }
            (Self::One(_), _) | (_, Self::One(_)) => Self::One(Scalar::String),
        }
    }

    /// Takes room for the fields below, and drops those without room.
    fn within(self, room: &mut usize) -> Self {
        let Self::Objects(fields) = self else {
            return self;
        };
        let mut kept = Fields::new();
        merge(&mut kept, fields, room);
        Self::Objects(kept)
    }
}

/// Adds fields; each new one takes `room`. Fields whose values turn out to be no objects do not give it back.
fn merge(merged: &mut Fields, more: Fields, room: &mut usize) {
    for (key, kind) in more {
        if let Some(slot) = merged.get_mut(&key) {
            let former = std::mem::replace(slot, Kind::Unknown);
            *slot = former.join(kind, room);
        } else if merged.len() < MAX_FIELDS && key.len() <= MAX_NAME && *room > 0 {
            *room -= 1;
            merged.insert(key, kind.within(room));
        }
    }
}

/// Visitor that reads an object's schema and fields.
struct TopLevel;

impl<'de> DeserializeSeed<'de> for TopLevel {
    type Value = (String, Fields);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TopLevel {
    type Value = (String, Fields);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut schema, mut fields, mut room) = (String::new(), Fields::new(), MAX_TOTAL_FIELDS);
        while let Some(key) = map.next_key::<String>()? {
            let kind = if key.eq_ignore_ascii_case("schema") {
                schema = map.next_value()?;
                Kind::One(Scalar::String)
            } else {
                map.next_value_seed(Value { nested: false })?
            };
            merge(&mut fields, Fields::from([(key, kind)]), &mut room);
        }
        Ok((schema, fields))
    }
}

/// Seed that reads a value's kind. `nested`: within the elements of a list, where objects have no types of their own.
#[derive(Clone, Copy)]
struct Value {
    nested: bool,
}

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Unknown)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Kind, E> {
        Ok(Kind::One(Scalar::Boolean))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::One(integer(i32::try_from(number).is_ok())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::One(integer(i32::try_from(number).is_ok())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Kind, E> {
        Ok(Kind::One(Scalar::Float))
    }

    fn visit_str<E>(self, _: &str) -> Result<Kind, E> {
        Ok(Kind::One(Scalar::String))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Kind::One(Scalar::String))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let (mut kind, mut room) = (Kind::Many(None), MAX_FIELDS);
        while let Some(element) = list.next_element_seed(Element { nested: self.nested })? {
            kind = kind.join(element, &mut room);
        }
        Ok(kind)
    }
}

/// Seed that reads an element of a list as the kind of a list with this element only.
#[derive(Clone, Copy)]
struct Element {
    nested: bool,
}

impl<'de> DeserializeSeed<'de> for Element {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Many(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Kind, E> {
        Ok(Kind::Many(Some(Scalar::Boolean)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Many(Some(integer(i32::try_from(number).is_ok()))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::Many(Some(integer(i32::try_from(number).is_ok()))))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Kind, E> {
        Ok(Kind::Many(Some(Scalar::Float)))
    }

    fn visit_str<E>(self, _: &str) -> Result<Kind, E> {
        Ok(Kind::Many(Some(Scalar::String)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Kind::Many(Some(Scalar::String)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        if self.nested {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Kind::Many(Some(Scalar::String)));
        }
        let (mut fields, mut room) = (Fields::new(), MAX_FIELDS);
        while let Some(key) = map.next_key::<String>()? {
            let kind = map.next_value_seed(Value { nested: true })?;
            merge(&mut fields, Fields::from([(key, kind)]), &mut room);
        }
        Ok(Kind::Objects(fields))
    }
}

fn integer(fits: bool) -> Scalar {
    if fits { Scalar::Int } else { Scalar::Float }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(objects: &[&str]) -> Shape {
        let mut shape = Shape::default();
        for object in objects {
            shape.add(object.as_bytes()).unwrap();
        }
        shape
    }

    #[test]
    fn kinds_of_values() {
        use Scalar::{Boolean, Float, Int, String};
        let object = r#"{"schema":"s","a":1,"b":1.5,"c":3000000000,"d":true,"e":null,"f":{"x":1},"g":[],"h":[1,2],
            "i":[1,"a"],"j":[{"n":1,"deep":[{"x":1}],"list":["a"]},{"m":{}}],"k":[[1]],"l":[{},1],"m":[null]}"#;
        let shape = shape(&[object]);
        let fields = &shape.schemas["s"].fields;
        for (key, kind) in [
            ("a", Kind::One(Int)),
            ("b", Kind::One(Float)),
            ("c", Kind::One(Float)),
            ("d", Kind::One(Boolean)),
            ("e", Kind::Unknown),
            ("f", Kind::One(String)),
            ("g", Kind::Many(None)),
            ("h", Kind::Many(Some(Int))),
            ("i", Kind::Many(Some(String))),
            (
                "j",
                Kind::Objects(Fields::from([
                    ("n".to_owned(), Kind::One(Int)),
                    ("deep".to_owned(), Kind::Many(Some(String))),
                    ("list".to_owned(), Kind::Many(Some(String))),
                    ("m".to_owned(), Kind::One(String)),
                ])),
            ),
            ("k", Kind::Many(Some(String))),
            ("l", Kind::Many(Some(String))),
            ("m", Kind::Many(None)),
            ("schema", Kind::One(String)),
        ] {
            assert_eq!(fields[key], kind, "{key}");
        }
    }

    #[test]
    fn the_order_of_objects_does_not_matter() {
        let objects = [
            r#"{"schema":"s","a":1,"b":[],"c":null}"#,
            r#"{"schema":"s","a":1.5,"b":[{"x":1}],"c":true}"#,
            r#"{"schema":"s","a":2,"b":[{"x":"1"}],"d":1}"#,
            r#"{"schema":"t"}"#,
            r#"{"name":"none"}"#,
        ];
        let forward = shape(&objects);
        let mut backward = objects;
        backward.reverse();
        assert_eq!(forward.schemas, shape(&backward).schemas);
        assert_eq!(forward.schemas["s"].objects, 3);
        assert_eq!(forward.schemas.len(), 2);
        assert_eq!(
            forward.schemas["s"].fields["b"],
            Kind::Objects(Fields::from([("x".to_owned(), Kind::One(Scalar::String))]))
        );
    }

    #[test]
    fn limits_hold() {
        let mut shape = Shape::default();
        for n in 0..MAX_SCHEMAS + 5 {
            shape.add(format!("{{\"schema\":\"s{n}\"}}").as_bytes()).unwrap();
        }
        assert_eq!(shape.schemas.len(), MAX_SCHEMAS);
        let keys: Vec<String> = (0..MAX_FIELDS + 5).map(|n| format!("\"k{n}\":1")).collect();
        let mut wide = Shape::default();
        wide.add(format!("{{\"schema\":\"s\",{}}}", keys.join(",")).as_bytes())
            .unwrap();
        assert_eq!(wide.schemas["s"].fields.len(), MAX_FIELDS);
    }

    #[test]
    fn all_fields_together_are_limited() {
        let keys: Vec<String> = (0..100).map(|n| format!("\"k{n}\":1")).collect();
        let lists: Vec<String> = (0..100)
            .map(|n| format!("\"l{n}\":[{{{}}}]", keys.join(",")))
            .collect();
        let total = |shape: &Shape| {
            let fields = shape.schemas.values().flat_map(|schema| schema.fields.values());
            let below = fields.map(|kind| match kind {
                Kind::Objects(below) => 1 + below.len(),
                _ => 1,
            });
            below.sum::<usize>()
        };
        let mut hostile = Shape::default();
        for schema in 0..3 {
            // The kinds of the second object fill those of the first.
            let empty: Vec<String> = (0..100).map(|n| format!("\"l{n}\":[]")).collect();
            for fields in [&empty, &lists] {
                let object = format!("{{\"schema\":\"s{schema}\",{}}}", fields.join(","));
                hostile.add(object.as_bytes()).unwrap();
            }
        }
        assert_eq!(total(&hostile), MAX_TOTAL_FIELDS);
        let size = hostile.size();
        assert_eq!(size.fields, MAX_TOTAL_FIELDS + 3 * 3 + ShapeSize::OWN_FIELDS);

        // Many objects with the same fields need their room once.
        let mut usual = Shape::default();
        let elements = format!("{{{}}}", keys.join(",")).repeat(50).replace("}{", "},{");
        for _ in 0..100 {
            let object = format!("{{\"schema\":\"s\",\"l\":[{elements}]}}");
            usual.add(object.as_bytes()).unwrap();
        }
        assert_eq!(total(&usual), 102);
        assert_eq!(usual.room, MAX_TOTAL_FIELDS - 102);
    }
}
