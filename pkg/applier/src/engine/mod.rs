//! Engine that applies the objects of a revision phase by phase, and removes them in the reverse order.
//!
//! Invariants: an object of a phase is written only after the state of all objects of the phase is known; a phase starts
//! only when the previous one is ready; an unchanged object of this revision is neither read nor written again, whereas a pass reads
//! each object that a newer revision has taken over; only objects of this revision are deleted.

mod adopted;
mod adoption;
mod aggregated;
mod apply;
mod call;
mod custom_resources;
mod endpoint;
mod error;
mod impersonate;
mod namespace;
mod prepared;
mod request;
mod teardown;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::ApiResource;
use kube::discovery::Scope;
use kube::{Client, Resource};
use olm_api::CustomResourcePolicy;
use olm_text::object::ObjectId;
use olm_text::{cut, printable};
use parking_lot::Mutex;
use serde_json::Value;

pub use call::CallError;
pub use custom_resources::count_custom_resources;
pub use error::{EngineError, chain};
pub use impersonate::impersonate;
pub use prepared::PreparedObject;
pub use request::NO_OBJECTS_VERSION;
pub use teardown::{Teardown, TeardownPass};

use crate::account::Account;
use crate::ownership::Identity;
use crate::pods::Pods;
use crate::probe::{ProbeResult, Prober};
use crate::watch::{Kind, WatchState, Watches, is_older, now};

/// Maximum length of a name in a message, in bytes: at least that of any valid Kubernetes name.
const MAX_NAME: usize = 253;
/// Maximum number of cached clients of service accounts.
const MAX_CLIENTS: usize = 256;

/// A revision with all its objects.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The revision that acts.
    pub identity: Identity,
    /// Hash of the parts of the ClusterObjectSet whose change requires a new look at all objects.
    pub state: u64,
    /// The phases in order.
    pub phases: Arc<Vec<RevisionPhase>>,
    /// Readiness probes.
    pub prober: Prober,
    /// Service account for writes; `None` for the controller's own rights.
    pub account: Option<Account>,
    /// Policy for CRDs that hold custom resources at a teardown.
    pub custom_resources: CustomResourcePolicy,
    /// True if the objects are only read and probed.
    pub observe: bool,
}

/// A phase of a revision.
#[derive(Clone, Debug)]
pub struct RevisionPhase {
    /// Name.
    pub name: String,
    /// Objects in their final form.
    pub objects: Vec<PreparedObject>,
}

/// Result of applying a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Every phase is applied and ready.
    pub complete: bool,
    /// A newer revision has taken over some of the objects.
    pub superseded: bool,
    /// First unready object of each started phase: `Object <kind> <name>: <messages>`.
    pub failing: Vec<String>,
    /// Time for which the first unready phase has lacked nothing but current statuses; `None` if it is not ready for another
    /// reason, too. The phases after it were not looked at.
    pub outdated: Option<Duration>,
    /// Reason that the pods of an unready workload give, as one sentence.
    pub reason: Option<String>,
    /// Objects that others changed or deleted after they were applied: `<kind> <name>`.
    pub repaired: Vec<String>,
    /// Index of the phase with collisions, and one report per colliding object.
    pub collision: Option<(usize, Vec<String>)>,
    /// Delay before the revision is to be applied again, if it waits for something that no event announces.
    pub recheck: Option<Duration>,
}

