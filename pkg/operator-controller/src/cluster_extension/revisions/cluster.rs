//! Revisions on the cluster: ClusterObjectSets, and Secrets in the controller's namespace.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use olm_api::names::{Segment, fits_label};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::content::{self, SECRETS_AT_ONCE, SecretPlace};
use olm_applier::engine::NO_OBJECTS_VERSION;
use parking_lot::Mutex;
use serde_json::Value;

use super::deleted::Deleted;
use super::{Change, Content, RevisionStore};
use crate::cluster_extension::call::{CallError, call};
use crate::cluster_extension::gather::stores::Stores;
use crate::cluster_extension::secrets::SystemSecrets;

/// Revisions on the cluster. Lists come from the watch, if the watch has seen the last write.
pub(crate) struct ClusterRevisions {
    client: Client,
    system_namespace: Arc<str>,
    secrets: Arc<SystemSecrets>,
    /// Extensions for which this process wrote Secrets, or tried to.
    with_secrets: Mutex<HashSet<String>>,
    deleted: Deleted,
    watched: Arc<Stores>,
}

impl ClusterRevisions {
    /// Creates the store. `system_namespace` has the Secrets.
    pub(crate) fn new(
        client: Client,
        system_namespace: Arc<str>,
        secrets: Arc<SystemSecrets>,
        watched: Arc<Stores>,
    ) -> Self {
        Self {
            client,
            system_namespace,
            secrets,
            with_secrets: Mutex::default(),
            deleted: Deleted::default(),
            watched,
        }
    }

    fn sets(&self) -> Api<ClusterObjectSet> {
        Api::all(self.client.clone())
    }

    /// Creates a Secret, unless an interrupted attempt has created it, with the same content. A Secret of a former extension of
    /// this name, or of its revisions, is replaced.
    async fn create_secret(&self, secret: &Secret) -> Result<(), CallError> {
        let (stored, name) = (self.secrets.api(), secret.name_any());
        let create = async || {
            let what = format!("creating ref Secret \"{name}\"");
            call(what, stored.create(&PostParams::default(), secret)).await
        };
        let exists = match create().await {
            Err(error) if error.is_already_exists() => error,
            created => return created.map(drop),
        };
        let what = format!("reading ref Secret \"{name}\"");
        let found = call(what, stored.get_metadata_opt(&name)).await?;
        let Some(found) = found else {
            // The garbage collector has deleted the one of a former extension.
            return create().await.map(drop);
        };
        if belongs_to_another(secret, &found) || self.has_gone_revision(&found).await? {
            if !self.have_owners(secret).await? {
                return Err(exists);
            }
            self.delete_secret(&found).await?;
            create().await?;
        }
        Ok(())
    }

