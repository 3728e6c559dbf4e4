//! GraphQL schema of a catalog and the resolvers of its fields.
//!
//! The index finds the stored objects that a query names; no part of a catalog is held in memory. All resolvers block
//! on the disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_graphql::{
    Error, Name, Value,
    dynamic::{
        Field, FieldFuture, FieldValue, InputValue, Object, ResolverContext, Schema, SchemaError, TypeRef,
    },
};

use super::{
    names,
    row::{self, Budget, Row},
    shape::{Fields, Kind, Scalar, SchemaShape, Shape},
};
use crate::storage::{BlobRange, Encoding, Generation};

/// Maximum, and default, number of objects per page.
const PAGE: i32 = 100;
const QUERY: &str = "Query";
const SUMMARY: &str = "CatalogSummary";
const SCHEMA_SUMMARY: &str = "SchemaSummary";

/// Keys by the names of their fields.
type Keys = Arc<BTreeMap<String, String>>;

/// Builds the schema for a catalog of this shape. Schemas without a field are in the summary only: the fields of others may have left
/// them no room, and the library refuses empty types. Requests carry the [`Generation`] and their [`Budget`] as data.
pub(super) fn build(shape: &Shape) -> Result<Schema, SchemaError> {
    let mut types: BTreeSet<String> = [
        QUERY,
        SUMMARY,
        SCHEMA_SUMMARY,
        "Int",
        "Float",
        "String",
        "Boolean",
        "ID",
    ]
    .map(str::to_owned)
    .into();
    let mut roots = BTreeSet::from(["summary".to_owned()]);
    let (mut query, mut objects) = (Object::new(QUERY).field(summary(shape)), summary_types());
    for (schema, SchemaShape { fields, .. }) in &shape.schemas {
        if fields.is_empty() {
            continue;
        }
        let name = names::reserve(&names::type_name(schema), &mut types);
        let keys = add_type(&mut objects, &mut types, &name, fields);
        let root = names::reserve(&names::query_field(schema), &mut roots);
        query = query.field(root_field(schema, root, &name, keys));
    }
    objects
        .into_iter()
        .fold(
            Schema::build(QUERY, None, None).register(query),
            async_graphql::dynamic::SchemaBuilder::register,
        )
        .finish()
}

/// Adds the object type of fields, and the types below it.
fn add_type(objects: &mut Vec<Object>, types: &mut BTreeSet<String>, name: &str, fields: &Fields) -> Keys {
    // The first of several keys with the same field name wins.
    let mut by_name: BTreeMap<String, (&String, &Kind)> = BTreeMap::new();
    for (key, kind) in fields {
        by_name.entry(names::field_name(key)).or_insert((key, kind));
    }
    let keys = by_name
        .iter()
        .map(|(field, (key, _))| (field.clone(), (*key).clone()))
        .collect();
    let mut object = Object::new(name);
    for (field, (key, kind)) in by_name {
        let key = key.clone();
        object = object.field(match kind {
            Kind::Unknown => scalar_field(field, key, Scalar::String),
            Kind::One(scalar) => scalar_field(field, key, *scalar),
            Kind::Many(scalar) => list_field(field, key, scalar.unwrap_or(Scalar::String)),
            Kind::Objects(below) if below.is_empty() => list_field(field, key, Scalar::String),
            Kind::Objects(below) => {
                let element = names::reserve(&format!("{name}{}", names::type_name(&field)), types);
                let below = add_type(objects, types, &element, below);
                objects_field(field, key, &element, below)
            }
        });
    }
    objects.push(object);
    Arc::new(keys)
}

fn type_of(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Boolean => TypeRef::BOOLEAN,
        Scalar::Int => TypeRef::INT,
        Scalar::Float => TypeRef::FLOAT,
        Scalar::String => TypeRef::STRING,
    }
}

/// Returns a field with one value.
fn scalar_field(field: String, key: String, scalar: Scalar) -> Field {
    Field::new(field, TypeRef::named(type_of(scalar)), move |ctx| {
        let key = key.clone();
        FieldFuture::new(async move {
            let Some(json) = parent_value(&ctx, &key)? else {
                return Ok(None);
            };
            ctx.data::<Arc<Budget>>()?.spend(json.len())?;
            Ok(Some(FieldValue::value(row::scalar(json, scalar))))
        })
    })
}

