//! Reads for people with rights in one namespace: discovery, their own rights, and names of CRDs.

use std::collections::BTreeMap;

use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PartialObjectMeta, PostParams};
use kube::discovery::{ApiGroup, Discovery, Scope};
use kube::{Resource, ResourceExt};
use olm_api::keys;
use olm_api::names::Segment;

use super::call::{call, find};
use super::cluster::Cluster;
use super::error::SourceError;
use crate::tenant::{Installer, ServedApi};

/// Objects of one page of a list.
const PAGE: u32 = 500;

impl SourceError {
    /// Returns true if the API server refused the request for lack of rights.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Cluster { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_forbidden()))
    }
}

impl Cluster {
    /// Returns the namespaced APIs that the cluster serves. Every authenticated user may ask for them.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn namespaced_apis(&self) -> Result<Vec<ServedApi>, SourceError> {
        let asking = Discovery::new(self.client().clone()).run_aggregated();
        let discovery = call("asking for the APIs of the cluster", asking).await?;
        Ok(discovery.groups().flat_map(of_group).collect())
    }

    /// Returns the user's rights in a namespace, and true if the answer is complete.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn rights_in(&self, namespace: &str) -> Result<(Vec<ResourceRule>, bool), SourceError> {
        let api: Api<SelfSubjectRulesReview> = Api::all(self.client().clone());
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec {
                namespace: Some(namespace.to_owned()),
            },
            ..SelfSubjectRulesReview::default()
        };
        let params = PostParams::default();
        let asking = api.create(&params, &review);
        let status = call("asking for your rights", asking)
            .await?
            .status
            .unwrap_or_default();
        Ok((status.resource_rules, !status.incomplete))
    }

    /// Returns the extensions by the names of their CRDs; `None` if the user may not list CRDs.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn installers(&self) -> Result<Option<BTreeMap<String, Installer>>, SourceError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client().clone());
        let params = ListParams::default().labels(&keys::selector_of_extension(None));
        let listed = match listed(
            &api,
            params,
            "listing the CustomResourceDefinitions of extensions",
        )
        .await
        {
            Err(error) if error.is_forbidden() => return Ok(None),
            listed => listed?,
        };
        let installer = |crd: &PartialObjectMeta<CustomResourceDefinition>| {
            let annotation = |key: &str| crd.annotations().get(key).cloned().unwrap_or_default();
            Installer {
                extension: crd
                    .labels()
                    .get(keys::OWNER_NAME_LABEL)
                    .cloned()
                    .unwrap_or_default(),
                package: annotation(keys::PACKAGE_NAME_ANNOTATION),
                version: annotation(keys::BUNDLE_VERSION_ANNOTATION),
            }
        };
        Ok(Some(
            listed
                .iter()
                .map(|crd| (crd.name_any(), installer(crd)))
                .collect(),
        ))
    }

    /// Returns the names of all CRDs.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn crd_names(&self) -> Result<Vec<String>, SourceError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client().clone());
        let found = listed(
            &api,
            ListParams::default(),
            "listing the CustomResourceDefinitions",
        )
        .await?;
        Ok(found.iter().map(ResourceExt::name_any).collect())
    }

    /// Returns the names of all namespaces.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, SourceError> {
        let api: Api<Namespace> = Api::all(self.client().clone());
        let found = listed(&api, ListParams::default(), "listing the namespaces").await?;
        Ok(found.iter().map(ResourceExt::name_any).collect())
    }

    /// Returns false if there is certainly no such namespace; without the right to read it, it may exist.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn may_exist(&self, namespace: &str) -> Result<bool, SourceError> {
        let Ok(segment) = Segment::new(namespace) else {
            return Ok(false);
        };
        let api: Api<Namespace> = Api::all(self.client().clone());
        let what = format!("reading namespace \"{namespace}\"");
        match find(&what, api.get_metadata_opt(&segment)).await {
            Err(error) if error.is_forbidden() => Ok(true),
            found => Ok(found?.is_some()),
        }
    }
}

/// Lists metadata page by page.
async fn listed<K>(
    api: &Api<K>,
    mut params: ListParams,
    what: &str,
) -> Result<Vec<PartialObjectMeta<K>>, SourceError>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    params = params.limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = call(what, api.list_metadata(&params)).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(all),
        }
    }
}

fn of_group(group: &ApiGroup) -> Vec<ServedApi> {
    let mut apis: Vec<ServedApi> = Vec::new();
    let preferred = group.preferred_version();
    let mut versions: Vec<&str> = group.versions().collect();
    versions.sort_by_key(|version| Some(*version) != preferred);
    for version in versions {
        for (resource, capabilities) in group.versioned_resources(version) {
            if capabilities.scope != Scope::Namespaced || resource.plural.contains('/') {
                continue;
            }
            match apis.iter_mut().find(|api| api.plural == resource.plural) {
                Some(known) => known.versions.push(version.to_owned()),
                None => apis.push(ServedApi {
                    group: resource.group,
                    kind: resource.kind,
                    plural: resource.plural,
                    versions: vec![version.to_owned()],
                }),
            }
        }
    }
    apis
}
