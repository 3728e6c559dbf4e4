//! Search for objects of others in a namespace, before the removal of its revision deletes it.
//!
//! The search lists every kind of the namespace, a request for each: about 60 on a plain cluster. An object that is created
//! between the search and the deletion is deleted with the namespace: the API server has no precondition on objects of another kind.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use serde_json::Value;

use super::call::{CallError, run_concurrently, timed};
use super::impersonate::RevisionClients;
use super::{Engine, EngineError, Id, Revision, chain};
use crate::left_behind::{GroupKind, HeldNamespace, is_of_others, is_record};
use crate::ownership::Identity;
use crate::refusal;

/// Objects of a page.
const PAGE: u32 = 500;
/// Maximum number of pages of one kind; a namespace with more objects is not searched further, and stays.
const MAX_PAGES: u32 = 10;
/// Maximum number of objects of one kind.
const MOST: u32 = PAGE * MAX_PAGES;
/// Status codes of the API server for a kind that is gone, or that cannot be listed at all.
const UNLISTED: [u16; 2] = [404, 405];

/// Objects of one kind.
enum Found {
    /// Objects of others, as kind and name.
    Others(Vec<(String, String)>),
    /// There are more than [`MOST`] objects.
    TooMany,
}

impl Engine {
    /// Returns the namespace if it holds objects of others than the revisions of this extension.
    ///
    /// # Errors
    /// The API server does not answer, or a list fails for a reason that passes. If a list fails for good, the namespace counts as
    /// holding objects of others: without the right to list a kind, or without the conversion webhook of its objects.
    pub(super) async fn objects_of_others(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        id: &Id,
    ) -> Result<Option<HeldNamespace>, EngineError> {
        let client = clients.reader().await?;
        let failed = |source| EngineError::object(id, "looking for objects of others", source);
        let resources = listed_kinds(client).await.map_err(failed)?;
        let namespaced: BTreeSet<GroupKind> = resources
            .iter()
            .map(|resource| (resource.group.clone(), resource.kind.clone()))
            .collect();
        let searches = resources
            .iter()
            .filter(|resource| !is_record(&resource.group, &resource.kind))
            .map(|resource| {
                let search = search(client, &id.name, resource, &revision.identity, &namespaced);
                search.map(move |found| (resource, found)).boxed()
            });
        let mut others = Vec::new();
        for (resource, found) in run_concurrently(searches.collect()).await {
            let reason = match found {
                Ok(Found::Others(found)) => {
                    others.extend(found);
                    continue;
                }
                Ok(Found::TooMany) => format!("there are more than {MOST} of them"),
                Err(error) if self.fails_for_good(resource, &error).await => chain(&error),
                Err(error) => return Err(failed(error)),
            };
            return Ok(Some(HeldNamespace::unreadable(&id.name, &resource.kind, &reason)));
        }
        Ok(HeldNamespace::holding(&id.name, &others))
    }

    /// Returns true if the list of a kind failed for a reason that may never pass. The conversion webhook of a kind may be gone with its
    /// Deployment, which an earlier phase removed.
    async fn fails_for_good(&self, resource: &ApiResource, error: &CallError) -> bool {
        if error.code() != refusal::INTERNAL {
            return refusal::lasts(error.code(), &Value::Null);
        }
        // A list of one: with the least privileges, the controller may list CRDs and not get them.
        let crds: Api<DynamicObject> = Api::all_with(
            self.client.clone(),
            &ApiResource::erase::<CustomResourceDefinition>(&()),
        );
        let name = format!("metadata.name={}.{}", resource.plural, resource.group);
        let listed = timed(crds.list(&ListParams::default().fields(&name))).await;
        listed.is_ok_and(|listed| {
            let mut crds = listed.items.iter();
            crds.any(|crd| refusal::lasts(error.code(), &crd.data))
        })
    }
}

/// Returns the namespaced kinds whose objects are stored, one version of each.
async fn listed_kinds(client: &Client) -> Result<Vec<ApiResource>, CallError> {
    let discovery = timed(Discovery::new(client.clone()).run_aggregated()).await?;
    let mut out = Vec::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.resources_by_stability() {
            let stored = [verbs::LIST, verbs::CREATE, verbs::DELETE]
                .iter()
                .all(|verb| capabilities.supports_operation(verb));
            if capabilities.scope == Scope::Namespaced && stored {
                out.push(resource);
            }
        }
    }
    Ok(out)
}

