//! Errors as the API server reports them.

use serde_json::{Map, Value, json};

use crate::kinds::Resource;

/// Refusal of a request, as a `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
    /// Answer in plain text: the path is not served.
    pub plain: bool,
    /// Token to go on with a list that expired.
    pub continuation: Option<String>,
}

/// One defect of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub reason: &'static str,
    pub field: String,
    pub message: String,
}

impl Cause {
    pub(crate) fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            field: field.into(),
            message: message.into(),
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new(
            "FieldValueInvalid",
            field,
            format!("Invalid value: {value}: {why}"),
        )
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {why}")
        };
        Self::new("FieldValueRequired", field, message)
    }
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            plain: false,
            continuation: None,
        }
    }

    fn of(mut self, resource: &Resource, name: &str, more: Value) -> Self {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !resource.group.is_empty() {
            details.insert("group".into(), resource.group.clone().into());
        }
        details.insert("kind".into(), resource.plural.clone().into());
        if let Value::Object(more) = more {
            details.extend(more);
        }
        self.details = Some(Value::Object(details));
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Refusal whose cause the API server does not know, with code 500.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn path() -> Self {
        Self {
            plain: true,
            ..Self::new(404, "NotFound", "404 page not found\n")
        }
    }

    /// Refusal of a subresource that a built-in kind does not have.
    pub(crate) fn subresource() -> Self {
        let mut out = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        out.details = Some(json!({}));
        out
    }

    pub(crate) fn method() -> Self {
        let mut out = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        out.details = Some(json!({}));
        out
    }

    pub(crate) fn media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} {name:?} not found", resource.qualified()),
        )
        .of(resource, name, Value::Null)
    }

    pub(crate) fn exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).of(resource, name, Value::Null)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            resource.qualified()
        );
        Self::new(409, "Conflict", message).of(resource, name, Value::Null)
    }

    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Conflict of an apply with other field managers.
    pub(crate) fn managers(message: &str, causes: &[Value]) -> Self {
        let count = causes.len();
        let noun = if count == 1 { "conflict" } else { "conflicts" };
        let message = format!("Apply failed with {count} {noun}: {message}");
        let mut out = Self::new(409, "Conflict", message);
        out.details = Some(json!({ "causes": causes }));
        out
    }

    pub(crate) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let kind = if resource.group.is_empty() {
            resource.kind.clone()
        } else {
            format!("{}.{}", resource.kind, resource.group)
        };
        let texts: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = if texts.is_empty() {
            format!("{kind} {name:?} is invalid")
        } else {
            format!("{kind} {name:?} is invalid: {list}")
        };
        let causes: Vec<Value> = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        let mut out = Self::new(422, "Invalid", message).of(resource, name, json!({ "causes": causes }));
        if let Some(details) = &mut out.details {
            details["kind"] = resource.kind.clone().into();
        }
        out
    }

    /// Refusal of an object with these defects.
    pub(crate) fn invalid_object(resource: &Resource, object: &Value, causes: &[Cause]) -> Self {
        let kind = crate::value::text(object, "/kind").to_owned();
        let given = Resource {
            kind,
            ..resource.clone()
        };
        Self::invalid(&given, crate::value::text(object, "/metadata/name"), causes)
    }

    /// Refusal of a patch whose result cannot be decoded.
    pub(crate) fn invalid_patch(cause: &Cause) -> Self {
        let mut out = Self::unprocessable();
        out.message = format!(" \"\" is invalid: {}: {}", cause.field, cause.message);
        out.details = Some(json!({
            "causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field}],
        }));
        out
    }

    /// Refusal of the options of a request.
    pub(crate) fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let options = Resource {
            group: "meta.k8s.io".into(),
            kind: kind.into(),
            ..crate::kinds::crd_resource().clone()
        };
        Self::invalid(&options, "", causes)
    }

    /// Refusal of a patch that cannot be applied to the object.
    pub(crate) fn unprocessable() -> Self {
        let mut out = Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
        out.details = Some(json!({}));
        out
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let shown = if name.is_empty() {
            format!("{} is forbidden: {why}", resource.qualified())
        } else {
            format!("{} {name:?} is forbidden: {why}", resource.qualified())
        };
        Self::new(403, "Forbidden", shown).of(resource, name, Value::Null)
    }

    /// Refusal for want of a right.
    pub(crate) fn forbidden_right(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let resource = Resource {
            group: group.into(),
            plural: plural.into(),
            ..crate::kinds::crd_resource().clone()
        };
        Self::forbidden(&resource, name, why)
    }

    pub(crate) fn with_causes(mut self, causes: Value) -> Self {
        if let Some(details) = &mut self.details {
            details["causes"] = causes;
        }
        self
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// Returns the `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut out = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            out["reason"] = self.reason.into();
        }
        if let Some(token) = &self.continuation {
            out["metadata"]["continue"] = token.clone().into();
        }
        if let Some(details) = &self.details {
            out["details"] = details.clone();
        }
        out
    }
}
