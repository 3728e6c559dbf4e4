//! Kinds that the cluster serves, and the user's rights on them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use olm_api::names::{self, Segment};
use olm_runtime::client::is_absent;
use olm_text::object::{ObjectId, group_version, text};
use serde_json::{Value, json};

use super::call::{CALL_TIMEOUT, call, find};
use super::cluster::Cluster;
use super::error::SourceError;
use crate::cli::bundle::Issuer;
use crate::gates::{self, Gates};

/// Resources of the kinds of manifests.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    served: BTreeMap<(String, String), Option<(ApiResource, Scope)>>,
}

impl Kinds {
    /// Returns the resource of an object's kind; none if the cluster does not serve the kind, or nobody asked.
    pub(crate) fn of(&self, object: &Value) -> Option<&ApiResource> {
        Some(&self.served.get(&key(object))?.as_ref()?.0)
    }

    /// Returns true if the cluster serves the object's kind without namespaces. Some manifests of such kinds name a namespace all
    /// the same.
    pub(crate) fn is_cluster_scoped(&self, object: &Value) -> bool {
        let found = self.served.get(&key(object)).and_then(Option::as_ref);
        found.is_some_and(|(_, scope)| *scope == Scope::Cluster)
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
            let found = self.served(&key.0, &key.1).await?;
            kinds.served.insert(key, found);
        }
        Ok(kinds)
    }

    /// Returns the resource of a kind; none if the cluster does not serve it.
    pub(super) async fn served(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<(ApiResource, Scope)>, SourceError> {
        let (group, version) = group_version(api_version);
        let kind = GroupVersionKind::gvk(group, version, kind);
        match tokio::time::timeout(CALL_TIMEOUT, pinned_kind(self.client(), &kind)).await {
            Ok(Ok((resource, capabilities))) => Ok(Some((resource, capabilities.scope))),
            Ok(Err(kube::Error::Discovery(_))) => Ok(None),
            Ok(Err(error)) if is_absent(&error) => Ok(None),
            Ok(Err(source)) => Err(SourceError::Cluster {
                what: format!("asking for kind {}", kind.kind),
                source: Box::new(source),
            }),
            Err(_) => Err(SourceError::Slow {
                what: format!("asking for kind {}", kind.kind),
            }),
        }
    }

    /// Returns the feature gates of operator-controller; those of the shipped manifests if its Deployment cannot be read.
    pub(crate) async fn gates(&self) -> Gates {
        let namespace = self.system_namespace();
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": gates::DEPLOYMENT, "namespace": namespace}});
        let found = async {
            let kinds = self.kinds(std::slice::from_ref(&object)).await?;
            self.present(&object, &kinds).await
        };
        match found.await {
            Ok(Some(deployment)) => Gates::of_deployment(&deployment.data),
            Ok(None) => Gates::assumed(format!(
                "there is no Deployment {namespace}/{}",
                gates::DEPLOYMENT
            )),
            Err(error) => Gates::assumed(olm_text::chain(&error)),
        }
    }

    /// Returns the issuer of webhook certificates that operator-controller chooses on this cluster by its feature gates.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn issuer(&self, gates: &Gates) -> Result<Issuer, SourceError> {
        let groups = call("listing the API groups", self.client().list_api_groups()).await?;
        Ok(gates.issuer(&groups.groups))
    }

    /// Returns the API of an object's kind and namespace; none if the kind is not served, or no API server can hold the object.
    pub(super) fn api_of(&self, object: &Value, kinds: &Kinds) -> Option<Api<DynamicObject>> {
        names::check(object).ok()?;
        let resource = kinds.of(object)?;
        let namespace = ObjectId::of(object).namespace;
        Some(if namespace.is_empty() || kinds.is_cluster_scoped(object) {
            Api::all_with(self.client().clone(), resource)
        } else {
            Api::namespaced_with(self.client().clone(), namespace, resource)
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
        let Some((resource, _)) = self.served(api_version, kind).await? else {
            return Ok(Vec::new());
        };
        let api: Api<DynamicObject> = match namespace {
            None => Api::all_with(self.client().clone(), &resource),
            Some(namespace) => Api::namespaced_with(self.client().clone(), namespace, &resource),
        };
        let what = format!("listing {}", resource.plural);
        Ok(call(&what, api.list(&ListParams::default())).await?.items)
    }

    /// Returns the user's name and groups, as the API server knows them.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn whoami(&self) -> Result<(String, Vec<String>), SourceError> {
        let api: Api<SelfSubjectReview> = Api::all(self.client().clone());
        let (params, question) = (PostParams::default(), SelfSubjectReview::default());
        let answer = call("asking who you are", api.create(&params, &question)).await?;
        let user = answer
            .status
            .and_then(|status| status.user_info)
            .unwrap_or_default();
        Ok((user.username.unwrap_or_default(), user.groups.unwrap_or_default()))
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

#[cfg(test)]
mod tests {
    use super::super::stand_in::{cluster, failure, resources};
    use super::*;

    const DEPLOYMENTS: &str =
        "/apis/apps/v1/namespaces/olmv1-system/deployments/operator-controller-controller-manager";

    #[tokio::test]
    async fn the_gates_are_those_of_the_running_controller() {
        let apps = (
            "/apis/apps/v1",
            200,
            resources("apps/v1", "Deployment", "deployments", true),
        );
        let deployment = |on: bool| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": gates::DEPLOYMENT},
                "spec": {"template": {"spec": {"containers": [
                    {"name": "manager", "args": [format!("--feature-gates=BundleReleaseSupport={on}")]}]}}}})
        };
        for on in [true, false] {
            let seen = cluster(&[apps.clone(), (DEPLOYMENTS, 200, deployment(on))])
                .await
                .gates()
                .await;
            assert_eq!((seen.release_support(), seen.assumption()), (on, None));
        }
        let forbidden = (DEPLOYMENTS, 403, failure(403, "deployments is forbidden"));
        let assumed = cluster(&[apps.clone(), forbidden]).await.gates().await;
        assert!(assumed.release_support());
        let said = assumed.assumption().unwrap();
        assert!(said.contains("deployments is forbidden"), "{said}");
        let absent = cluster(&[apps]).await.gates().await.assumption().unwrap();
        assert!(
            absent.contains("there is no Deployment olmv1-system/operator-controller"),
            "{absent}"
        );
    }
}
