//! The store of revisions: the only way from an extension to its ClusterObjectSets and the Secrets with their objects.
//!
//! The steps of a reconcile know revisions, their content and their changes, but not where revisions are kept. A store that
//! keeps them behind another kind, such as an object between the extension and its revisions, replaces [`ClusterRevisions`]
//! and no step. The controller of ClusterObjectSets is on the other side: it applies and archives what the store holds.

mod cluster;
mod deleted;
#[cfg(test)]
pub(crate) mod memory;

use k8s_openapi::api::core::v1::Secret;
use olm_api::{ClusterExtension, ClusterObjectSet};
use serde_json::Value;

use super::call::CallError;

pub(crate) use cluster::ClusterRevisions;

/// A revision with its objects, as far as they can be read.
#[derive(Debug)]
pub(crate) struct Content {
    /// The revision.
    pub revision: ClusterObjectSet,
    /// The objects, in the order of their phases.
    pub objects: Vec<Value>,
    /// Sentences that name the objects that are gone.
    pub missing: Vec<String>,
}

/// A change of a revision.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Purpose, for errors: `setting spec.paused of ClusterObjectSet "x-1"`.
    pub purpose: String,
    /// Name of the revision.
    pub name: String,
    /// JSON merge patch. A `metadata.uid` or `metadata.resourceVersion` in the patch is a precondition.
    pub patch: Value,
    /// True if the patch is for the status.
    pub status: bool,
}

/// Store of revisions. Each method is one purpose of a reconcile; errors name the purpose and the object.
///
/// A store tells what it has written: [`list`](Self::list) of an extension never returns a state before a write of this
/// process.
pub(crate) trait RevisionStore {
    /// Returns the revisions with the owner label of `extension`, in any order, those of a former extension of this name
    /// included; `None` returns those of all extensions, possibly outdated.
    async fn list(&self, extension: Option<&str>) -> Result<Vec<ClusterObjectSet>, CallError>;

    /// Reads a revision as it is now; `None` if it does not exist. [`list`](Self::list) returns no older state of it after that.
    async fn read(&self, name: &str) -> Result<Option<ClusterObjectSet>, CallError>;

    /// Reads an extension as it is now; `None` if it does not exist. The watch of extensions shows no older state of it after that. A
    /// revision that is missing from an earlier [`list`](Self::list) has left its [number](olm_decide::numbers) there.
    async fn extension(&self, name: &str) -> Result<Option<ClusterExtension>, CallError>;

    /// Reads a revision and its objects; `None` if the revision does not exist.
    async fn content(&self, name: &str) -> Result<Option<Content>, CallError>;

    /// Creates a revision with the Secrets that hold its objects, and returns it as stored. `purpose` is for errors.
    ///
    /// A revision in the store is complete: its objects are stored before it. An interrupted creation is repeated without
    /// harm, and what it left goes with the extension. A revision that exists is never changed, whoever created it: the result is
    /// [`CallError::Exists`], and the next [`list`](Self::list) has the revision if it belongs to the extension.
    async fn create(
        &self,
        purpose: String,
        revision: Value,
        secrets: Vec<Secret>,
    ) -> Result<ClusterObjectSet, CallError>;

    /// Changes a revision, and returns it as stored.
    async fn change(&self, change: &Change) -> Result<ClusterObjectSet, CallError>;

    /// Deletes a revision in the background; its objects follow by the controller of revisions. Succeeds if the revision does
    /// not exist. With `uid`, a new revision of the same name stays, and a deletion that [`list`](Self::list) does not show yet is not
    /// repeated. `purpose` is for errors.
    async fn delete(&self, purpose: String, name: &str, uid: Option<String>) -> Result<(), CallError>;

    /// Deletes the Secrets with objects of the extension with this uid, whose revisions are gone. Those of a new extension of the same
    /// name stay.
    async fn clean(&self, extension: &str, uid: Option<&str>) -> Result<(), CallError>;
}