async fn search(
    client: &Client,
    namespace: &str,
    resource: &ApiResource,
    identity: &Identity,
    namespaced: &BTreeSet<GroupKind>,
) -> Result<Found, CallError> {
    // The namespace is a DNS label and needs no escaping.
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    let kind = (resource.group.as_str(), resource.kind.as_str());
    let mut others = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    for _ in 0..MAX_PAGES {
        let page = match timed(api.list_metadata(&params)).await {
            Ok(page) => page,
            Err(error) if UNLISTED.contains(&error.code()) => return Ok(Found::Others(others)),
            Err(error) => return Err(error),
        };
        let foreign = page
            .items
            .iter()
            .filter(|object| is_of_others(kind, &object.metadata, identity, namespaced))
            .map(|object| {
                (
                    resource.kind.clone(),
                    object.metadata.name.clone().unwrap_or_default(),
                )
            });
        others.extend(foreign);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(Found::Others(others)),
        }
    }
    Ok(Found::TooMany)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::engine::tests::revision;
    use crate::watch::{WatchTiming, Watches};

    /// Searches a namespace with custom resources of two versions. Their list is answered with `code`, and their CRD has this conversion
    /// strategy.
    async fn search_with(code: u16, strategy: &'static str) -> Result<Option<HeldNamespace>, EngineError> {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let (code, answer) = match path {
                "/apis" => (200, discovery()),
                "/api" => (200, json!({"metadata": {}, "items": []})),
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" => {
                    assert!(query.contains("metadata.name%3Dwords.example.com"), "{query}");
                    let versions = json!([{"name": "v1"}, {"name": "v1alpha1", "storage": true}]);
                    let spec = json!({"conversion": {"strategy": strategy}, "versions": versions});
                    let crd = json!({"metadata": {"name": "words.example.com"}, "spec": spec});
                    (200, json!({"metadata": {}, "items": [crd]}))
                }
                "/apis/example.com/v1/namespaces/n/words" => (
                    code,
                    json!({"kind": "Status", "status": "Failure", "code": code, "message": "no words"}),
                ),
                path => panic!("{path}"),
            };
            let body = Body::from(answer.to_string().into_bytes());
            Ok::<_, std::io::Error>(Response::builder().status(code).body(body).unwrap())
        });
        let client = Client::new(service, "n");
        let (watches, _triggers) = Watches::new(client.clone(), WatchTiming::default());
        let engine = Engine::new(client, Arc::new(watches));
        let revision = revision();
        let clients = RevisionClients::new(&engine, &revision);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        engine
            .objects_of_others(&revision, &clients, &Id::of(&namespace))
            .await
    }

    fn discovery() -> Value {
        let version = |version: &str| {
            let kind = json!({"group": "example.com", "version": version, "kind": "Word"});
            let words = json!({"resource": "words", "responseKind": kind, "scope": "Namespaced", "singularResource": "word",
                "verbs": ["create", "delete", "list"]});
            json!({"version": version, "resources": [words], "freshness": "Current"})
        };
        json!({"metadata": {}, "items": [
            {"metadata": {"name": "example.com"}, "versions": [version("v1alpha1"), version("v1")]}]})
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_fails_for_good_keeps_the_namespace() {
        for (code, strategy) in [(403, "None"), (406, "None"), (500, "Webhook")] {
            let held = search_with(code, strategy).await.unwrap().unwrap();
            assert_eq!(
                held.to_string(),
                "n counts as holding objects of others, because objects of kind Word cannot be listed (no words)",
                "{code}"
            );
        }
        assert_eq!(search_with(404, "Webhook").await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_fails_for_now_is_repeated() {
        for (code, strategy) in [
            (500, "None"),
            (429, "Webhook"),
            (503, "Webhook"),
            (504, "Webhook"),
        ] {
            let error = search_with(code, strategy).await.unwrap_err();
            let text = chain(&error);
            assert!(
                text.ends_with("looking for objects of others: no words"),
                "{code}: {text}"
            );
        }
    }
}
