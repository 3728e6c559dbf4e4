//! Schemas of members whose Rust type is external or not specific enough.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::rules;
use crate::condition::Status;

/// Returns the schema of a list of `meta/v1` conditions, one per type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's state.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status changed last.",
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "What the state is, for people; may be empty.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "Generation of the object that this condition speaks of.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why the state is so, for programs: one word of a fixed set.",
                },
                "status": {
                    "type": "string",
                    "enum": Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>(),
                    "description": "Whether the condition holds.",
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": concat!(
                        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
                        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    ),
                    "description": "What the condition is about.",
                },
            },
        },
    })
}

/// Returns the schema of a `meta/v1` label selector, replaced as a whole.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "description": "Requirements on labels, all of which must hold.",
                "items": {
                    "type": "object",
                    "description": "One requirement on a label.",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "description": "Key of the label." },
                        "operator": {
                            "type": "string",
                            "description": "In, NotIn, Exists or DoesNotExist.",
                        },
                        "values": {
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" },
                            "description": "Values for In and NotIn; empty for Exists and DoesNotExist.",
                        },
                    },
                },
            },
            "matchLabels": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Labels with the values they must have.",
            },
        },
    })
}

/// Returns the schema of names of channels.
pub(crate) fn channels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 256,
        "items": {
            "type": "string",
            "maxLength": 253,
            "x-kubernetes-validations": [rules::channel()],
        },
    })
}

/// Returns the schema of any object with at least one member.
pub(crate) fn inline_config(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Returns the schema of a complete Kubernetes object of any kind.
pub(crate) fn embedded_resource(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Returns the schema of minutes, without an integer format.
pub(crate) fn poll_interval(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1 })
}

/// A point in time.
pub(crate) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}
