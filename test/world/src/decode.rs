//! Reading of bodies.

use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use serde_json::Value;

use crate::kinds::Resource;
use crate::request::Request;
use crate::status::{Cause, Refusal};
use crate::types::{Scalar, Type};
use crate::value::text;
use crate::world::Target;

/// Reads the body of a create or update.
pub(crate) fn body(request: &Request) -> Result<Value, Refusal> {
    let content = request.content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(content, "" | "application/json") {
        return Err(Refusal::media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf (got {content})"
        )));
    }
    parse(&request.body)
}

/// Reads a JSON object.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Refusal::bad_request("the body of the request is no object")),
        Err(error) => Err(Refusal::bad_request(format!("error decoding: {error}"))),
    }
}

/// Checks kind and version of an object and the types of its fields. An absent kind of a built-in object is filled in.
pub(crate) fn check(object: &mut Value, target: &Target) -> Result<(), Refusal> {
    let resource = &target.resource;
    let (kind, version) = (
        text(object, "/kind").to_owned(),
        text(object, "/apiVersion").to_owned(),
    );
    if resource.traits.custom && kind.is_empty() {
        return Err(Refusal::bad_request("error decoding: Object 'Kind' is missing"));
    }
    let wanted = resource.api_version();
    let kind_differs = !resource.traits.custom && !kind.is_empty() && kind != resource.kind;
    let version_differs = !version.is_empty() && version != wanted;
    if kind_differs || version_differs || resource.traits.custom && version.is_empty() {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({version}, Kind={kind}) does not match the expected API version ({wanted}, Kind={})",
            resource.kind
        )));
    }
    let map = crate::value::as_map(object);
    if !resource.traits.custom {
        map.insert("kind".into(), resource.kind.clone().into());
    }
    map.insert("apiVersion".into(), wanted.into());
    match wrong_type(object, resource) {
        None => Ok(()),
        Some(field) => Err(Refusal::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: json: cannot unmarshal into Go struct field {field}",
            resource.kind, resource.version, resource.kind
        ))),
    }
}

/// Returns the first field whose value has a wrong type for the decoder: any field of a built-in object, the metadata of a
/// custom resource.
pub(crate) fn wrong_type(object: &Value, resource: &Resource) -> Option<String> {
    if resource.traits.custom {
        let of = Type::Named("ObjectMeta".into());
        object
            .get("metadata")
            .and_then(|value| mismatch(value, &of, "metadata", true))
    } else {
        mismatch(object, &resource.fields, "", true)
    }
}

/// Checks an object after a patch, as [`check`] does; the patch is to blame for wrong types.
pub(crate) fn check_patched(object: &mut Value, target: &Target) -> Result<(), Refusal> {
    match wrong_type(object, &target.resource) {
        None => check(object, target),
        Some(field) => {
            let cause = Cause::new(
                "FieldValueInvalid",
                "patch",
                format!("Invalid value: the field {field} has a wrong type"),
            );
            Err(Refusal::invalid_patch(&cause))
        }
    }
}

/// Returns the first field with a value of a wrong type. Bytes are any text unless they are decoded.
pub(crate) fn mismatch(value: &Value, of: &Type, path: &str, decodes: bool) -> Option<String> {
    match (of.resolve(), value) {
        (Type::Scalar(Scalar::Bytes), Value::String(text)) if decodes => {
            (!is_base64(text)).then(|| path.to_owned())
        }
        (_, Value::Null)
        | (Type::Any, _)
        | (Type::Scalar(Scalar::String | Scalar::Bytes), Value::String(_))
        | (Type::Scalar(Scalar::Number), Value::Number(_))
        | (Type::Scalar(Scalar::Boolean), Value::Bool(_))
        | (Type::Scalar(Scalar::Untyped), Value::String(_) | Value::Number(_)) => None,
        (Type::List(list), Value::Array(items)) => {
            let mut items = items.iter();
            items.find_map(|item| mismatch(item, &list.element, path, decodes))
        }
        (Type::Map(map), Value::Object(fields)) => fields
            .iter()
            .find_map(|(name, value)| mismatch(value, map.field(name)?, &format!("{path}.{name}"), decodes)),
        _ => Some(path.to_owned()),
    }
}

/// Returns true for bytes in base64 as the decoder takes them: padded, in any number of lines, with any last bits.
fn is_base64(text: &str) -> bool {
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let text = text.replace(['\r', '\n'], "");
    GeneralPurpose::new(&alphabet::STANDARD, config)
        .decode(text)
        .is_ok()
}
