//! Search for objects of others in a namespace, before the removal of its revision deletes it.
//!
//! The search lists every kind of the namespace, a request for each: about 60 on a plain cluster. An object that is created
//! between the search and the deletion is deleted with the namespace: the API server has no precondition on objects of another kind.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};

use super::call::{CallError, FORBIDDEN, run_concurrently, timed};
use super::impersonate::RevisionClients;
use super::{Engine, EngineError, Id, Revision, chain};
use crate::left_behind::{GroupKind, HeldNamespace, is_of_others, is_record};
use crate::ownership::Identity;

/// Objects of a page.
const PAGE: u32 = 500;
/// Maximum number of pages of one kind; a namespace with more objects is not searched further, and stays.
const MAX_PAGES: usize = 10;
/// Status codes of the API server for a kind that is gone, or that cannot be listed at all.
const UNLISTED: [u16; 2] = [404, 405];

impl Id {
    pub(super) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }
}

/// Objects of one kind.
enum Found {
    /// Objects of others, as kind and name.
    Others(Vec<(String, String)>),
    /// The kind cannot be listed, for this reason.
    Unreadable(String, String),
}

impl Engine {
    /// Returns the namespace if it holds objects of others than the revisions of this extension.
    ///
    /// # Errors
    /// The API server does not answer. Without the right to list a kind the namespace counts as holding objects of others.
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
            .map(|resource| search(client, &id.name, resource, &revision.identity, &namespaced).boxed());
        let mut others = Vec::new();
        for found in run_concurrently(searches.collect()).await {
            match found.map_err(failed)? {
                Found::Others(found) => others.extend(found),
                Found::Unreadable(kind, reason) => {
                    return Ok(Some(HeldNamespace::unreadable(&id.name, &kind, &reason)));
                }
            }
        }
        Ok(HeldNamespace::holding(&id.name, &others))
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
            Err(error) if error.code() == FORBIDDEN => {
                return Ok(Found::Unreadable(resource.kind.clone(), chain(&error)));
            }
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
    let reason = format!(
        "there are more than {} of them",
        usize::try_from(PAGE).unwrap_or(usize::MAX) * MAX_PAGES
    );
    Ok(Found::Unreadable(resource.kind.clone(), reason))
}