/// Returns a field with a list of values.
fn list_field(field: String, key: String, scalar: Scalar) -> Field {
    Field::new(field, TypeRef::named_list(type_of(scalar)), move |ctx| {
        let key = key.clone();
        FieldFuture::new(async move {
            let Some(json) = parent_value(&ctx, &key)? else {
                return Ok(None);
            };
            let budget = ctx.data::<Arc<Budget>>()?;
            budget.spend(json.len())?;
            Ok(row::elements(json, row::ELEMENT, budget)?.map(|elements| {
                FieldValue::list(
                    elements
                        .iter()
                        .map(|element| FieldValue::value(row::scalar(element.get(), scalar))),
                )
            }))
        })
    })
}

/// Returns a field with a list of objects.
fn objects_field(field: String, key: String, element: &str, keys: Keys) -> Field {
    Field::new(field, TypeRef::named_list(element), move |ctx| {
        let (key, keys) = (key.clone(), keys.clone());
        FieldFuture::new(async move {
            let Some(json) = parent_value(&ctx, &key)? else {
                return Ok(None);
            };
            let (selected, budget) = (selected(&ctx, &keys), ctx.data::<Arc<Budget>>()?);
            let Some(elements) = row::elements(json, object_cost(&ctx), budget)? else {
                return Ok(None);
            };
            let rows = elements
                .iter()
                .map(|element| {
                    if element.get().starts_with('{') {
                        Ok(FieldValue::owned_any(row::row(element.get(), &selected, budget)?))
                    } else {
                        Ok(FieldValue::NULL)
                    }
                })
                .collect::<Result<Vec<_>, Error>>()?;
            Ok(Some(FieldValue::list(rows)))
        })
    })
}

/// Returns the root field that lists the objects of a schema.
fn root_field(schema: &str, root: String, object: &str, keys: Keys) -> Field {
    let schema: Arc<str> = schema.into();
    Field::new(root, TypeRef::named_list(object), move |ctx| {
        let (schema, keys) = (schema.clone(), keys.clone());
        FieldFuture::new(async move {
            let number = |name: &str| ctx.args.get(name).and_then(|value| value.i64().ok());
            let limit = number("limit")
                .and_then(|limit| u64::try_from(limit).ok())
                .filter(|limit| (1..=u64::from(PAGE.unsigned_abs())).contains(limit))
                .unwrap_or(u64::from(PAGE.unsigned_abs()));
            let offset = number("offset")
                .and_then(|offset| u64::try_from(offset).ok())
                .unwrap_or(0);
            let generation = ctx.data::<Arc<Generation>>()?;
            let (selected, budget) = (selected(&ctx, &keys), ctx.data::<Arc<Budget>>()?);
            let page = generation
                .page(&schema, offset, limit)
                .map_err(|error| unreadable(&error))?;
            budget.spend(page.len().saturating_mul(object_cost(&ctx)))?;
            // One buffer for all objects: the allocator clears a new large one by a system call.
            let mut object = Vec::new();
            let rows = page
                .into_iter()
                .map(|section| {
                    Ok(FieldValue::owned_any(read(
                        generation,
                        section,
                        &selected,
                        budget,
                        &mut object,
                    )?))
                })
                .collect::<Result<Vec<_>, Error>>()?;
            Ok(Some(FieldValue::list(rows)))
        })
    })
    .argument(InputValue::new("limit", TypeRef::named(TypeRef::INT)).default_value(PAGE))
    .argument(InputValue::new("offset", TypeRef::named(TypeRef::INT)).default_value(0))
}

/// Reads the selected keys of an object into a row; `object` is a buffer.
fn read(
    generation: &Generation,
    section: BlobRange,
    selected: &BTreeSet<&str>,
    budget: &Budget,
    object: &mut Vec<u8>,
) -> Result<Row, Error> {
    if selected.is_empty() {
        return Ok(Row::new());
    }
    budget.spend(0)?;
    object.resize(usize::try_from(section.length).unwrap_or_default(), 0);
    generation
        .read_at(Encoding::Identity, object, section.offset)
        .map_err(|error| unreadable(&error))?;
    let text = std::str::from_utf8(object).map_err(|_| Error::new("a stored object is not UTF-8"))?;
    Ok(row::row(text, selected, budget)?)
}