    /// Returns true if the Secret belongs to a revision that is gone: the garbage collector is about to delete the Secret.
    async fn has_gone_revision(&self, secret: &PartialObjectMeta<Secret>) -> Result<bool, CallError> {
        for owner in secret
            .owner_references()
            .iter()
            .filter(|owner| is_revision(owner))
        {
            let Ok(name) = Segment::new(&owner.name) else {
                return Ok(true);
            };
            let what = format!("reading ClusterObjectSet \"{}\"", &*name);
            let found = call(what, self.sets().get_metadata_opt(&name)).await?;
            if found.and_then(|found| found.uid()).as_ref() != Some(&owner.uid) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if the extensions that own the Secret exist now. A Secret that was read before and has an owner of the same name
    /// with another uid then belongs to a former extension. Otherwise this process is late, and the Secret belongs to a newer one.
    async fn have_owners(&self, secret: &Secret) -> Result<bool, CallError> {
        for owner in secret.owner_references() {
            if !self.is_extension(&owner.name, Some(&owner.uid)).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if the extension `name` exists now and has this uid.
    async fn is_extension(&self, name: &str, uid: Option<&str>) -> Result<bool, CallError> {
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let what = format!("reading ClusterExtension \"{name}\"");
        let found = call(what, extensions.get_metadata_opt(name)).await?;
        Ok(found.is_some_and(|found| found.metadata.uid.as_deref() == uid))
    }

    async fn secret(&self, place: SecretPlace) -> Result<(SecretPlace, Option<Secret>), CallError> {
        let what = format!("reading Secret {place}");
        let secret = call(what, content::secret(&self.client, &place)).await?;
        Ok((place, secret))
    }

    async fn delete_secret(&self, secret: &PartialObjectMeta<Secret>) -> Result<(), CallError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: secret.uid(),
                resource_version: secret.resource_version(),
            }),
            ..DeleteParams::background()
        };
        let name = secret.name_any();
        let what = format!("deleting Secret \"{name}\"");
        match call(what, self.secrets.api().delete(&name, &params)).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads a revision.
    async fn get(&self, name: &str) -> Result<Option<ClusterObjectSet>, CallError> {
        let what = format!("reading ClusterObjectSet \"{name}\"");
        call(what, self.sets().get_opt(name)).await
    }

    /// Records a write, or a read of what another process wrote, so that an older state of the watch is not used.
    fn wrote(&self, revision: &ClusterObjectSet) {
        if let Some(extension) = revision.labels().get(keys::OWNER_NAME_LABEL) {
            self.watched.wrote_revision(extension, revision);
        }
    }
}

impl RevisionStore for ClusterRevisions {
    async fn list(&self, extension: Option<&str>) -> Result<Vec<ClusterObjectSet>, CallError> {
        let known = match extension {
            Some(name) => self.watched.revisions(name),
            None => self.watched.all_revisions(),
        };
        self.deleted.sweep();
        if let Some(known) = known {
            return Ok(known);
        }
        // No object carries a label with a longer name.
        if extension.is_some_and(|name| !fits_label(name)) {
            return Ok(Vec::new());
        }
        let what = match extension {
            Some(name) => format!("listing the ClusterObjectSets of ClusterExtension \"{name}\""),
            None => "listing the ClusterObjectSets".to_owned(),
        };
        let selector = keys::selector_of_extension(extension);
        let list = call(what, self.sets().list(&ListParams::default().labels(&selector))).await?;
        if let Some(name) = extension {
            self.watched.listed(name, &list.items);
        }
        Ok(list.items)
    }

    async fn read(&self, name: &str) -> Result<Option<ClusterObjectSet>, CallError> {
        let Ok(name) = Segment::new(name) else {
            return Ok(None);
        };
        let found = self.get(&name).await?;
        if let Some(revision) = &found {
            self.wrote(revision);
        }
        Ok(found)
    }

    async fn extension(&self, name: &str) -> Result<Option<ClusterExtension>, CallError> {
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let what = format!("reading ClusterExtension \"{name}\"");
        let found = call(what, extensions.get_opt(name)).await?;
        if let Some(found) = &found {
            // The watch, which may be behind, must not take the next pass back to before this state.
            self.watched.wrote(found);
        }
        Ok(found)
    }

    async fn content(&self, name: &str) -> Result<Option<Content>, CallError> {
        let Some(revision) = self.get(name).await? else {
            return Ok(None);
        };
        let system = &self.system_namespace;
        let reads: Vec<_> = content::places(&revision, system)
            .into_iter()
            .map(|place| self.secret(place).boxed())
            .collect();
        let secrets: BTreeMap<SecretPlace, Option<Secret>> = send_all(reads).await?;
        let (mut objects, mut missing) = (Vec::new(), Vec::new());
        let phases = revision.spec.phases.iter().flatten();
        for entry in phases.flat_map(|phase| &phase.objects) {
            objects.extend(entry.object.clone());
            let Some(reference) = &entry.ref_ else { continue };
            let place = SecretPlace::of(reference, system);
            let secret = secrets.get(&place).and_then(Option::as_ref);
            match content::object(reference, &place, secret) {
                Ok(object) => objects.push(object),
                Err(_) => missing.push(format!(
                    "object \"{}\" of revision \"{name}\": Secret {place} is gone or has no such object",
                    reference.key,
                )),
            }
        }
        Ok(Some(Content {
            revision,
            objects,
            missing,
        }))
    }

