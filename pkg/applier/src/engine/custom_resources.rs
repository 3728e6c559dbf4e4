//! Count of the custom resources of a CRD, for the removal of its revision.
//!
//! A custom resource that is created between the count and the deletion of its CRD is deleted with it: the API server
//! has no precondition on objects of another kind. The count is therefore read as late as possible, and from etcd.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use olm_api::{ClusterExtension, CustomResourcePolicy, keys};

use super::call::{CallError, FORBIDDEN, run_concurrently, timed};
use super::impersonate::RevisionClients;
use super::{Engine, EngineError, Id, Revision, chain};
use crate::custom_resources::{Count, Fate, HeldCrd, Listing, fate, listing, readable_in};
use crate::ownership::{Identity, controller, heir};
use crate::refusal;

/// Returns the number of custom resources of `crd`, an object of the cluster, with the rights of `client`.
///
/// # Errors
/// The API server does not answer, or refuses for a reason that passes. Any other failure is [`Count::Unknown`].
pub async fn count_custom_resources(client: &Client, crd: &DynamicObject) -> Result<Count, CallError> {
    let (group, version, plural) = match listing(crd) {
        Listing::NeverEstablished => return Ok(Count::Exact(0)),
        Listing::Unserved => return Ok(Count::unknown("none of its versions is served")),
        Listing::In {
            group,
            version,
            plural,
        } => (group, version, plural),
    };
    let kind = GroupVersionKind::gvk(&group, &version, "");
    let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    // Without a resource version the list is the most recent one, not a cache's.
    let one = ListParams::default().limit(1);
    match timed(api.list_metadata(&one)).await {
        Ok(page) => {
            let (next, remaining) = (page.metadata.continue_, page.metadata.remaining_item_count);
            Ok(Count::of_page(page.items.len(), next.as_deref(), remaining))
        }
        Err(source) if refusal::lasts(source.code(), &crd.data) => Ok(Count::unknown(&chain(&source))),
        Err(source) => Err(source),
    }
}

impl Engine {
    /// Decides about a CRD that the revision would delete, and returns it if it holds custom resources.
    ///
    /// # Errors
    /// The list of custom resources fails for a reason that passes. Any other failure counts as custom resources, so that nothing is
    /// lost and the removal does not wait for what may never work again, such as a conversion webhook.
    pub(super) async fn fate_of_crd(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        id: &Id,
        live: &DynamicObject,
    ) -> Result<(Fate, Option<HeldCrd>), EngineError> {
        if revision.custom_resources == CustomResourcePolicy::Delete {
            return Ok((Fate::Delete, None));
        }
        let counted = count_custom_resources(clients.reader().await?, live).await;
        let count = counted.map_err(|source| EngineError::object(id, "counting custom resources", source))?;
        let held = HeldCrd {
            name: id.name.clone(),
            count,
            readable_in: readable_in(&live.data),
        };
        let fate = fate(revision.custom_resources, &held.count);
        Ok((fate, (fate != Fate::Delete).then_some(held)))
    }

    /// Returns the CRDs whose custom resources hold up the removal, before anything is removed: the operator can still
    /// handle the deletion of its custom resources.
    ///
    /// In the middle of an upgrade, the CRDs can belong to one revision and the running operator to another: CRDs of revisions that
    /// [go along](crate::ownership::Identity::goes_with) count too. A revision that a late pass has created after the deletion of its extension
    /// is not being deleted yet, but goes as well; so the extension is read, before the CRDs. Several CRDs are counted twice before a removal: a user can replace the
    /// custom resources of one by those of another between the two counts of one round.
    pub(super) async fn blocking_crds(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
    ) -> Result<Vec<HeldCrd>, EngineError> {
        if revision.custom_resources != CustomResourcePolicy::Block {
            return Ok(Vec::new());
        }
        let leaves = self.extension_leaves(&revision.identity).await?;
        let own = revision.ids().filter(|id| id.is_crd()).cloned();
        let mut ids: BTreeMap<String, Id> = own.map(|id| (id.name.clone(), id)).collect();
        for id in self.crds_of_siblings(revision, leaves).await? {
            ids.entry(id.name.clone()).or_insert(id);
        }
        let held = self.count_blocking(revision, clients, &ids, leaves).await?;
        if held.is_empty() && ids.len() > 1 {
            return self.count_blocking(revision, clients, &ids, leaves).await;
        }
        Ok(held)
    }