/// Logs the cause and returns an error without it.
fn unreadable(error: &dyn std::error::Error) -> Error {
    let text = olm_text::chain(error);
    tracing::error!(error = text, "a query cannot read content");
    Error::new("stored content cannot be read")
}

/// Returns the keys that a query selects below a field.
fn selected<'a>(ctx: &ResolverContext<'_>, keys: &'a BTreeMap<String, String>) -> BTreeSet<&'a str> {
    ctx.field()
        .selection_set()
        .filter_map(|field| keys.get(field.name()).map(String::as_str))
        .collect()
}

/// Returns the cost of each object of the list that a field returns.
fn object_cost(ctx: &ResolverContext<'_>) -> usize {
    row::ELEMENT + row::FIELD * ctx.field().selection_set().count()
}

/// Returns the JSON of the parent's key, unless it is missing or null.
fn parent_value<'a>(ctx: &ResolverContext<'a>, key: &str) -> Result<Option<&'a str>, Error> {
    let row = ctx.parent_value.try_downcast_ref::<Row>()?;
    Ok(row.get(key).map(String::as_str).filter(|json| *json != "null"))
}

/// Returns an object with these fields.
pub(super) fn object(fields: Vec<(&str, Value)>) -> Value {
    let fields = fields.into_iter();
    Value::Object(fields.map(|(name, value)| (Name::new(name), value)).collect())
}

/// Returns the root field with the numbers of schemas and objects.
fn summary(shape: &Shape) -> Field {
    let schemas: Vec<Value> = shape
        .schemas
        .iter()
        .map(|(name, shape)| {
            object(vec![
                ("name", name.as_str().into()),
                ("totalObjects", shape.objects.into()),
                ("totalFields", shape.fields.len().into()),
            ])
        })
        .collect();
    let summary = object(vec![
        ("totalSchemas", schemas.len().into()),
        ("schemas", Value::List(schemas)),
    ]);
    let cost = row::ELEMENT * (shape.schemas.len() + 1);
    Field::new("summary", TypeRef::named(SUMMARY), move |ctx| {
        let summary = summary.clone();
        FieldFuture::new(async move {
            ctx.data::<Arc<Budget>>()?.spend(cost)?;
            Ok(Some(FieldValue::value(summary)))
        })
    })
}

fn summary_types() -> Vec<Object> {
    let member = |name: &'static str, kind: TypeRef| {
        Field::new(name, kind, move |ctx| {
            FieldFuture::new(async move {
                let Some(Value::Object(fields)) = ctx.parent_value.as_value() else {
                    return Ok(None);
                };
                let value = fields.get(name);
                if let Some(Value::List(list)) = value {
                    ctx.data::<Arc<Budget>>()?.spend(list.len() * object_cost(&ctx))?;
                }
                Ok(value.cloned().map(FieldValue::value))
            })
        })
    };
    vec![
        Object::new(SUMMARY)
            .field(member("totalSchemas", TypeRef::named(TypeRef::INT)))
            .field(member("schemas", TypeRef::named_list(SCHEMA_SUMMARY))),
        Object::new(SCHEMA_SUMMARY)
            .field(member("name", TypeRef::named(TypeRef::STRING)))
            .field(member("totalObjects", TypeRef::named(TypeRef::INT)))
            .field(member("totalFields", TypeRef::named(TypeRef::INT))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_without_room_for_fields_breaks_no_other() {
        let keys: Vec<String> = (0..512).map(|n| format!("\"k{n}\":1")).collect();
        let lists: Vec<String> = (0..9)
            .map(|n| format!("\"l{n}\":[{{{}}}]", keys.join(",")))
            .collect();
        let mut shape = Shape::default();
        for object in [
            format!("{{\"schema\":\"greedy\",{}}}", lists.join(",")),
            "{\"schema\":\"late\",\"a\":1}".to_owned(),
        ] {
            shape.add(object.as_bytes()).unwrap();
        }
        assert!(shape.schemas["late"].fields.is_empty());
        let text = build(&shape).unwrap().sdl();
        assert!(text.contains("greedys(") && !text.contains("lates("), "{text}");
    }
}