    async fn create(
        &self,
        purpose: String,
        mut revision: Value,
        secrets: Vec<Secret>,
    ) -> Result<ClusterObjectSet, CallError> {
        if let Some(extension) = extension_of(&revision).filter(|_| !secrets.is_empty()) {
            self.with_secrets.lock().insert(extension.to_owned());
        }
        let owners = owners_of(&revision);
        let creations: Vec<_> = secrets
            .into_iter()
            .map(|mut secret| {
                secret.metadata.owner_references = Some(owners.clone());
                async move { self.create_secret(&secret).await }.boxed()
            })
            .collect();
        send_all::<_, ()>(creations).await?;
        // A process that no longer leads can be late with its creation.
        revision["metadata"]["resourceVersion"] = NO_OBJECTS_VERSION.into();
        let name = revision["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams::apply(keys::EXTENSION_FIELD_MANAGER).force();
        let (sets, body) = (self.sets(), Patch::Apply(&revision));
        match call(purpose.clone(), sets.patch(name, &params, &body)).await {
            Ok(created) => {
                // The controller of revisions makes the Secrets go with the revision as soon as it reads them.
                self.wrote(&created);
                Ok(created)
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => {
                if let Some(extension) = extension_of(&revision) {
                    self.watched.unseen_revision(extension, name);
                }
                Err(CallError::Exists { what: purpose })
            }
            Err(error) => Err(error),
        }
    }

    async fn change(&self, change: &Change) -> Result<ClusterObjectSet, CallError> {
        let Change {
            purpose,
            name,
            patch,
            status,
        } = change;
        let (sets, patch) = (self.sets(), Patch::Merge(patch));
        let changed = if *status {
            call(purpose, sets.patch_status(name, &PatchParams::default(), &patch)).await?
        } else {
            let params = PatchParams {
                field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            call(purpose, sets.patch(name, &params, &patch)).await?
        };
        self.wrote(&changed);
        Ok(changed)
    }

    async fn delete(&self, purpose: String, name: &str, uid: Option<String>) -> Result<(), CallError> {
        if uid.as_ref().is_some_and(|uid| self.deleted.has(uid)) {
            return Ok(());
        }
        let params = DeleteParams {
            preconditions: uid.clone().map(|uid| Preconditions {
                uid: Some(uid),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match call(purpose, self.sets().delete(name, &params)).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        if let Some(uid) = uid {
            self.deleted.note(uid);
        }
        Ok(())
    }

    async fn clean(&self, extension: &str, uid: Option<&str>) -> Result<(), CallError> {
        if !fits_label(extension) {
            return Ok(());
        }
        let ours = ListParams::default()
            .labels(&format!("{}={extension}", keys::OWNER_NAME_LABEL))
            .fields(&format!("type={}", keys::OBJECT_DATA_SECRET_TYPE));
        let what = format!("listing the object Secrets of ClusterExtension \"{extension}\"");
        let wrote = self.with_secrets.lock().contains(extension);
        let left = self.secrets.list_metadata(what, ours, wrote).await?;
        // A process that no longer leads can be late with its list. Then the garbage collector deletes what the extension has left.
        if !left.is_empty() && self.is_extension(extension, uid).await? {
            let deletions: Vec<_> = left
                .iter()
                .map(|secret| self.delete_secret(secret).boxed())
                .collect();
            send_all::<_, ()>(deletions).await?;
        }
        self.with_secrets.lock().remove(extension);
        Ok(())
    }
}

/// Sends requests about Secrets, at most [`SECRETS_AT_ONCE`] at once, until one fails.
async fn send_all<T, C: Default + Extend<T>>(
    requests: Vec<BoxFuture<'_, Result<T, CallError>>>,
) -> Result<C, CallError> {
    stream::iter(requests)
        .buffered(SECRETS_AT_ONCE)
        .try_collect()
        .await
}

/// Returns the name of the extension of a revision.
fn extension_of(revision: &Value) -> Option<&str> {
    revision["metadata"]["labels"][keys::OWNER_NAME_LABEL].as_str()
}

/// Returns the owners of a revision. They own its Secrets until the revision exists and owns these itself: a Secret whose creation arrives
/// after the end of its extension, or whose revision is never created, goes with the extension.
fn owners_of(revision: &Value) -> Vec<OwnerReference> {
    let owners = &revision["metadata"]["ownerReferences"];
    serde_json::from_value(owners.clone()).unwrap_or_default()
}

fn is_revision(owner: &OwnerReference) -> bool {
    owner.kind == ClusterObjectSet::kind(&())
}

/// Returns true if a Secret that exists belongs to another extension of the same name, with which the garbage collector deletes it.
fn belongs_to_another(wanted: &Secret, found: &PartialObjectMeta<Secret>) -> bool {
    let owners = wanted.owner_references();
    let mut others = found.owner_references().iter();
    others.any(|other| {
        let same_name = |owner: &&OwnerReference| (&owner.kind, &owner.name) == (&other.kind, &other.name);
        owners
            .iter()
            .find(same_name)
            .is_some_and(|owner| owner.uid != other.uid)
    })
}

#[cfg(test)]
mod tests;
