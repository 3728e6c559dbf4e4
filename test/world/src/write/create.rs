//! Creation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{metadata as meta, prepare, validate};
use crate::managed::Writer;
use crate::status::Refusal;
use crate::value::{is_deleting, metadata, text};
use crate::world::{Call, Target, World};

impl World {
    /// Creates an object of a POST.
    pub(crate) fn create(
        &mut self,
        call: &mut Call,
        target: &Target,
        mut object: Value,
    ) -> Result<Value, Refusal> {
        crate::decode::check(&mut object, target)?;
        meta::check_namespace(&mut object, target)?;
        if !text(&object, "/metadata/resourceVersion").is_empty() {
            return Err(Refusal::unknown(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.insert(call, target, object, false)
    }

    /// Creates an object that was decoded. An applied object has its managers already.
    pub(crate) fn insert(
        &mut self,
        call: &mut Call,
        target: &Target,
        mut object: Value,
        applied: bool,
    ) -> Result<Value, Refusal> {
        let resource = Arc::clone(&target.resource);
        self.accepts_creations(target)?;
        if text(&object, "/metadata/name").is_empty() {
            let prefix = text(&object, "/metadata/generateName").to_owned();
            if !prefix.is_empty() {
                let name = format!("{prefix}{}", self.draw_suffix());
                metadata(&mut object).insert("name".into(), name.into());
            }
        }
        let name = text(&object, "/metadata/name").to_owned();
        let uid = text(&object, "/metadata/uid");
        if applied && !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Refusal::conflict(&resource, &name, &why));
        }
        self.normalise(&mut object, &resource);
        meta::for_creation(&mut object, &resource, self.draw_uid(), &call.time());
        if !applied {
            let writer = Writer {
                resource: &resource,
                manager: &call.manager,
                subresource: "",
                time: &call.time(),
            };
            writer.update(None, &mut object);
        }
        prepare::for_creation(&mut object, &resource);
        let causes = validate::creation(self, &object, target);
        if !causes.is_empty() {
            return Err(Refusal::invalid_object(&resource, &object, &causes));
        }
        let created = Target {
            resource: Arc::clone(&resource),
            namespace: target.namespace.clone(),
            name: name.clone(),
            subresource: String::new(),
        };
        let key = created.key();
        if self.store.get(&key).is_some() {
            return Err(Refusal::exists(&resource, &name));
        }
        // Objects get their defaults when they are read from the store, too.
        let mut stored = object.clone();
        self.normalise(&mut stored, &resource);
        prepare::for_storage(&mut stored, &resource);
        if call.dry_run {
            return Ok(stored);
        }
        let bare = resource.traits.custom && stored != object;
        let event = self.commit(call, &key, &resource, Some(stored), None);
        if bare {
            Arc::make_mut(&mut self.bare).insert(key);
        }
        Ok(event.after.as_deref().cloned().unwrap_or_default())
    }

    /// Refuses creations in namespaces that do not exist or terminate, and of kinds whose CRD terminates.
    fn accepts_creations(&self, target: &Target) -> Result<(), Refusal> {
        if target.resource.traits.custom {
            let name = format!("{}.{}", target.resource.plural, target.resource.group);
            let terminating = self.custom.get(&name).is_some_and(|kind| kind.terminating);
            if terminating {
                let mut refusal = Refusal::method();
                refusal.message = "create not allowed while custom resource definition is terminating".into();
                return Err(refusal);
            }
        }
        if !target.resource.namespaced {
            return Ok(());
        }
        let namespaces = crate::kinds::namespace_resource();
        let Some(namespace) = self.namespace(&target.namespace) else {
            return Err(Refusal::not_found(namespaces, &target.namespace));
        };
        if is_deleting(namespace) {
            let why = format!(
                "unable to create new content in namespace {} because it is being terminated",
                target.namespace
            );
            let causes = json!([{
                "reason": "NamespaceTerminating", "field": "metadata.namespace",
                "message": format!("namespace {} is being terminated", target.namespace),
            }]);
            return Err(Refusal::forbidden(&target.resource, &target.name, &why).with_causes(causes));
        }
        Ok(())
    }

    /// Returns a namespace.
    pub(crate) fn namespace(&self, name: &str) -> Option<&Arc<Value>> {
        self.store.get(&crate::Key {
            group: String::new(),
            plural: "namespaces".into(),
            namespace: String::new(),
            name: name.into(),
        })
    }
}
