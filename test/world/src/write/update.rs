//! Updates.

use std::sync::Arc;

use serde_json::Value;

use super::{Origin, metadata as meta, prepare, validate};
use crate::kinds::Resource;
use crate::managed::Writer;
use crate::status::{Cause, Refusal};
use crate::value::{finalizers, is_deleting, items, text};
use crate::world::{Call, Target, World};

impl World {
    /// Replaces an object by a PUT; returns the status code and the object.
    pub(crate) fn update(
        &mut self,
        call: &mut Call,
        target: &Target,
        mut object: Value,
    ) -> Result<(u16, Value), Refusal> {
        crate::decode::check(&mut object, target)?;
        let name = text(&object, "/metadata/name");
        if name != target.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            )));
        }
        meta::check_namespace(&mut object, target)?;
        let Some(live) = self.store.get(&target.key()).cloned() else {
            if target.resource.traits.create_on_update && target.subresource.is_empty() {
                if !text(&object, "/metadata/uid").is_empty() {
                    return Err(Refusal::conflict(
                        &target.resource,
                        &target.name,
                        &format!(
                            "StorageError: invalid object, Code: 4, Key: , ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: ",
                            text(&object, "/metadata/uid")
                        ),
                    ));
                }
                return self
                    .insert(call, target, object, Origin::Update)
                    .map(|object| (201, object));
            }
            return Err(Refusal::not_found(&target.resource, &target.name));
        };
        let live = target.resource.at_version(&live);
        self.normalise(&mut object, &target.resource);
        self.replace(call, target, &live, object, Origin::Update)
            .map(|object| (200, object))
    }

    /// Writes a new state of an object.
    pub(crate) fn replace(
        &mut self,
        call: &mut Call,
        target: &Target,
        live: &Arc<Value>,
        mut new: Value,
        origin: Origin,
    ) -> Result<Value, Refusal> {
        let resource = Arc::clone(&target.resource);
        let replaces = call.content_type == "application/json";
        check_version(&new, live, target, replaces)?;
        meta::for_update(&mut new, live);
        if origin != Origin::Apply {
            let writer = Writer {
                resource: &resource,
                manager: &call.manager,
                subresource: &target.subresource,
                time: &call.time(),
            };
            writer.update(Some(live), &mut new);
        }
        prepare::for_update(&mut new, live, &resource, &target.subresource);
        let causes = validate::update(self, &new, live, target);
        if !causes.is_empty() {
            return Err(Refusal::invalid_object(&resource, &new, &causes));
        }
        self.admit_owners(call, target, Some(live), &new)?;
        prepare::keep_times(&mut new, live, &resource);
        // The answer to an update that removes the object is the update itself.
        if is_deleting(&new) && finalizers(&new).is_empty() && has_finished(&new, &resource) {
            if !call.dry_run {
                self.commit(call, &target.key(), &resource, None, None);
            }
            return Ok(new);
        }
        if call.dry_run {
            return Ok(self.read_form(&new, &resource));
        }
        prepare::for_storage(&mut new, &resource);
        if self.stores(target, live, &new) {
            return Ok(Value::clone(live));
        }
        let event = self.commit(call, &target.key(), &resource, Some(new), None);
        Ok(event.after.as_deref().cloned().unwrap_or_default())
    }
}

/// Returns true if nothing besides finalizers of the metadata holds an object that is being deleted.
pub(super) fn has_finished(object: &Value, resource: &Resource) -> bool {
    !resource.is("", "Namespace") || items(object, "/spec/finalizers").is_empty()
}

/// Checks uid and resource version of a new state against the object.
fn check_version(new: &Value, live: &Value, target: &Target, replaces: bool) -> Result<(), Refusal> {
    let (uid, live_uid) = (text(new, "/metadata/uid"), text(live, "/metadata/uid"));
    if replaces && !uid.is_empty() && uid != live_uid {
        return Err(Refusal::conflict(
            &target.resource,
            &target.name,
            &format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {live_uid}"),
        ));
    }
    let version = text(new, "/metadata/resourceVersion");
    if matches!(version, "" | "0") {
        if target.resource.traits.unconditional {
            return Ok(());
        }
        let cause = Cause::new(
            "FieldValueInvalid",
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        );
        let mut shown = Resource::clone(&target.resource);
        shown.kind.clone_from(&shown.plural);
        return Err(Refusal::invalid(&shown, &target.name, &[cause]));
    }
    if version != text(live, "/metadata/resourceVersion") {
        return Err(Refusal::modified(&target.resource, &target.name));
    }
    Ok(())
}
