//! Brings the objects of a revision to the cluster, phase by phase, and takes them away in the reverse order.
//!
//! Invariants: nothing of a phase is created before every object of it was accepted in a dry run; a phase is begun only when the one
//! before is ready; what is unchanged since it was applied is neither read nor written again; nothing is deleted that is not this
//! revision's.

mod actor;
mod apply;
mod call;
mod endpoint;
mod error;
mod teardown;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::ApiResource;
use kube::discovery::Scope;
use olm_api::CollisionProtection;
use olm_text::object::ObjectId;
use olm_text::{cut, printable};
use parking_lot::Mutex;
use serde_json::Value;

pub use actor::acting_as;
pub use call::CallError;
pub use error::{EngineError, chain};
pub use teardown::Teardown;

use crate::account::Account;
use crate::ownership::Identity;
use crate::probe::{Prober, Verdict};
use crate::watch::{Kind, Sight, Watches, older};

/// Longest name in a message, in bytes: no shorter than any that Kubernetes' own rules admit.
const NAME_LIMIT: usize = 253;
/// How many clients of service accounts are kept.
const ACTORS: usize = 256;

/// A revision with all its objects at hand.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Who acts.
    pub identity: Identity,
    /// Differs when the ClusterObjectSet that all this is of has changed in a way that makes everything be looked at anew.
    pub state: u64,
    /// The phases in order.
    pub phases: Arc<Vec<RevisionPhase>>,
    /// When an object is ready.
    pub prober: Prober,
    /// Whose rights are used to write; the controller's own when there is none.
    pub account: Option<Account>,
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
    /// Objects that had been applied already and were changed or deleted by others: `<kind> <name>`.
    pub repaired: Vec<String>,
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
        let id = ObjectId::of(object);
        // Bundles give their webhook configurations a namespace, which means nothing there: the whole group is cluster-scoped.
        let namespace = match id.group {
            "admissionregistration.k8s.io" => "",
            _ => id.namespace,
        };
        Self {
            group: id.group.to_owned(),
            version: id.version.to_owned(),
            kind: id.kind.to_owned(),
            namespace: namespace.to_owned(),
            name: id.name.to_owned(),
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
        let (kind, api_version) = (shown(&self.kind), self.api_version());
        let (namespace, name) = (shown(&self.namespace), shown(&self.name));
        format!("{kind}.{} {namespace}/{name}", shown(&api_version))
    }
}

/// A foreign name as messages show it.
fn shown(name: &str) -> String {
    printable(&cut(name, NAME_LIMIT)).into_owned()
}

/// What is remembered of an object after it was applied.
#[derive(Clone, Debug)]
struct Remembered {
    desired: u64,
    uid: String,
    version: String,
    fingerprint: u64,
    verdict: Verdict,
    /// Whether a probe looks at its status.
    probed: bool,
    /// When this was found.
    at: Instant,
    /// When fields were taken back from another field manager.
    forced: Vec<Instant>,
}

impl Remembered {
    /// Returns true if the watch reports no relevant change. An object that no watch sees counts as unchanged for `interval`
    /// after its last read.
    fn stands(&self, sight: &Sight, interval: Duration) -> bool {
        let seen = match sight {
            Sight::Seen(seen) => seen,
            Sight::Gone => return false,
            // Written after the listing: its event is on the way.
            Sight::Never(listed) => return self.at > *listed,
            Sight::Unknown => return self.verdict.ready && self.at.elapsed() < interval,
        };
        if self.uid != seen.uid {
            return false;
        }
        let same = self.version == seen.version || older(&seen.version, &self.version);
        same || self.fingerprint == seen.fingerprint && self.verdict.ready && !self.probed
    }
}

/// What is remembered of a revision.
#[derive(Debug, Default)]
struct Kept {
    /// By kind and path.
    objects: BTreeMap<(Kind, String), Remembered>,
    /// [`Revision::state`] when all of it was found applied and ready.
    settled: Option<u64>,
}

type Memory = HashMap<String, Kept>;

