//! Revisions on the cluster: ClusterObjectSets, and Secrets in the controller's namespace.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::content::{self, SecretPlace};
use olm_applier::engine::NO_OBJECTS_VERSION;
use parking_lot::Mutex;
use serde_json::Value;

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
            watched,
        }
    }

    fn sets(&self) -> Api<ClusterObjectSet> {
        Api::all(self.client.clone())
    }

    /// Creates a Secret, unless an interrupted attempt has created it, with the same content. A Secret of a former extension of
    /// this name is replaced.
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
        if let Some(found) = found.filter(|found| belongs_to_another(secret, found)) {
            if !self.have_owners(secret).await? {
                return Err(exists);
            }
            self.delete_secret(&found).await?;
            create().await?;
        }
        Ok(())
    }

    /// Returns true if the extensions that own the Secret exist now. A Secret that was read before and has an owner of the same name
    /// with another uid then belongs to a former extension. Otherwise this process is late, and the Secret belongs to a newer one.
    async fn have_owners(&self, secret: &Secret) -> Result<bool, CallError> {
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        for owner in secret.owner_references() {
            let what = format!("reading ClusterExtension \"{}\"", owner.name);
            let found = call(what, extensions.get_metadata_opt(&owner.name)).await?;
            if found.and_then(|found| found.uid()).as_ref() != Some(&owner.uid) {
                return Ok(false);
            }
        }
        Ok(true)
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

    /// Records a write, so that an older state of the watch is not used.
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
        if let Some(known) = known {
            return Ok(known);
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

    async fn content(&self, name: &str) -> Result<Option<Content>, CallError> {
        let what = format!("reading ClusterObjectSet \"{name}\"");
        let Some(revision) = call(what, self.sets().get_opt(name)).await? else {
            return Ok(None);
        };
        let system = &self.system_namespace;
        let mut secrets = BTreeMap::new();
        for place in content::places(&revision, system) {
            let what = format!("reading Secret {place}");
            let secret = call(what, content::secret(&self.client, &place)).await?;
            secrets.insert(place, secret);
        }
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
        for mut secret in secrets {
            secret.metadata.owner_references = Some(owners.clone());
            self.create_secret(&secret).await?;
        }
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
        let params = DeleteParams {
            preconditions: uid.map(|uid| Preconditions {
                uid: Some(uid),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match call(purpose, self.sets().delete(name, &params)).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    async fn clean(&self, extension: &str) -> Result<(), CallError> {
        let ours = ListParams::default()
            .labels(&format!("{}={extension}", keys::OWNER_NAME_LABEL))
            .fields(&format!("type={}", keys::OBJECT_DATA_SECRET_TYPE));
        let what = format!("listing the object Secrets of ClusterExtension \"{extension}\"");
        let wrote = self.with_secrets.lock().contains(extension);
        for secret in self.secrets.list_metadata(what, ours, wrote).await? {
            self.delete_secret(&secret).await?;
        }
        self.with_secrets.lock().remove(extension);
        Ok(())
    }
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
mod tests {
    use http::{Method, Request, Response};
    use kube::client::Body;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    const SYSTEM: &str = "system";
    /// An API server: method, path and body of a request in, status code and body of the answer out.
    type Answers = fn(&Method, &str, &Value) -> (u16, Value);
    /// Requests so far, as method and path.
    type Requests = Arc<Mutex<Vec<String>>>;

    /// Returns a store whose watch shows no revision.
    fn store(answers: Answers) -> (ClusterRevisions, Requests) {
        let requests = Requests::default();
        let asked = Arc::clone(&requests);
        let service = tower::service_fn(move |request: Request<Body>| {
            let asked = Arc::clone(&asked);
            async move {
                let (head, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                let path = head.uri.path();
                asked.lock().push(format!("{} {path}", head.method));
                let (code, answer) = answers(&head.method, path, &body);
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        let client = Client::new(service, "default");
        let (stores, mut writers) = Stores::new();
        for event in [Event::Init, Event::InitDone] {
            writers.revisions.apply_watcher_event(&event);
            stores.follow_revision(&event);
        }
        let secrets = SystemSecrets::new(client.clone(), SYSTEM);
        (
            ClusterRevisions::new(client, SYSTEM.into(), secrets, Arc::new(stores)),
            requests,
        )
    }

    fn failure(code: u16, reason: &str) -> (u16, Value) {
        (
            code,
            json!({"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code}),
        )
    }

    fn owner(kind: &str, name: &str, uid: &str) -> Value {
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": name, "uid": uid})
    }

    fn revision() -> Value {
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "labels": {keys::OWNER_NAME_LABEL: "x"}, "ownerReferences": [owner("ClusterExtension", "x", "2")]},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        })
    }

    #[tokio::test]
    async fn a_revision_that_exists_stays_and_is_listed() {
        let (store, requests) = store(|method, _, body| {
            if *method == Method::GET {
                return (
                    200,
                    json!({"metadata": {"resourceVersion": "9"}, "items": [revision()]}),
                );
            }
            assert_eq!(
                body["metadata"]["resourceVersion"], "1",
                "an apply changes what exists"
            );
            failure(409, "Conflict")
        });
        assert_eq!(store.list(Some("x")).await.unwrap(), []);
        assert_eq!(requests.lock().len(), 0, "the watch answers");
        let created = store
            .create("creating x-1".to_owned(), revision(), Vec::new())
            .await;
        assert!(
            matches!(&created, Err(CallError::Exists { what }) if what == "creating x-1"),
            "{created:?}"
        );
        let listed = store.list(Some("x")).await.unwrap();
        assert_eq!(listed.len(), 1, "the watch is behind: {:?}", requests.lock());
    }

    #[tokio::test]
    async fn a_late_process_spares_the_secret_of_a_newer_extension() {
        let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "x-1-aa"}})).unwrap();
        // The Secret belongs to an extension with another uid; the extension of the pass exists, or is gone.
        for (answers, deletes) in [(former as Answers, true), (newer as Answers, false)] {
            let (store, requests) = store(answers);
            let created = store
                .create("creating x-1".to_owned(), revision(), vec![secret.clone()])
                .await;
            assert!(created.is_err());
            let deleted = requests
                .lock()
                .iter()
                .any(|request| request.starts_with("DELETE"));
            assert_eq!(deleted, deletes, "{:?}", requests.lock());
        }
    }

    fn former(method: &Method, path: &str, body: &Value) -> (u16, Value) {
        among("2", method, path, body)
    }

    fn newer(method: &Method, path: &str, body: &Value) -> (u16, Value) {
        among("3", method, path, body)
    }

    /// Answers for an extension with this uid, and a Secret of another one.
    fn among(extension: &str, method: &Method, path: &str, _: &Value) -> (u16, Value) {
        match *method {
            Method::POST => failure(409, "AlreadyExists"),
            Method::GET if path.contains("/secrets/") => (
                200,
                json!({"metadata": {"name": "x-1-aa", "uid": "s", "resourceVersion": "5",
                    "ownerReferences": [owner("ClusterExtension", "x", if extension == "2" { "1" } else { "3" })]}}),
            ),
            Method::GET => (200, json!({"metadata": {"name": "x", "uid": extension}})),
            _ => (200, json!({"kind": "Status", "status": "Success"})),
        }
    }

    #[test]
    fn a_secret_of_another_extension_is_told_by_the_uid_of_its_owner() {
        let metadata = |owners: &[Value]| json!({"metadata": {"name": "x-1-aa", "ownerReferences": owners}});
        let wanted: Secret =
            serde_json::from_value(metadata(&[owner("ClusterExtension", "x", "2")])).unwrap();
        let another = |owners: &[Value]| {
            belongs_to_another(&wanted, &serde_json::from_value(metadata(owners)).unwrap())
        };
        assert!(another(&[owner("ClusterExtension", "x", "1")]));
        assert!(
            !another(&[owner("ClusterExtension", "x", "2")]),
            "an interrupted attempt"
        );
        assert!(
            !another(&[owner("ClusterObjectSet", "x-1", "3")]),
            "the revision owns it"
        );
        assert!(!another(&[]), "an earlier release of the controller set no owner");
    }
}
