//! Watches of managed objects.
//!
//! Each kind has one watcher, of metadata only, restricted to objects with the owner label. It starts with the first
//! revision that needs the kind and ends with the last. A failing watcher retries by itself and never blocks a
//! reconcile. A kind without a complete list, or with a failing watch, is unknown, not unchanged: its objects are
//! read from the API server on an interval ([`WatchTiming`]).
//!
//! Objects that a revision read or wrote before the first list are [expected](Watches::expect): if the watch does not show them soon
//! after the list, they were deleted before it, and no event reports that.

mod health;
mod slim;
#[cfg(test)]
mod tests;
mod watcher;

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use futures::Stream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, ApiResource};
use kube::runtime::reflector::ObjectRef;
use olm_api::ClusterObjectSet;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::ownership::Identity;
use health::WatchHealth;
pub use health::{Cause, Fault, WatchTiming};
pub use slim::{PAGE_SIZE, SlimMeta, without_managed_fields};
use watcher::KindWatcher;

/// Returns the time of the runtime's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Capacity of the queue of triggers; watchers wait if it is full.
const QUEUE_CAPACITY: usize = 65_536;
/// Maximum number of deleted objects of one kind in the cache.
const MAX_DELETED: usize = 10_000;
/// Kinds, as group and kind, whose generation stays the same when their content changes.
///
/// In Kubernetes 1.36, every other built-in kind either has no generation or raises it with each change of its content, as do
/// CRDs and custom resources.
const FIXED_GENERATION: [(&str, &str); 1] = [("scheduling.k8s.io", "PriorityClass")];

/// Group, version and kind.
pub type Kind = (String, String, String);
/// Namespace (empty for cluster-scoped objects) and name.
type Key = (String, String);

/// State of an object in a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion {
    /// uid of the object, which differs after a recreation.
    pub uid: String,
    /// The resourceVersion.
    pub resource_version: String,
    /// Hash of what a revision sets or decides by: generation, labels, annotations, uids of the owners and the mark of a deletion.
    /// A change of the status, of finalizers or of managed fields alone leaves the hash equal. If the generation does not follow
    /// the content, the hash differs after every change.
    pub fingerprint: u64,
}

/// Knowledge of a watch about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The kind is not watched, its list is incomplete, or its watch fails.
    Unknown,
    /// The object was not in the list at this time, and no event followed. The time is later if deletions before it were forgotten.
    NeverSeen(Instant),
    /// The object was deleted.
    Deleted,
    /// The object exists.
    Present(ObjectVersion),
}

/// Revisions that own an object, by name. At most one is the controller, and it comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owners {
    names: Vec<String>,
    controlled: bool,
}

impl Owners {
    fn of(meta: &ObjectMeta) -> Self {
        let revisions = meta.owner_references.iter().flatten();
        let mut revisions: Vec<_> = revisions
            .filter(|owner| owner.kind == "ClusterObjectSet")
            .collect();
        revisions.sort_by_key(|owner| owner.controller != Some(true));
        Self {
            controlled: revisions
                .first()
                .is_some_and(|owner| owner.controller == Some(true)),
            names: revisions.into_iter().map(|owner| owner.name.clone()).collect(),
        }
    }

    fn controller(&self) -> Option<&String> {
        self.names.first().filter(|_| self.controlled)
    }
}

#[derive(Debug, Default)]
struct Cache {
    objects: HashMap<Key, (ObjectVersion, Owners)>,
    /// Number of `objects` that a revision controls, by the name of the revision.
    controlled: HashMap<String, usize>,
    /// Deleted objects that were not created again.
    deleted: HashSet<Key>,
    /// Objects that revisions read or wrote before the first list and that the watch has not shown yet, with the names of the revisions.
    expected: HashMap<Key, Vec<String>>,
    /// Time of the last complete list, or of the last clearing of `deleted` after it.
    synced: Option<Instant>,
}

impl Cache {
    /// Adds or replaces an object; returns its former state.
    fn insert(
        &mut self,
        key: Key,
        version: ObjectVersion,
        owners: Owners,
    ) -> Option<(ObjectVersion, Owners)> {
        if let Some(controller) = owners.controller() {
            *self.controlled.entry(controller.clone()).or_default() += 1;
        }
        let before = self.objects.insert(key, (version, owners));
        self.uncount(before.as_ref());
        before
    }

    /// Removes an object; returns its owners.
    fn remove(&mut self, key: &Key) -> Vec<String> {
        let before = self.objects.remove(key);
        self.uncount(before.as_ref());
        before.map_or_else(Vec::new, |(_, owners)| owners.names)
    }

    fn uncount(&mut self, object: Option<&(ObjectVersion, Owners)>) {
        let Some(controller) = object.and_then(|(_, owners)| owners.controller()) else {
            return;
        };
        if let Some(count) = self.controlled.get_mut(controller) {
            *count -= 1;
            if *count == 0 {
                self.controlled.remove(controller);
            }
        }
    }