/// Applies revisions and takes them down.
pub struct Engine {
    client: Client,
    watches: Arc<Watches>,
    kinds: Mutex<HashMap<Kind, (ApiResource, Scope)>>,
    memory: Mutex<Memory>,
    actors: Mutex<HashMap<Account, Client>>,
    reads: Reads,
}

/// Account whose rights objects are read with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// The controller's own.
    #[default]
    AsController,
    /// Those of the revision's service account, as for writing.
    AsAccount,
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
            actors: Mutex::default(),
            reads: Reads::default(),
        }
    }

    /// Returns the same engine, reading objects with other rights. Watches keep the controller's own.
    #[must_use]
    pub fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// The client that speaks as `account`; made once.
    fn actor(&self, account: &Account) -> Result<Client, EngineError> {
        let mut actors = self.actors.lock();
        if let Some(client) = actors.get(account) {
            return Ok(client.clone());
        }
        let client = acting_as(&self.client, account).map_err(|_| self.no_account(account))?;
        if actors.len() >= ACTORS {
            actors.clear();
        }
        actors.insert(account.clone(), client.clone());
        Ok(client)
    }

    fn no_account(&self, account: &Account) -> EngineError {
        EngineError::NoAccount {
            account: account.clone(),
            otherwise: match self.reads {
                Reads::AsController => {
                    "clear spec.serviceAccount of the ClusterExtension to go on with the controller's own rights"
                }
                Reads::AsAccount => "name another one in spec.serviceAccount of the ClusterExtension",
            },
        }
    }

    /// Drops all that is kept for the revision with this uid: its watches and what was applied.
    pub fn forget(&self, uid: &str) {
        self.memory.lock().remove(uid);
        self.watches.release(uid);
    }

    /// Whether the revision with this uid was found complete in `state` and nothing of it has changed since, going by the watches.
    /// Asks the API server nothing.
    #[must_use]
    pub fn idle(&self, uid: &str, state: u64) -> bool {
        let memory = self.memory.lock();
        let Some(kept) = memory.get(uid).filter(|kept| kept.settled == Some(state)) else {
            return false;
        };
        let interval = self.interval(&memory);
        kept.objects.iter().all(|((kind, path), known)| {
            let (namespace, name) = path.split_once('/').unwrap_or(("", path));
            known.stands(&self.watches.sight(kind, namespace, name), interval)
        })
    }

    /// Returns the time until the revision with this uid needs another look although no event comes; `None` if watches see
    /// all its kinds.
    #[must_use]
    pub fn recheck(&self, uid: &str) -> Option<Duration> {
        let memory = self.memory.lock();
        let kinds: BTreeSet<&Kind> = memory.get(uid)?.objects.keys().map(|(kind, _)| kind).collect();
        let unseen = kinds.into_iter().any(|kind| !self.watches.sees(kind));
        unseen.then(|| self.interval(&memory))
    }

    /// The interval at which all objects that no watch sees are read.
    fn interval(&self, memory: &Memory) -> Duration {
        let unseen = self.watches.unseen();
        if unseen.is_empty() {
            return self.watches.pace().interval;
        }
        let objects = memory.values().flat_map(|kept| kept.objects.keys());
        let objects = objects.filter(|(kind, _)| unseen.contains(kind)).count();
        self.watches.pace().interval_of(objects)
    }

    fn settle(&self, revision: &Revision, complete: bool) {
        let mut memory = self.memory.lock();
        let kept = memory.entry(revision.identity.uid.clone()).or_default();
        kept.settled = complete.then_some(revision.state);
    }

    fn recall(&self, uid: &str, id: &Id) -> Option<Remembered> {
        self.memory
            .lock()
            .get(uid)?
            .objects
            .get(&(id.watch_kind(), id.path()))
            .cloned()
    }

    fn remember(&self, uid: &str, id: &Id, what: Remembered) {
        self.memory
            .lock()
            .entry(uid.to_owned())
            .or_default()
            .objects
            .insert((id.watch_kind(), id.path()), what);
    }
}
