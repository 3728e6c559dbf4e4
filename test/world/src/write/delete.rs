//! Deletions.

use std::sync::Arc;

use olm_proof::Preconditions;
use serde_json::{Value, json};

use super::update::has_finished;
use crate::kinds::Resource;
use crate::status::{Cause, Refusal};
use crate::value::{as_map, finalizers, is_deleting, items, metadata, text};
use crate::world::{Call, Target, World};

/// Finalizer of an object whose dependents are orphaned.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer of an object whose dependents go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of a CRD whose custom resources go first.
pub(crate) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Options of a deletion.
#[derive(Debug, Default)]
struct Options {
    preconditions: Preconditions,
    policy: Option<String>,
    dry_run: bool,
}

impl World {
    /// Deletes an object; returns the status code and the answer.
    pub(crate) fn delete(
        &mut self,
        call: &mut Call,
        target: &Target,
        body: &[u8],
    ) -> Result<(u16, Value), Refusal> {
        let options = options(call, body)?;
        let resource = Arc::clone(&target.resource);
        let live = self.get(target)?;
        let shown = |object: &Value| (200, object.clone());
        check(&options.preconditions, &live, target)?;
        let mut new = Value::clone(&live);
        let own: Vec<String> = if resource.is("", "Namespace") {
            finalizers(&live).into_iter().map(ToOwned::to_owned).collect()
        } else {
            collected_finalizers(&live, options.policy.as_deref(), &resource)
        };
        let dry_run = call.dry_run || options.dry_run;
        let held = !own.is_empty() || !has_finished(&live, &resource);
        if held {
            metadata(&mut new).insert("finalizers".into(), json!(own));
            if own.is_empty() {
                metadata(&mut new).remove("finalizers");
            }
            if !is_deleting(&live) {
                mark(&mut new, call, &resource);
            }
            if dry_run || self.stores(target, &live, &new) {
                return Ok(shown(&new));
            }
            let event = self.commit(
                call,
                &target.key(),
                &resource,
                Some(new),
                Some(options.preconditions),
            );
            return Ok(shown(event.after.as_deref().unwrap_or(&Value::Null)));
        }
        if !dry_run {
            if is_deleting(&live) || finalizers(&live).is_empty() {
                metadata(&mut new).remove("finalizers");
            }
            let event = self.commit(call, &target.key(), &resource, None, Some(options.preconditions));
            metadata(&mut new).insert("resourceVersion".into(), event.revision.to_string().into());
        }
        if resource.traits.returns_deleted {
            return Ok(shown(&new));
        }
        Ok((200, success(&resource, &live)))
    }

    /// Deletes all objects that a list selects; returns the list.
    pub(crate) fn delete_all(
        &mut self,
        call: &mut Call,
        target: &Target,
        body: &[u8],
    ) -> Result<Value, Refusal> {
        let list = self.list(call, target, crate::form::Form::Full)?;
        for object in items(&list, "/items") {
            let one = Target {
                resource: Arc::clone(&target.resource),
                namespace: text(object, "/metadata/namespace").to_owned(),
                name: text(object, "/metadata/name").to_owned(),
                subresource: String::new(),
            };
            self.delete(call, &one, body)?;
        }
        Ok(list)
    }
}

/// Marks an object as being deleted.
fn mark(object: &mut Value, call: &Call, resource: &Resource) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let metadata = metadata(object);
    metadata.insert("deletionTimestamp".into(), call.time().into());
    // These two have deletions of their own.
    if !["Namespace", "CustomResourceDefinition"].contains(&resource.kind.as_str()) {
        metadata.insert("deletionGracePeriodSeconds".into(), json!(0));
        if let Some(generation) = generation {
            metadata.insert("generation".into(), json!(generation + 1));
        }
    }
    if resource.is("", "Namespace") {
        crate::value::child(object, "status").insert("phase".into(), "Terminating".into());
    }
}

/// Returns the finalizers of an object after a deletion with a propagation policy.
fn collected_finalizers(live: &Value, policy: Option<&str>, resource: &Resource) -> Vec<String> {
    let old = finalizers(live);
    let mut out: Vec<String> = old
        .iter()
        .filter(|name| **name != ORPHAN && **name != FOREGROUND)
        .map(|name| (*name).to_owned())
        .collect();
    match policy {
        Some("Orphan") => out.push(ORPHAN.into()),
        Some("Foreground") => out.push(FOREGROUND.into()),
        Some(_) => {}
        None => {
            let kept = old.iter().find(|name| **name == ORPHAN || **name == FOREGROUND);
            out.extend(kept.map(|name| (*name).to_owned()));
        }
    }
    if resource.is("apiextensions.k8s.io", "CustomResourceDefinition")
        && !out.iter().any(|name| name == CRD_CLEANUP)
    {
        out.push(CRD_CLEANUP.into());
    }
    let same = out.len() == old.len() && out.iter().all(|name| old.contains(&name.as_str()));
    if same {
        return old.into_iter().map(ToOwned::to_owned).collect();
    }
    out
}

fn check(preconditions: &Preconditions, live: &Value, target: &Target) -> Result<(), Refusal> {
    let conflict = |what: &str, wanted: &str, found: &str, cause: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {cause}"
        );
        let mut shown = Resource::clone(&target.resource);
        shown.plural.clone_from(&shown.kind);
        Refusal::conflict(&shown, &target.name, &why)
    };
    let (uid, version) = (
        text(live, "/metadata/uid"),
        text(live, "/metadata/resourceVersion"),
    );
    match &preconditions.uid {
        Some(wanted) if wanted != uid => {
            return Err(conflict(
                "UID",
                wanted,
                uid,
                "The object might have been deleted and then recreated",
            ));
        }
        _ => {}
    }
    match &preconditions.resource_version {
        Some(wanted) if wanted != version => Err(conflict(
            "ResourceVersion",
            wanted,
            version,
            "The object might have been modified",
        )),
        _ => Ok(()),
    }
}

fn options(call: &Call, body: &[u8]) -> Result<Options, Refusal> {
    let mut given = if body.is_empty() {
        json!({})
    } else {
        crate::decode::parse(body)?
    };
    if let (true, Some(policy)) = (body.is_empty(), call.parameters.get("propagationPolicy")) {
        as_map(&mut given).insert("propagationPolicy".into(), policy.into());
    }
    let optional = |pointer: &str| {
        given
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let policy = optional("/propagationPolicy");
    let mut causes = Vec::new();
    if let Some(policy) = &policy
        && !matches!(policy.as_str(), "Orphan" | "Background" | "Foreground")
    {
        causes.push(Cause::new(
            "FieldValueNotSupported",
            "propagationPolicy",
            format!(
                "Unsupported value: {policy:?}: supported values: \"Background\", \"Foreground\", \"Orphan\""
            ),
        ));
    }
    if !causes.is_empty() {
        return Err(Refusal::invalid_options("DeleteOptions", &causes));
    }
    Ok(Options {
        preconditions: Preconditions {
            uid: optional("/preconditions/uid"),
            resource_version: optional("/preconditions/resourceVersion"),
        },
        policy,
        dry_run: items(&given, "/dryRun").iter().any(|value| value == "All"),
    })
}

fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = json!({
        "name": text(object, "/metadata/name"), "kind": resource.plural, "uid": text(object, "/metadata/uid"),
    });
    if !resource.group.is_empty() {
        details["group"] = resource.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