    /// Expects an object, unless the first list is complete or has shown it.
    fn expect(&mut self, key: Key, revision: &str) {
        if self.synced.is_some() || self.objects.contains_key(&key) {
            return;
        }
        let revisions = self.expected.entry(key).or_default();
        if !revisions.iter().any(|name| name == revision) {
            revisions.push(revision.to_owned());
        }
    }

    /// Treats the expected objects as deleted; returns their revisions.
    fn miss_expected(&mut self) -> Vec<String> {
        let mut revisions = Vec::new();
        for (key, names) in std::mem::take(&mut self.expected) {
            revisions.extend(names);
            self.record_deleted(key);
        }
        revisions
    }

    /// Expects nothing for the revision any more.
    fn release(&mut self, revision: &str) {
        self.expected.retain(|_, names| {
            names.retain(|name| name != revision);
            !names.is_empty()
        });
    }

    fn record_deleted(&mut self, key: Key) {
        if self.deleted.len() >= MAX_DELETED {
            self.deleted.clear();
            // A forgotten deletion must not look like a creation whose event is still to come: everything that was applied until now
            // counts as changed, and is written again unless the watch shows it.
            self.synced = self.synced.map(|_| now());
        }
        self.deleted.insert(key);
    }

    /// Treats `listed` as complete; returns the owners of objects whose deletion was missed.
    fn finish_list(&mut self, listed: &HashSet<Key>) -> Vec<String> {
        let known = self.objects.keys();
        let missed: Vec<Key> = known.filter(|key| !listed.contains(*key)).cloned().collect();
        let mut owners = Vec::new();
        for key in missed {
            owners.extend(self.remove(&key));
            self.record_deleted(key);
        }
        self.synced = Some(now());
        owners
    }
}

/// State that a watch and its task share.
struct Shared {
    cache: Mutex<Cache>,
    health: Mutex<WatchHealth>,
    /// Names of the revisions that need the kind, by uid.
    revisions: Mutex<HashMap<String, String>>,
}

struct Watch {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches of all kinds that revisions manage; each kind has one watch, shared by its revisions.
pub struct Watches {
    client: Client,
    triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    kinds: Mutex<HashMap<Kind, Watch>>,
    timing: WatchTiming,
}

impl Watches {
    /// Returns an empty set of watches, and the stream of revisions whose objects changed.
    pub fn new(
        client: Client,
        timing: WatchTiming,
    ) -> (
        Self,
        impl Stream<Item = ObjectRef<ClusterObjectSet>> + Send + 'static,
    ) {
        let (triggers, mut receiver) = mpsc::channel(QUEUE_CAPACITY);
        let stream = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        (
            Self {
                client,
                triggers,
                kinds: Mutex::new(HashMap::new()),
                timing,
            },
            stream,
        )
    }

    /// Returns the sender of triggers.
    pub(crate) fn triggers(&self) -> mpsc::Sender<ObjectRef<ClusterObjectSet>> {
        self.triggers.clone()
    }

    /// Watches `kind` on behalf of a revision.
    pub fn need(&self, revision: &Identity, kind: &Kind, resource: &ApiResource) {
        let mut watches = self.kinds.lock();
        let watch = watches
            .entry(kind.clone())
            .or_insert_with(|| self.start(kind, resource));
        watch
            .shared
            .revisions
            .lock()
            .insert(revision.uid.clone(), revision.name.clone());
    }

    /// Announces that a revision reads an object, and perhaps writes it. If the first list of its kind is still to come and the watch does
    /// not show the object soon after, the object counts as deleted, and the revision is triggered.
    pub(crate) fn expect(&self, revision: &Identity, kind: &Kind, namespace: &str, name: &str) {
        if let Some(shared) = self.shared(kind) {
            let key = (namespace.to_owned(), name.to_owned());
            shared.cache.lock().expect(key, &revision.name);
        }
    }

    fn shared(&self, kind: &Kind) -> Option<Arc<Shared>> {
        self.kinds.lock().get(kind).map(|watch| Arc::clone(&watch.shared))
    }

    fn start(&self, kind: &Kind, resource: &ApiResource) -> Watch {
        tracing::debug!(group = kind.0, version = kind.1, kind = kind.2, "watch starts");
        let shared = Arc::new(Shared {
            cache: Mutex::default(),
            health: Mutex::new(WatchHealth::new(self.timing, now())),
            revisions: Mutex::default(),
        });
        let watcher = KindWatcher {
            shared: Arc::clone(&shared),
            triggers: self.triggers.clone(),
            timing: self.timing,
            kind: kind.clone(),
        };
        let api = Api::all_with(self.client.clone(), resource);
        let task = tokio::spawn(watcher.run(api));
        Watch { shared, task }
    }

    /// Stops the watches that only this revision needs.
    pub fn release(&self, uid: &str) {
        self.kinds.lock().retain(|_, watch| {
            let mut revisions = watch.shared.revisions.lock();
            // A revision that was made again has the same name.
            if let Some(name) = revisions.remove(uid)
                && !revisions.values().any(|other| *other == name)
            {
                watch.shared.cache.lock().release(&name);
            }
            !revisions.is_empty()
        });
    }

