//! Kinds that CRDs define: served versions, schemas, validation.

mod rules;
mod schema;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde_json::Value;

pub(crate) use schema::CustomSchema;

use crate::kinds::{Resource, Traits};
use crate::types;
use crate::value::{items, text};
use crate::world::World;

/// Maximum number of compiled schemas that are kept for other worlds.
const KEPT: usize = 256;

/// Compiled schemas by their text: worlds of one process share them.
static COMPILED: LazyLock<Mutex<HashMap<String, Arc<CustomSchema>>>> = LazyLock::new(Mutex::default);

/// Kind of an established CRD.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// True while the custom resources of the CRD are being deleted.
    pub terminating: bool,
    versions: BTreeMap<String, CustomVersion>,
}

/// Served version.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    pub resource: Arc<Resource>,
    schema: Arc<CustomSchema>,
}

impl CustomKind {
    pub(crate) fn version(&self, name: &str) -> Option<&CustomVersion> {
        self.versions.get(name)
    }

    pub(crate) fn versions(&self) -> impl Iterator<Item = &CustomVersion> {
        self.versions.values()
    }

    fn of(crd: &Value) -> Option<Self> {
        let has = |name: &str| {
            let mut conditions = items(crd, "/status/conditions").iter();
            conditions.any(|condition| condition["type"] == name && condition["status"] == "True")
        };
        if !has("Established") {
            return None;
        }
        let versions = items(crd, "/spec/versions").iter();
        let served = versions.filter(|version| version["served"] == true);
        Some(Self {
            terminating: has("Terminating"),
            versions: served
                .map(|version| (text(version, "/name").to_owned(), CustomVersion::of(crd, version)))
                .collect(),
        })
    }
}

impl CustomVersion {
    fn of(crd: &Value, version: &Value) -> Self {
        let schema = compiled(&version["schema"]["openAPIV3Schema"]);
        let name = |pointer: &str| text(crd, pointer).to_owned();
        let resource = Resource {
            group: name("/spec/group"),
            version: text(version, "/name").to_owned(),
            plural: name("/spec/names/plural"),
            singular: name("/spec/names/singular"),
            kind: name("/spec/names/kind"),
            list_kind: name("/spec/names/listKind"),
            short_names: items(crd, "/spec/names/shortNames")
                .iter()
                .filter_map(|name| name.as_str().map(ToOwned::to_owned))
                .collect(),
            namespaced: text(crd, "/spec/scope") == "Namespaced",
            status: version.pointer("/subresources/status").is_some(),
            traits: Traits {
                generation: true,
                custom: true,
                ..Traits::default()
            },
            fields: schema.fields.clone(),
        };
        Self {
            resource: Arc::new(resource),
            schema,
        }
    }
}

fn compiled(schema: &Value) -> Arc<CustomSchema> {
    let text = schema.to_string();
    let mut kept = COMPILED.lock();
    if let Some(found) = kept.get(&text) {
        return Arc::clone(found);
    }
    if kept.len() >= KEPT {
        kept.clear();
    }
    let made = Arc::new(CustomSchema::new(schema, types::custom(schema)));
    kept.insert(text, Arc::clone(&made));
    made
}

impl World {
    /// Serves the kind of a CRD as the CRD is now; `None` for a CRD that is gone.
    pub(crate) fn refresh_kind(&mut self, name: &str, crd: Option<&Arc<Value>>) {
        let kinds = Arc::make_mut(&mut self.custom);
        match crd.and_then(|crd| CustomKind::of(crd)) {
            Some(kind) => kinds.insert(name.to_owned(), Arc::new(kind)),
            None => kinds.remove(name),
        };
    }

    /// Returns the schema of a custom kind.
    pub(crate) fn schema(&self, resource: &Resource) -> Option<Arc<CustomSchema>> {
        if !resource.traits.custom {
            return None;
        }
        let kind = self.custom.get(&resource.qualified())?;
        kind.version(&resource.version)
            .map(|version| Arc::clone(&version.schema))
    }
}

impl Resource {
    /// Returns an object in the version of this resource.
    pub(crate) fn at_version(&self, object: &Arc<Value>) -> Arc<Value> {
        let version: Cow<'_, str> = self.api_version().into();
        if object["apiVersion"] == *version {
            return Arc::clone(object);
        }
        let mut out = Value::clone(object);
        out["apiVersion"] = version.into();
        Arc::new(out)
    }
}
