//! Form of answers: complete objects or metadata.

use serde_json::{Value, json};

/// Form that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Complete objects.
    Full,
    /// `PartialObjectMetadata`.
    Metadata,
}

impl Form {
    /// Reads the header `Accept`.
    pub(crate) fn of(accept: &str) -> Self {
        let metadata = accept
            .split(',')
            .next()
            .is_some_and(|first| first.contains("as=PartialObjectMetadata"));
        if metadata { Self::Metadata } else { Self::Full }
    }

    /// Returns an object in this form.
    pub(crate) fn object(self, object: Value) -> Value {
        match self {
            Self::Full => object,
            Self::Metadata if object["kind"] == "Status" => object,
            Self::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
            }),
        }
    }
}
