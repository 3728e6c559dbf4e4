//! Creation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Origin, metadata as meta, prepare, validate};
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
        self.insert(call, target, object, Origin::Create)
    }

    /// Creates an object that was decoded.
    pub(crate) fn insert(
        &mut self,
        call: &mut Call,
        target: &Target,
        mut object: Value,
        origin: Origin,
    ) -> Result<Value, Refusal> {
        let resource = Arc::clone(&target.resource);
        self.accepts_creations(target, text(&object, "/metadata/name"))?;
        if text(&object, "/metadata/name").is_empty() {
            let prefix = text(&object, "/metadata/generateName").to_owned();
            if !prefix.is_empty() {
                let name = format!("{prefix}{}", self.draw_suffix());
                metadata(&mut object).insert("name".into(), name.into());
            }
        }
        let name = text(&object, "/metadata/name").to_owned();
        let uid = text(&object, "/metadata/uid");
        if origin == Origin::Apply && !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Refusal::conflict(&resource, &name, &why));
        }
        if origin != Origin::Apply {
            self.normalise(&mut object, &resource);
        }
        meta::for_creation(&mut object, &resource, self.draw_uid(), &call.time());
        if origin != Origin::Apply {
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
        if origin != Origin::Create {
            self.authorize(call, target, "create")?;
        }
        let created = Target {
            resource: Arc::clone(&resource),
            namespace: target.namespace.clone(),
            name: name.clone(),
            subresource: String::new(),
        };
        self.admit_owners(call, &created, None, &object)?;
        let key = created.key();
        // The store refuses, and a dry run does not reach it.
        if origin == Origin::Create && !call.dry_run && has_version(&object) {
            return Err(Refusal::unknown(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        if self.store.get(&key).is_some() {
            return Err(Refusal::exists(&resource, &name));
        }
        // Objects get their defaults when they are read from the store, too.
        let shown = self.read_form(&object, &resource);
        if call.dry_run {
            return Ok(shown);
        }
        let encoded = if resource.traits.custom { object } else { shown };
        let event = self.commit(call, &key, &resource, Some(encoded), None);
        Ok(event.after.as_deref().cloned().unwrap_or_default())
    }

    /// Refuses creations in namespaces that do not exist or terminate, and of kinds whose CRD terminates.
    fn accepts_creations(&self, target: &Target, object: &str) -> Result<(), Refusal> {
        if target.resource.traits.custom {
            let name = format!("{}.{}", target.resource.plural, target.resource.group);
            let terminating = self.custom.get(&name).is_some_and(|kind| kind.terminating);
            if terminating {
                let why = "create not allowed while custom resource definition is terminating";
                return Err(Refusal::forbidden(&target.resource, object, why));
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
            return Err(Refusal::forbidden(&target.resource, object, &why).with_causes(causes));
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

/// Returns true for an object with a resource version other than 0.
fn has_version(object: &Value) -> bool {
    let version = text(object, "/metadata/resourceVersion").parse::<u64>();
    version.is_ok_and(|version| version != 0)
}