/// Identity of an object.
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
        let id = ObjectId::of(object);
        Self {
            group: id.group.to_owned(),
            version: id.version.to_owned(),
            kind: id.kind.to_owned(),
            namespace: id.stored_namespace().to_owned(),
            name: id.name.to_owned(),
        }
    }

    /// Returns the identity of an object without a namespace.
    fn of_kind<K: Resource<DynamicType = ()>>(name: &str) -> Self {
        let resource = ApiResource::erase::<K>(&());
        Self {
            group: resource.group,
            version: resource.version,
            kind: resource.kind,
            namespace: String::new(),
            name: name.to_owned(),
        }
    }

    fn is_crd(&self) -> bool {
        let id = ObjectId {
            group: &self.group,
            version: &self.version,
            kind: &self.kind,
            namespace: &self.namespace,
            name: &self.name,
        };
        id.is_crd()
    }

    fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Returns true for the kinds that can stay when their revision is removed, because they hold objects of others.
    fn can_stay(&self) -> bool {
        self.is_crd() || self.is_namespace()
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

    /// Returns `namespace/name`, or `name` for a cluster-scoped object.
    pub(crate) fn path(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Returns `<Kind>.<group/version> <namespace>/<name>`, the format of the reports on probes and collisions.
    pub(crate) fn report(&self) -> String {
        let (kind, api_version) = (printable_name(&self.kind), self.api_version());
        let (namespace, name) = (printable_name(&self.namespace), printable_name(&self.name));
        format!("{kind}.{} {namespace}/{name}", printable_name(&api_version))
    }
}

/// Formats a foreign name for messages.
fn printable_name(name: &str) -> String {
    printable(&cut(name, MAX_NAME)).into_owned()
}

/// Cached state of an object after it was applied.
#[derive(Clone, Debug)]
struct AppliedObject {
    desired: u64,
    uid: String,
    resource_version: String,
    fingerprint: u64,
    probe: ProbeResult,
    /// Time of the first of the successive reads at which nothing but the age of the status failed.
    outdated: Option<Instant>,
    /// True if a probe reads the status.
    probed: bool,
    /// Time of the last read or write.
    at: Instant,
    repairs: Repairs,
}

/// Times of the repairs of an object within the last minute.
#[derive(Clone, Debug, Default)]
struct Repairs {
    /// Repairs that took fields over from another field manager.
    takeovers: Vec<Instant>,
    /// Other repairs: of removed fields, and of deleted objects.
    others: Vec<Instant>,
}

impl AppliedObject {
    /// Returns true if the watch reports no relevant change. An object without a working watch counts as unchanged
    /// for `interval` after its last read.
    fn is_current(&self, watch_state: &WatchState, interval: Duration) -> bool {
        let version = match watch_state {
            WatchState::Present(version) => version,
            WatchState::Deleted => return false,
            // The object was written after the list: its event is still to come.
            WatchState::NeverSeen(listed) => return self.at > *listed,
            WatchState::Unknown => return self.probe.ready && now().duration_since(self.at) < interval,
        };
        if self.uid != version.uid {
            return false;
        }
        let same = self.resource_version == version.resource_version
            || is_older(&version.resource_version, &self.resource_version);
        same || self.fingerprint == version.fingerprint && self.probe.ready && !self.probed
    }
}

/// State of an object that a teardown is done with.
#[derive(Clone, Debug)]
enum Removed {
    /// The object with this uid was deleted.
    Deleted(Option<String>),
    /// There was no object.
    Absent,
}

/// Cached state of a revision.
#[derive(Debug, Default)]
struct RevisionCache {
    /// Objects by kind and path. Boxed, as a node of the tree has room for eleven, and most revisions have a few objects.
    objects: BTreeMap<(Kind, String), Box<AppliedObject>>,
    /// Objects that a teardown is done with.
    removed: BTreeMap<(Kind, String), Removed>,
    /// [`Revision::state`] for which all objects were applied and ready.
    complete_state: Option<u64>,
    /// Names of the APIServices whose kinds clients can discover.
    discovered: BTreeSet<String>,
}

type Cache = HashMap<String, RevisionCache>;

/// Engine that applies revisions and tears them down.
pub struct Engine {
    client: Client,
    watches: Arc<Watches>,
    kinds: Mutex<HashMap<Kind, (ApiResource, Scope)>>,
    cache: Mutex<Cache>,
    impersonated: Mutex<HashMap<Account, Client>>,
    reads: Reads,
    pods: Pods,
}

/// Rights for reading objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// The controller's own rights.
    #[default]
    AsController,
    /// Rights of the revision's service account, as for writes.
    AsAccount,
}

impl Engine {
    /// Returns an engine with an empty cache.
    #[must_use]
    pub fn new(client: Client, watches: Arc<Watches>) -> Self {
        Self {
            client,
            pods: Pods::new(watches.triggers()),
            watches,
            kinds: Mutex::default(),
            cache: Mutex::default(),
            impersonated: Mutex::default(),
            reads: Reads::default(),
        }
    }

    /// Returns the engine with other rights for reads. Watches keep the controller's rights.
    #[must_use]
    pub fn with_reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// Returns the cached client that impersonates `account`.
    fn impersonated(&self, account: &Account) -> Result<Client, EngineError> {
        let mut impersonated = self.impersonated.lock();
        if let Some(client) = impersonated.get(account) {
            return Ok(client.clone());
        }
        let client = impersonate(&self.client, account).map_err(|_| self.missing_account(account))?;
        if impersonated.len() >= MAX_CLIENTS {
            impersonated.clear();
        }
        impersonated.insert(account.clone(), client.clone());
        Ok(client)
    }