    /// Returns the timing of the watches.
    #[must_use]
    pub fn timing(&self) -> WatchTiming {
        self.timing
    }

    /// Returns true if the watch of `kind` is reliable.
    #[must_use]
    pub fn is_reliable(&self, kind: &Kind) -> bool {
        let kinds = self.kinds.lock();
        kinds
            .get(kind)
            .is_some_and(|watch| watch.shared.health.lock().is_reliable(now()))
    }

    /// Returns the kinds whose watch is not reliable.
    pub(crate) fn unreliable(&self) -> HashSet<Kind> {
        let at = now();
        let kinds = self.kinds.lock();
        let unreliable = kinds
            .iter()
            .filter(|(_, watch)| !watch.shared.health.lock().is_reliable(at));
        unreliable.map(|(kind, _)| kind.clone()).collect()
    }

    /// Returns the kinds whose watch fails, sorted; only those that the revision with the uid `uid` needs, if
    /// given.
    #[must_use]
    pub fn failing(&self, uid: Option<&str>) -> Vec<(Kind, Fault)> {
        let at = now();
        let kinds = self.kinds.lock();
        let concerned = |watch: &Watch| uid.is_none_or(|uid| watch.shared.revisions.lock().contains_key(uid));
        let mut failing: Vec<(Kind, Fault)> = kinds
            .iter()
            .filter(|(_, watch)| concerned(watch))
            .filter_map(|(kind, watch)| Some((kind.clone(), watch.shared.health.lock().failing(at)?)))
            .collect();
        failing.sort_by(|(a, _), (b, _)| a.cmp(b));
        failing
    }

    /// Returns the number of watched kinds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.lock().len()
    }

    /// Returns true if no kind is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if a watch shows an object whose controller is the revision with the name `revision`.
    #[must_use]
    pub fn shows_object_of(&self, revision: &str) -> bool {
        let kinds = self.kinds.lock();
        kinds
            .values()
            .any(|watch| watch.shared.cache.lock().controlled.contains_key(revision))
    }

    /// Returns the state of an object.
    #[must_use]
    pub fn state(&self, kind: &Kind, namespace: &str, name: &str) -> WatchState {
        let Some(shared) = self.shared(kind) else {
            return WatchState::Unknown;
        };
        if !shared.health.lock().is_reliable(now()) {
            return WatchState::Unknown;
        }
        let cache = shared.cache.lock();
        let key = (namespace.to_owned(), name.to_owned());
        match (cache.objects.get(&key), cache.synced) {
            (Some((version, _)), _) => WatchState::Present(version.clone()),
            (None, _) if cache.deleted.contains(&key) => WatchState::Deleted,
            (None, Some(since)) => WatchState::NeverSeen(since),
            (None, None) => WatchState::Unknown,
        }
    }
}

/// Formats a kind for messages: `<Kind>.<group/version>`.
#[must_use]
pub fn display_kind((group, version, kind): &Kind) -> String {
    if group.is_empty() {
        return format!("{kind}.{version}");
    }
    format!("{kind}.{group}/{version}")
}

/// Returns uid, version and fingerprint of an object of this kind.
#[must_use]
pub fn object_version((group, _, kind): &Kind, meta: &ObjectMeta) -> ObjectVersion {
    let version = meta.resource_version.clone().unwrap_or_default();
    let fixed = FIXED_GENERATION.contains(&(group.as_str(), kind.as_str()));
    let mut hasher = DefaultHasher::new();
    match meta.generation {
        // The generation changes with everything except status and metadata.
        Some(generation) if generation > 0 && !fixed => generation.hash(&mut hasher),
        _ => version.hash(&mut hasher),
    }
    meta.labels.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    for owner in meta.owner_references.iter().flatten() {
        (&owner.uid, owner.controller).hash(&mut hasher);
    }
    ObjectVersion {
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: version,
        fingerprint: hasher.finish(),
    }
}

/// Returns true if `a` is an older version than `b`; versions that are no numbers are not comparable.
#[must_use]
pub fn is_older(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a < b)
}

/// Records an object; returns the revisions to trigger, none if it is unchanged.
fn record(cache: &Mutex<Cache>, kind: &Kind, meta: &ObjectMeta) -> (Key, Vec<String>) {
    let (key, version, owners) = (key_of(meta), object_version(kind, meta), Owners::of(meta));
    let names = owners.names.clone();
    let mut cache = cache.lock();
    cache.deleted.remove(&key);
    cache.expected.remove(&key);
    let before = cache.insert(key.clone(), version.clone(), owners);
    let trigger = match before {
        Some((old, _)) if old == version => Vec::new(),
        Some((_, old_owners)) => names.into_iter().chain(old_owners.names).collect(),
        None => names,
    };
    (key, trigger)
}

fn key_of(meta: &ObjectMeta) -> Key {
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}
