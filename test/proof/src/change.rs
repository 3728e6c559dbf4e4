//! Changes that an API server accepted, and violations of the invariants by them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Sender of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A controller under test, with the number of its process. The processes of a run are numbered from 0.
    Controller(u32),
    /// Anybody else, such as a user, the garbage collector or the API server, with a name for messages.
    Other(String),
}

/// Identity of an object without its uid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} \"{namespace}/{}\"", self.kind, self.name),
            None => write!(f, "{} \"{}\"", self.kind, self.name),
        }
    }
}

/// Preconditions of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Uid that the object must have.
    pub uid: Option<String>,
    /// Resource version that the object must have.
    pub resource_version: Option<String>,
}

/// A change of an object that the API server accepted. A dry run causes no change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Sender of the request.
    pub actor: Actor,
    /// The object.
    pub object: ObjectKey,
    /// The object before; `None` for a creation.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` if it is gone. The deletion of an object with finalizers leaves an object with a deletion
    /// timestamp.
    pub after: Option<Arc<Value>>,
    /// Preconditions of the request if it is a deletion; `None` for every other request.
    pub deletion: Option<Preconditions>,
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Violation {
    /// Name of the invariant, as docs/proof.md lists it.
    pub invariant: String,
    /// Seed or schedule that reproduces the violation; the invariants leave it empty, and the run fills it in.
    pub seed: String,
    /// Sentence about the violation that names the objects.
    pub text: String,
}
