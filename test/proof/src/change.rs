//! One accepted change of an object.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Sender of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A controller that is under test. Processes of one run are numbered from 0.
    Controller(u32),
    /// Anybody else, with a name for messages: a user, the garbage collector, the API server.
    Other(String),
}

/// Identity of an object apart from its uid.
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

/// A change that the API server accepted. A dry run is none.
#[derive(Clone, Debug)]
pub struct Change {
    /// Sender of the request.
    pub actor: Actor,
    /// The object.
    pub object: ObjectKey,
    /// The object before; `None` for a creation.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` if it is gone. An object with finalizers that is being deleted has an `after` with a deletion timestamp.
    pub after: Option<Arc<Value>>,
    /// Preconditions of the request if it is a deletion; `None` for every other request.
    pub deletion: Option<Preconditions>,
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Violation {
    /// Name of the invariant, as docs/proof.md lists it.
    pub invariant: String,
    /// Seed or schedule that shows it; empty if the caller adds it.
    pub seed: String,
    /// One sentence that names the objects.
    pub text: String,
}
