//! Kinds that the cluster serves, and the user's rights on them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::discovery::ApiResource;
use olm_api::names::Segment;
use olm_text::object::{ObjectId, text};
use serde_json::Value;

use super::call::{call, find};
use super::cluster::Cluster;
use super::error::SourceError;
use super::live::resource;

/// Resources of the kinds of manifests.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    served: BTreeMap<(String, String), Option<ApiResource>>,
}

impl Kinds {
    /// Returns the resource of an object's kind; none if the cluster does not serve the kind, or nobody asked.
    pub(crate) fn of(&self, object: &Value) -> Option<&ApiResource> {
        self.served.get(&key(object))?.as_ref()
    }

    /// Returns API version and kind of those that the cluster does not serve.
    pub(crate) fn unserved(&self) -> impl Iterator<Item = &(String, String)> {
        self.served
            .iter()
            .filter(|(_, found)| found.is_none())
            .map(|(key, _)| key)
    }
}

fn key(object: &Value) -> (String, String) {
    (
        text(object, "/apiVersion").to_owned(),
        text(object, "/kind").to_owned(),
    )
}

impl Cluster {
    /// Asks for the kinds of `objects`.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn kinds(&self, objects: &[Value]) -> Result<Kinds, SourceError> {
        let keys: BTreeSet<(String, String)> = objects.iter().map(key).collect();
        let mut kinds = Kinds::default();
        for key in keys {
            let found = resource(self.client(), &key.0, &key.1).await?;
            kinds.served.insert(key, found);
        }
        Ok(kinds)
    }

    /// Returns the API of an object's kind and namespace; none if the kind is not served.
    pub(super) fn api_of(&self, object: &Value, kinds: &Kinds) -> Option<Api<DynamicObject>> {
        let resource = kinds.of(object)?;
        Some(match ObjectId::of(object).namespace {
            "" => Api::all_with(self.client().clone(), resource),
            namespace => Api::namespaced_with(self.client().clone(), namespace, resource),
        })
    }

    /// Returns the object of the cluster with the identity of `object`; none if it or its kind is absent.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn present(
        &self,
        object: &Value,
        kinds: &Kinds,
    ) -> Result<Option<DynamicObject>, SourceError> {
        let id = ObjectId::of(object);
        let (Some(api), Ok(name)) = (self.api_of(object, kinds), Segment::new(id.name)) else {
            return Ok(None);
        };
        find(
            &format!("reading {} \"{}\"", id.kind, id.name),
            api.get_opt(&name),
        )
        .await
    }

    /// Lists all objects of a kind, or those of a namespace; none if the kind is not served.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<DynamicObject>, SourceError> {
        let Some(resource) = resource(self.client(), api_version, kind).await? else {
            return Ok(Vec::new());
        };
        let api: Api<DynamicObject> = match namespace {
            None => Api::all_with(self.client().clone(), &resource),
            Some(namespace) => Api::namespaced_with(self.client().clone(), namespace, &resource),
        };
        let what = format!("listing {}", resource.plural);
        Ok(call(&what, api.list(&ListParams::default())).await?.items)
    }

    /// Returns true if the user has the right.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> Result<bool, SourceError> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client().clone());
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = call(
            "asking for your rights",
            api.create(&PostParams::default(), &review),
        )
        .await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
