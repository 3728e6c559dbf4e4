//! The parts of the GraphQL service that read foreign text.

#[path = "../../src/server/graphql/limits.rs"]
mod limits;
#[path = "../../src/server/graphql/names.rs"]
mod names;
#[path = "../../src/server/graphql/properties.rs"]
mod properties;
#[path = "../../src/server/graphql/shape.rs"]
mod shape;

pub(crate) fn any_query(text: &str) {
    properties::query(text);
}

pub(crate) fn any_schema(text: &str) {
    properties::schema(text);
}