    /// Returns true if the extension of the revision is being deleted, or is gone.
    pub(super) async fn extension_leaves(&self, identity: &Identity) -> Result<bool, EngineError> {
        if identity.owner_name.is_empty() {
            return Ok(false);
        }
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        let read = timed(api.get_metadata_opt(&identity.owner_name)).await;
        let id = || Id::of_kind::<ClusterExtension>(&identity.owner_name);
        let found = read.map_err(|source| EngineError::object(&id(), "getting resource", source))?;
        Ok(found.is_none_or(|extension| extension.metadata.deletion_timestamp.is_some()))
    }

    /// Counts the custom resources of all these CRDs once, and returns the CRDs that hold up the removal.
    async fn count_blocking(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        ids: &BTreeMap<String, Id>,
        leaves: bool,
    ) -> Result<Vec<HeldCrd>, EngineError> {
        let checks = ids
            .values()
            .map(|id| self.blocking_crd(revision, clients, id, leaves).boxed())
            .collect();
        let (mut held, mut errors) = (Vec::new(), Vec::new());
        for checked in run_concurrently(checks).await {
            match checked {
                Ok(found) => held.extend(found),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(held)
        } else {
            Err(EngineError::Multiple(errors))
        }
    }

    /// Returns the CRD with its custom resources if it holds up the removal.
    ///
    /// CRDs of which the revision itself has custom resources are left to their phase, which comes after those objects.
    async fn blocking_crd(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        id: &Id,
        leaves: bool,
    ) -> Result<Option<HeldCrd>, EngineError> {
        // Names that no API server can hold are reported by the removal itself.
        let endpoint = match self.endpoint_as(clients.reader().await?, id).await {
            Err(EngineError::Name { .. } | EngineError::Invalid { .. }) => return Ok(None),
            endpoint => endpoint?,
        };
        let read = endpoint.read().await;
        let Some(live) = read.map_err(|source| EngineError::object(id, "getting resource", source))? else {
            return Ok(None);
        };
        let own = |other: &Id| {
            Some(other.group.as_str()) == pointer(&live, "/spec/group")
                && Some(other.kind.as_str()) == pointer(&live, "/spec/names/kind")
        };
        let terminating = live.metadata.deletion_timestamp.is_some();
        let goes = controller(&live.metadata).is_some_and(|owner| revision.identity.goes_with(owner, leaves));
        if terminating || !goes || revision.ids().any(own) {
            return Ok(None);
        }
        // A CRD that an older revision gets back stays, and so do its custom resources.
        if !leaves && heir(&live.metadata, &revision.identity).is_some() {
            return Ok(None);
        }
        let (_, held) = self.fate_of_crd(revision, clients, id, &live).await?;
        Ok(held)
    }

    /// Returns the CRDs of the extension, found by label: their revision lists them in a Secret perhaps.
    ///
    /// The list has the controller's own rights, as watches have. Without the right, only CRDs that the revision lists count.
    async fn crds_of_siblings(&self, revision: &Revision, leaves: bool) -> Result<Vec<Id>, EngineError> {
        let identity = &revision.identity;
        let mut siblings = identity.siblings.iter();
        if !leaves && !siblings.any(|sibling| identity.goes_too(sibling)) {
            return Ok(Vec::new());
        }
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let selector = format!("{}={}", keys::OWNER_NAME_LABEL, identity.owner_name);
        let listed = match timed(api.list_metadata(&ListParams::default().labels(&selector))).await {
            Err(error) if error.code() == FORBIDDEN => return Ok(Vec::new()),
            listed => listed,
        };
        let id = |name: &str| Id::of_kind::<CustomResourceDefinition>(name);
        let listed = listed.map_err(|source| EngineError::object(&id(&selector), "listing", source))?;
        let names = listed.items.iter().filter_map(|crd| crd.metadata.name.as_deref());
        Ok(names.map(id).collect())
    }
}

impl Revision {
    fn ids(&self) -> impl Iterator<Item = &Id> {
        let objects = self.phases.iter().flat_map(|phase| &phase.objects);
        objects.map(|object| &object.id)
    }
}

fn pointer<'a>(live: &'a DynamicObject, path: &str) -> Option<&'a str> {
    live.data.pointer(path)?.as_str()
}
