//! Objects of an extension as JSON, for a client without their types.

use anyhow::{Context as _, Result};
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope};
use kube::{Api, Client};
use serde_json::Value;

/// Address of an object: its resource, namespace and name.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Resource of the object.
    pub(crate) resource: ApiResource,
    /// Namespace; `None` for a cluster-scoped object.
    pub(crate) namespace: Option<String>,
    /// Name of the object.
    pub(crate) name: String,
}

impl Place {
    /// Returns the place of an object. For a kind that the API server does not know yet, the plural is guessed.
    pub(crate) fn of(object: &Value, known: &Discovery) -> Result<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let types = TypeMeta {
            api_version: text("/apiVersion").unwrap_or_default().to_owned(),
            kind: text("/kind").unwrap_or_default().to_owned(),
        };
        let kind = GroupVersionKind::try_from(&types)?;
        let namespace = text("/metadata/namespace").map(ToOwned::to_owned);
        let (resource, namespace) = match known.resolve_gvk(&kind) {
            // Bundles may also give cluster-scoped objects a namespace.
            Some((resource, capabilities)) => (
                resource,
                namespace.filter(|_| capabilities.scope == Scope::Namespaced),
            ),
            None => (ApiResource::from_gvk(&kind), namespace),
        };
        Ok(Self {
            resource,
            namespace,
            name: text("/metadata/name")
                .context("an object has no name")?
                .to_owned(),
        })
    }

    /// Returns the API of the object's kind and namespace.
    pub(crate) fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }
}