    fn missing_account(&self, account: &Account) -> EngineError {
        EngineError::MissingAccount {
            account: account.clone(),
            alternative: match self.reads {
                Reads::AsController => {
                    "clear spec.serviceAccount of the ClusterExtension to continue with the controller's own rights"
                }
                Reads::AsAccount => {
                    "clear spec.serviceAccount of the ClusterExtension, then set it to another ServiceAccount"
                }
            },
        }
    }

    /// Drops the watches and the cache of the revision with this uid.
    pub fn forget(&self, uid: &str) {
        self.cache.lock().remove(uid);
        self.watches.release(uid);
        self.pods.release(uid);
    }

    /// Returns true if the revision with this uid was complete in `state` and its watches report no change since.
    /// Sends no request.
    #[must_use]
    pub fn idle(&self, uid: &str, state: u64) -> bool {
        let cache = self.cache.lock();
        let Some(cached) = cache
            .get(uid)
            .filter(|cached| cached.complete_state == Some(state))
        else {
            return false;
        };
        let interval = self.interval(&cache);
        cached.objects.iter().all(|((kind, path), object)| {
            let (namespace, name) = path.split_once('/').unwrap_or(("", path));
            object.is_current(&self.watches.state(kind, namespace, name), interval)
        })
    }

    /// Returns the time until the revision with this uid must be read again without an event; `None` if working
    /// watches cover all its kinds.
    #[must_use]
    pub fn recheck(&self, uid: &str) -> Option<Duration> {
        let cache = self.cache.lock();
        let kinds: BTreeSet<&Kind> = cache.get(uid)?.objects.keys().map(|(kind, _)| kind).collect();
        let unreliable = kinds.into_iter().any(|kind| !self.watches.is_reliable(kind));
        unreliable.then(|| self.interval(&cache))
    }

    /// Returns the read interval of objects without a working watch.
    fn interval(&self, cache: &Cache) -> Duration {
        let unreliable = self.watches.unreliable();
        if unreliable.is_empty() {
            return self.watches.timing().interval;
        }
        let objects = cache.values().flat_map(|cached| cached.objects.keys());
        let objects = objects.filter(|(kind, _)| unreliable.contains(kind)).count();
        self.watches.timing().interval_of(objects)
    }

    fn record_completion(&self, revision: &Revision, complete: bool) {
        let mut cache = self.cache.lock();
        let cached = cache.entry(revision.identity.uid.clone()).or_default();
        cached.complete_state = complete.then_some(revision.state);
    }

    fn is_discovered(&self, uid: &str, api_service: &str) -> bool {
        let cache = self.cache.lock();
        cache
            .get(uid)
            .is_some_and(|cached| cached.discovered.contains(api_service))
    }

    fn record_discovery(&self, uid: &str, api_service: &str) {
        let mut cache = self.cache.lock();
        let cached = cache.entry(uid.to_owned()).or_default();
        cached.discovered.insert(api_service.to_owned());
    }

    fn applied_object(&self, uid: &str, id: &Id) -> Option<AppliedObject> {
        self.cache
            .lock()
            .get(uid)?
            .objects
            .get(&(id.watch_kind(), id.path()))
            .map(|object| AppliedObject::clone(object))
    }

    fn record(&self, uid: &str, id: &Id, object: AppliedObject) {
        let mut cache = self.cache.lock();
        let cached = cache.entry(uid.to_owned()).or_default();
        let key = (id.watch_kind(), id.path());
        cached.removed.remove(&key);
        cached.objects.insert(key, Box::new(object));
    }

    fn removed_object(&self, uid: &str, id: &Id) -> Option<Removed> {
        let cache = self.cache.lock();
        let removed = &cache.get(uid)?.removed;
        removed.get(&(id.watch_kind(), id.path())).cloned()
    }

    fn record_removal(&self, uid: &str, id: &Id, removed: Removed) {
        let mut cache = self.cache.lock();
        let cached = cache.entry(uid.to_owned()).or_default();
        cached.removed.insert((id.watch_kind(), id.path()), removed);
    }
}
