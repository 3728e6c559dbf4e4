//! Manifests of the bundle that are neither the CSV nor CRDs.

use olm_text::object::text;
use serde_json::{Value, json};

use super::Context;
use crate::validate::{Scope, scope_of};

/// Returns the manifests, with the install namespace on namespaced objects.
pub(super) fn render(context: &Context<'_>) -> Vec<Value> {
    context
        .bundle
        .other_manifests
        .iter()
        .map(|object| {
            let mut object = object.clone();
            let kind = text(&object, "/kind");
            if scope_of(kind) == Some(Scope::Namespaced)
                && let Value::Object(map) = &mut object
            {
                // Null metadata stay null, as in upstream.
                let metadata = map.entry("metadata").or_insert_with(|| json!({}));
                if let Value::Object(metadata) = metadata {
                    metadata.insert("namespace".to_owned(), context.namespace.into());
                }
            }
            object
        })
        .collect()
}
