//! Patches: merge, JSON and server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Origin, metadata as meta};
use crate::managed::Writer;
use crate::status::{Cause, Refusal};
use crate::value::{metadata, text};
use crate::world::{Call, Target, World};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// Maximum number of operations of a JSON patch.
const MAX_OPERATIONS: usize = 10_000;

impl World {
    /// Patches an object; returns the status code and the object.
    pub(crate) fn patch(
        &mut self,
        call: &mut Call,
        target: &Target,
        body: &[u8],
    ) -> Result<(u16, Value), Refusal> {
        let applies = call.content_type == APPLY;
        let known = matches!(call.content_type.as_str(), JSON | MERGE)
            || applies
            || call.content_type == STRATEGIC && !target.resource.traits.custom;
        if !known {
            let mut accepted = vec![JSON, MERGE];
            if !target.resource.traits.custom {
                accepted.push(STRATEGIC);
            }
            accepted.extend([APPLY, "application/apply-patch+cbor"]);
            return Err(Refusal::media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            )));
        }
        check_options(call, applies)?;
        let live = self.store.get(&target.key()).cloned();
        if applies {
            return self.apply(call, target, live, body);
        }
        let live = live.ok_or_else(|| Refusal::not_found(&target.resource, &target.name))?;
        let live = target.resource.at_version(&live);
        let mut new = if call.content_type == JSON {
            json_patched(&live, body)?
        } else {
            let patch = crate::decode::parse(body)?;
            let mut new = Value::clone(&live);
            json_patch::merge(&mut new, &patch);
            new
        };
        crate::decode::check_patched(&mut new, target)?;
        let name = text(&new, "/metadata/name");
        if name != target.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            )));
        }
        meta::check_namespace(&mut new, target)?;
        self.normalise(&mut new, &target.resource);
        if text(&new, "/metadata/resourceVersion").is_empty() {
            metadata(&mut new).insert(
                "resourceVersion".into(),
                live["metadata"]["resourceVersion"].clone(),
            );
        }
        self.replace(call, target, &live, new, Origin::Update)
            .map(|object| (200, object))
    }

    fn apply(
        &mut self,
        call: &mut Call,
        target: &Target,
        live: Option<Arc<Value>>,
        body: &[u8],
    ) -> Result<(u16, Value), Refusal> {
        let resource = Arc::clone(&target.resource);
        let live = live.map(|live| resource.at_version(&live));
        let mut config = crate::decode::parse(body)?;
        if text(&config, "/apiVersion") != resource.api_version() {
            return Err(Refusal::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {}, expected: {}",
                text(&config, "/apiVersion"),
                resource.api_version()
            )));
        }
        if config
            .pointer("/metadata/managedFields")
            .is_some_and(|value| !value.is_null())
        {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        if live.is_none() && !target.subresource.is_empty() {
            return Err(Refusal::not_found(&resource, &target.name));
        }
        let failed = |why: &str| Refusal::unknown(format!("failed to create typed patch object: {why}"));
        if let Some(field) = crate::decode::mismatch(&config, &resource.fields, "", false) {
            return Err(failed(&format!("{field}: the value has a wrong type")));
        }
        crate::decode::check(&mut config, target)?;
        meta::check_namespace(&mut config, target)?;
        meta::complete_owners(&mut config);
        let name = text(&config, "/metadata/name");
        if name.is_empty() {
            metadata(&mut config).insert("name".into(), target.name.clone().into());
        } else if name != target.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            )));
        }
        if let Some(unknown) = crate::types::undeclared(&config, &resource.fields) {
            return Err(Refusal::unknown(format!(
                "failed to create typed patch object ({}/{}; {}, Kind={}): {unknown}: field not declared in schema",
                target.namespace,
                target.name,
                resource.api_version(),
                resource.kind
            )));
        }
        if let Some(key) = crate::types::duplicate(&config, &resource.fields) {
            return Err(failed(&format!("duplicate entries for key {key}")));
        }
        let time = call.time();
        let writer = Writer {
            resource: &resource,
            manager: &call.manager,
            subresource: &target.subresource,
            time: &time,
        };
        let force = call.parameters.is_true("force");
        let mut new = writer.apply(live.as_deref(), &config, force)?;
        if let Some(field) = crate::decode::wrong_type(&new, &resource) {
            return Err(Refusal::unknown(format!(
                "failed to convert new typed object: {field}: the value has a wrong type"
            )));
        }
        self.normalise_applied(&mut new, &resource);
        match live {
            Some(live) => {
                if text(&new, "/metadata/resourceVersion").is_empty() {
                    metadata(&mut new).insert(
                        "resourceVersion".into(),
                        live["metadata"]["resourceVersion"].clone(),
                    );
                }
                self.replace(call, target, &live, new, Origin::Apply)
                    .map(|object| (200, object))
            }
            None => self
                .insert(call, target, new, Origin::Apply)
                .map(|object| (201, object)),
        }
    }
}

fn check_options(call: &Call, applies: bool) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    if applies && call.parameters.get("fieldManager").is_none() {
        causes.push(Cause::required("fieldManager", "is required for apply patch"));
    }
    if !applies && call.parameters.get("force").is_some() {
        causes.push(Cause::new(
            "FieldValueForbidden",
            "force",
            "Forbidden: may not be specified for non-apply patch",
        ));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid_options("PatchOptions", &causes))
}

fn json_patched(live: &Value, body: &[u8]) -> Result<Value, Refusal> {
    let operations: Vec<Value> = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(Refusal::bad_request("the patch has too many operations"));
    }
    let mut new = live.clone();
    for operation in operations {
        let operation = lenient(&new, operation);
        let patch: json_patch::Patch =
            serde_json::from_value(json!([operation])).map_err(|_| Refusal::unprocessable())?;
        json_patch::patch(&mut new, &patch).map_err(|_| Refusal::unprocessable())?;
    }
    Ok(new)
}

/// Returns an operation as the API server's library understands it: a replacement of an absent field adds the field.
fn lenient(object: &Value, mut operation: Value) -> Value {
    let path = text(&operation, "/path").to_owned();
    let absent = object.pointer(&path).is_none();
    let parent = path
        .rsplit_once('/')
        .and_then(|(parent, _)| object.pointer(parent));
    if operation["op"] == "replace" && absent && parent.is_some_and(Value::is_object) {
        operation["op"] = "add".into();
    }
    operation
}
