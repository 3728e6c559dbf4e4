//! Brings the objects of a revision to the cluster, phase by phase, and takes them away in the reverse order.
//!
//! Invariants: nothing of a phase is created before every object of it was accepted in a dry run; a phase is begun only when the one
//! before is ready; what is unchanged since it was applied is neither read nor written again; nothing is deleted that is not this
//! revision's.

mod apply;
mod call;
mod error;
mod teardown;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use olm_api::CollisionProtection;
use parking_lot::Mutex;
use serde_json::Value;

pub use call::CallError;
pub use error::{EngineError, chain};
pub use teardown::Teardown;

use crate::ownership::Identity;
use crate::plan::group_kind;
use crate::probe::{Prober, Verdict};
use crate::watch::{Kind, Watches};
use call::timed;

/// A revision with all its objects at hand.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Who acts.
    pub identity: Identity,
    /// The phases in order.
    pub phases: Vec<RevisionPhase>,
    /// When an object is ready.
    pub prober: Prober,
}

/// A phase of a revision.
#[derive(Clone, Debug)]
pub struct RevisionPhase {
    /// Its name.
    pub name: String,
    /// Objects and what may be done when they exist already.
    pub objects: Vec<(Value, CollisionProtection)>,
}

/// What applying a revision came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Every phase is applied and ready.
    pub complete: bool,
    /// A newer revision has taken some of the objects.
    pub superseded: bool,
    /// The first object that is not ready of every phase begun: `Object <kind> <name>: <messages>`.
    pub failing: Vec<String>,
    /// Place of the phase with objects of somebody else, and a report on each.
    pub collision: Option<(usize, Vec<String>)>,
}

/// Names an object in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Id {
    pub(crate) fn of(object: &Value) -> Self {
        let (group, kind) = group_kind(object);
        let api_version = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let meta = |key: &str| {
            let value = object.get("metadata").and_then(|m| m.get(key));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        // Bundles give their webhook configurations a namespace, which means nothing there: the whole group is cluster-scoped.
        let namespace = match group.as_str() {
            "admissionregistration.k8s.io" => String::new(),
            _ => meta("namespace"),
        };
        Self {
            name: meta("name"),
            group,
            version,
            kind,
            namespace,
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn watch_kind(&self) -> Kind {
        (self.group.clone(), self.version.clone(), self.kind.clone())
    }

    /// `namespace/name`, or `name` alone for a cluster-scoped object.
    pub(crate) fn path(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// As in the reports on probes and collisions: `<Kind>.<group/version> <namespace>/<name>`.
    pub(crate) fn report(&self) -> String {
        format!(
            "{}.{} {}/{}",
            self.kind,
            self.api_version(),
            self.namespace,
            self.name
        )
    }
}

/// What is remembered of an object after it was applied.
#[derive(Clone, Debug)]
struct Remembered {
    desired: u64,
    uid: String,
    version: String,
    fingerprint: u64,
    verdict: Verdict,
    /// When fields were taken back from another field manager.
    forced: Vec<Instant>,
}

type Memory = HashMap<String, BTreeMap<(Kind, String), Remembered>>;

/// Applies revisions and takes them down.
pub struct Engine {
    client: Client,
    watches: Arc<Watches>,
    kinds: Mutex<HashMap<Kind, (ApiResource, Scope)>>,
    memory: Mutex<Memory>,
}

impl Engine {
    /// An engine that remembers nothing yet.
    #[must_use]
    pub fn new(client: Client, watches: Arc<Watches>) -> Self {
        Self {
            client,
            watches,
            kinds: Mutex::default(),
            memory: Mutex::default(),
        }
    }

    /// Drops all that is kept for the revision with this uid: its watches and what was applied.
    pub fn forget(&self, uid: &str) {
        self.memory.lock().remove(uid);
        self.watches.release(uid);
    }

    fn recall(&self, uid: &str, id: &Id) -> Option<Remembered> {
        self.memory
            .lock()
            .get(uid)?
            .get(&(id.watch_kind(), id.path()))
            .cloned()
    }

    fn remember(&self, uid: &str, id: &Id, what: Remembered) {
        self.memory
            .lock()
            .entry(uid.to_owned())
            .or_default()
            .insert((id.watch_kind(), id.path()), what);
    }

    /// The API that serves the object, asked of the API server once per kind.
    async fn api(&self, id: &Id) -> Result<(Api<DynamicObject>, ApiResource), EngineError> {
        let kind = id.watch_kind();
        let known = self.kinds.lock().get(&kind).cloned();
        let (resource, scope) = if let Some(known) = known {
            known
        } else {
            let gvk = GroupVersionKind::gvk(&id.group, &id.version, &id.kind);
            let found = timed(discovery::pinned_kind(&self.client, &gvk)).await;
            let (resource, capabilities) = found.map_err(|source| EngineError::kind(id, source))?;
            let found = (resource, capabilities.scope);
            self.kinds.lock().insert(kind, found.clone());
            found
        };
        let api = match (&scope, id.namespace.is_empty()) {
            (Scope::Namespaced, false) => Api::namespaced_with(self.client.clone(), &id.namespace, &resource),
            (Scope::Cluster, true) => Api::all_with(self.client.clone(), &resource),
            (Scope::Namespaced, true) => {
                return Err(EngineError::scope(id, "needs a namespace and has none"));
            }
            (Scope::Cluster, false) => {
                return Err(EngineError::scope(
                    id,
                    "is cluster-scoped and must not have a namespace",
                ));
            }
        };
        Ok((api, resource))
    }

    /// Forgets how a kind is served, after the API server said it is not.
    fn forget_kind(&self, id: &Id) {
        self.kinds.lock().remove(&id.watch_kind());
    }
}
