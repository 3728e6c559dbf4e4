//! Revisions in memory, for tests of the steps that change revisions.

use kube::ResourceExt as _;
use kube::core::Status;
use olm_api::keys;
use parking_lot::Mutex;

use super::{CallError, Change, ClusterExtension, ClusterObjectSet, Content, RevisionStore, Secret, Value};

/// Revisions in memory, and the purposes of all writes.
#[derive(Default)]
pub(crate) struct MemoryRevisions {
    revisions: Mutex<Vec<ClusterObjectSet>>,
    writes: Mutex<Vec<String>>,
    /// Earlier revisions that lists return until a revision is read; `None` if lists are up to date.
    shown: Mutex<Option<Vec<ClusterObjectSet>>>,
    extension: Option<ClusterExtension>,
}

impl MemoryRevisions {
    /// Creates a store with these revisions.
    pub(crate) fn new(revisions: Vec<ClusterObjectSet>) -> Self {
        Self {
            revisions: Mutex::new(revisions),
            ..Self::default()
        }
    }

    /// Makes lists return these earlier revisions until a revision is read, like a watch that is behind.
    pub(crate) fn behind(self, shown: Vec<ClusterObjectSet>) -> Self {
        *self.shown.lock() = Some(shown);
        self
    }

    /// Makes this the present state of the extension.
    pub(crate) fn of(self, extension: ClusterExtension) -> Self {
        Self {
            extension: Some(extension),
            ..self
        }
    }

    /// Returns the revisions, oldest first.
    pub(crate) fn all(&self) -> Vec<ClusterObjectSet> {
        let mut all = self.revisions.lock().clone();
        all.sort_by_key(|revision| revision.spec.revision);
        all
    }

    /// Takes the purposes of the writes so far.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock())
    }
}

impl RevisionStore for MemoryRevisions {
    async fn list(&self, extension: Option<&str>) -> Result<Vec<ClusterObjectSet>, CallError> {
        let shown = self.shown.lock().clone();
        let mut all = shown.unwrap_or_else(|| self.all());
        all.retain(|revision| {
            let owner = revision.labels().get(keys::OWNER_NAME_LABEL);
            extension.is_none_or(|extension| owner.is_some_and(|owner| owner == extension))
        });
        Ok(all)
    }

    async fn read(&self, name: &str) -> Result<Option<ClusterObjectSet>, CallError> {
        let mut all = self.all().into_iter();
        let found = all.find(|revision| revision.name_any() == name);
        if found.is_some() {
            *self.shown.lock() = None;
        }
        Ok(found)
    }

    async fn extension(&self, name: &str) -> Result<Option<ClusterExtension>, CallError> {
        let known = self.extension.as_ref();
        Ok(known.filter(|known| known.name_any() == name).cloned())
    }

    async fn content(&self, name: &str) -> Result<Option<Content>, CallError> {
        let found = self.read(name).await?;
        Ok(found.map(|revision| {
            let phases = revision.spec.phases.iter().flatten();
            let entries = phases.flat_map(|phase| &phase.objects);
            let objects = entries.filter_map(|entry| entry.object.clone()).collect();
            Content {
                revision,
                objects,
                missing: Vec::new(),
            }
        }))
    }

    async fn create(
        &self,
        purpose: String,
        revision: Value,
        _: Vec<Secret>,
    ) -> Result<ClusterObjectSet, CallError> {
        let created: ClusterObjectSet = serde_json::from_value(revision).unwrap();
        self.writes.lock().push(purpose.clone());
        let mut revisions = self.revisions.lock();
        if revisions
            .iter()
            .any(|found| found.name_any() == created.name_any())
        {
            return Err(CallError::Exists { what: purpose });
        }
        revisions.push(created.clone());
        Ok(created)
    }

    async fn change(&self, change: &Change) -> Result<ClusterObjectSet, CallError> {
        self.writes.lock().push(change.purpose.clone());
        let mut revisions = self.revisions.lock();
        let Some(found) = revisions.iter_mut().find(|found| found.name_any() == change.name) else {
            let gone = Status::failure("it is gone", "NotFound").with_code(404).boxed();
            return Err(CallError::Api {
                what: change.purpose.clone(),
                source: Box::new(kube::Error::Api(gone)),
            });
        };
        let uid = change.patch["metadata"]["uid"].as_str();
        if uid.is_some() && uid != found.metadata.uid.as_deref() {
            let other = Status::failure("the uid differs", "Conflict")
                .with_code(409)
                .boxed();
            return Err(CallError::Api {
                what: change.purpose.clone(),
                source: Box::new(kube::Error::Api(other)),
            });
        }
        let mut whole = serde_json::to_value(&*found).unwrap();
        merge(&mut whole, &change.patch);
        *found = serde_json::from_value(whole).unwrap();
        Ok(found.clone())
    }

    async fn delete(&self, purpose: String, name: &str, uid: Option<String>) -> Result<(), CallError> {
        self.writes.lock().push(purpose);
        let same = |found: &ClusterObjectSet| {
            found.name_any() == name && uid.as_ref().is_none_or(|uid| found.uid().as_ref() == Some(uid))
        };
        self.revisions.lock().retain(|found| !same(found));
        Ok(())
    }

    async fn clean(&self, _: &str, _: Option<&str>) -> Result<(), CallError> {
        Ok(())
    }
}

/// Applies a JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = serde_json::json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}
