//! What changes on the cluster among the objects we manage.
//!
//! One watcher per kind, of metadata alone, restricted to objects with our owner label; started when the first revision needs the kind and
//! dropped with the last. A watcher that fails tries again by itself and never holds up a reconcile. A kind whose watch has not listed
//! yet, or fails for a while, is unknown, not unchanged: its objects are read from the API server on an interval ([`Pace`]).

mod follow;
mod health;

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
use follow::Follower;
use health::Health;
pub use health::{Cause, Fault, Pace};

/// Triggers waiting to be read; a watcher waits when there are more.
const PENDING: usize = 65_536;
/// How many deleted objects of one kind are remembered.
const GONE: usize = 10_000;

/// Group, version and kind.
pub type Kind = (String, String, String);
/// Namespace (empty for cluster-scoped objects) and name.
type Key = (String, String);

/// What a watch last told of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The object's uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// A number that differs when anything but the status differs.
    pub fingerprint: u64,
}

/// What a watch can say about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Unknown: the kind is not watched, its list is not complete yet, or its watch fails.
    Unknown,
    /// It was not among what was listed at this time, nor was it heard of since.
    Never(Instant),
    /// It was there and was deleted.
    Gone,
    /// It is there.
    Seen(Seen),
}

#[derive(Debug, Default)]
struct Cache {
    objects: HashMap<Key, (Seen, Vec<String>)>,
    /// What was deleted and has not come back.
    gone: HashSet<Key>,
    /// Time of the last complete list.
    synced: Option<Instant>,
}

impl Cache {
    fn bury(&mut self, key: Key) {
        // Forgetting them all costs a look at the API server, no more.
        if self.gone.len() >= GONE {
            self.gone.clear();
        }
        self.gone.insert(key);
    }

    /// Takes `listed` for all that there is; returns the owners of what was missed.
    fn complete(&mut self, listed: &HashSet<Key>) -> Vec<String> {
        let known = self.objects.keys();
        let missed: Vec<Key> = known.filter(|key| !listed.contains(*key)).cloned().collect();
        let mut owners = Vec::new();
        for key in missed {
            if let Some((_, known)) = self.objects.remove(&key) {
                owners.extend(known);
            }
            self.bury(key);
        }
        self.synced = Some(Instant::now());
        owners
    }
}

/// State that a watch and its task share.
struct Shared {
    cache: Mutex<Cache>,
    health: Mutex<Health>,
    /// Names of the revisions that need the kind, by uid.
    users: Mutex<HashMap<String, String>>,
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

/// The watchers of all managed kinds.
pub struct Watches {
    client: Client,
    triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    kinds: Mutex<HashMap<Kind, Watch>>,
    pace: Pace,
}

impl Watches {
    /// No watcher yet, and the stream of revisions whose objects changed.
    pub fn new(
        client: Client,
        pace: Pace,
    ) -> (
        Self,
        impl Stream<Item = ObjectRef<ClusterObjectSet>> + Send + 'static,
    ) {
        let (triggers, mut receiver) = mpsc::channel(PENDING);
        let stream = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        (
            Self {
                client,
                triggers,
                kinds: Mutex::new(HashMap::new()),
                pace,
            },
            stream,
        )
    }

    /// Watches `kind` on behalf of a revision.
    pub fn need(&self, user: &Identity, kind: &Kind, resource: &ApiResource) {
        let mut watches = self.kinds.lock();
        let watch = watches
            .entry(kind.clone())
            .or_insert_with(|| self.start(kind, resource));
        watch
            .shared
            .users
            .lock()
            .insert(user.uid.clone(), user.name.clone());
    }

    fn start(&self, kind: &Kind, resource: &ApiResource) -> Watch {
        tracing::debug!(group = kind.0, version = kind.1, kind = kind.2, "watch starts");
        let shared = Arc::new(Shared {
            cache: Mutex::default(),
            health: Mutex::new(Health::new(self.pace, Instant::now())),
            users: Mutex::default(),
        });
        let follower = Follower {
            shared: Arc::clone(&shared),
            triggers: self.triggers.clone(),
            pace: self.pace,
            kind: text_of(kind),
        };
        let api = Api::all_with(self.client.clone(), resource);
        let task = tokio::spawn(follower.run(api));
        Watch { shared, task }
    }

    /// Ends what only this revision needed.
    pub fn release(&self, user: &str) {
        self.kinds.lock().retain(|_, watch| {
            let mut users = watch.shared.users.lock();
            users.remove(user);
            !users.is_empty()
        });
    }

    /// Times and rates of the watches.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns true if the reports of `kind`'s watch are reliable.
    #[must_use]
    pub fn sees(&self, kind: &Kind) -> bool {
        let kinds = self.kinds.lock();
        kinds
            .get(kind)
            .is_some_and(|watch| watch.shared.health.lock().sees(Instant::now()))
    }

    /// The kinds that are watched without being seen.
    pub(crate) fn unseen(&self) -> HashSet<Kind> {
        let now = Instant::now();
        let kinds = self.kinds.lock();
        let unseen = kinds
            .iter()
            .filter(|(_, watch)| !watch.shared.health.lock().sees(now));
        unseen.map(|(kind, _)| kind.clone()).collect()
    }

    /// The kinds whose watch fails, sorted; only those that the revision with the uid `user` needs, if one is given.
    #[must_use]
    pub fn failing(&self, user: Option<&str>) -> Vec<(Kind, Fault)> {
        let now = Instant::now();
        let kinds = self.kinds.lock();
        let concerned = |watch: &Watch| user.is_none_or(|uid| watch.shared.users.lock().contains_key(uid));
        let mut failing: Vec<(Kind, Fault)> = kinds
            .iter()
            .filter(|(_, watch)| concerned(watch))
            .filter_map(|(kind, watch)| Some((kind.clone(), watch.shared.health.lock().failing(now)?)))
            .collect();
        failing.sort_by(|(a, _), (b, _)| a.cmp(b));
        failing
    }

    /// How many kinds are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.lock().len()
    }

    /// Whether nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of an object.
    #[must_use]
    pub fn sight(&self, kind: &Kind, namespace: &str, name: &str) -> Sight {
        let shared = self.kinds.lock().get(kind).map(|watch| Arc::clone(&watch.shared));
        let Some(shared) = shared else {
            return Sight::Unknown;
        };
        if !shared.health.lock().sees(Instant::now()) {
            return Sight::Unknown;
        }
        let cache = shared.cache.lock();
        let key = (namespace.to_owned(), name.to_owned());
        match (cache.objects.get(&key), cache.synced) {
            (Some((seen, _)), _) => Sight::Seen(seen.clone()),
            (None, _) if cache.gone.contains(&key) => Sight::Gone,
            (None, Some(since)) => Sight::Never(since),
            (None, None) => Sight::Unknown,
        }
    }
}

/// A kind as messages name it: `<Kind>.<group/version>`.
#[must_use]
pub fn text_of((group, version, kind): &Kind) -> String {
    if group.is_empty() {
        return format!("{kind}.{version}");
    }
    format!("{kind}.{group}/{version}")
}

/// What of `meta` tells one state of an object from another.
#[must_use]
pub fn seen_of(meta: &ObjectMeta) -> Seen {
    let version = meta.resource_version.clone().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    match meta.generation {
        // The generation rises with every change outside status and metadata.
        Some(generation) if generation > 0 => generation.hash(&mut hasher),
        _ => version.hash(&mut hasher),
    }
    meta.labels.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    for owner in meta.owner_references.iter().flatten() {
        (&owner.uid, owner.controller).hash(&mut hasher);
    }
    Seen {
        uid: meta.uid.clone().unwrap_or_default(),
        version,
        fingerprint: hasher.finish(),
    }
}

/// Whether `a` is an older version than `b`; versions that are no numbers are not comparable.
#[must_use]
pub fn older(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a < b)
}

/// Remembers an object; gives the revisions to wake, none when nothing changed.
fn note(cache: &Mutex<Cache>, meta: &ObjectMeta) -> (Key, Vec<String>) {
    let (key, seen, owners) = (key_of(meta), seen_of(meta), owners_of(meta));
    let mut cache = cache.lock();
    cache.gone.remove(&key);
    let before = cache.objects.insert(key.clone(), (seen.clone(), owners.clone()));
    let wake = match before {
        Some((old, _)) if old == seen => Vec::new(),
        Some((_, old_owners)) => owners.into_iter().chain(old_owners).collect(),
        None => owners,
    };
    (key, wake)
}

fn key_of(meta: &ObjectMeta) -> Key {
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

fn owners_of(meta: &ObjectMeta) -> Vec<String> {
    let ours = meta.owner_references.iter().flatten();
    ours.filter(|owner| owner.kind == "ClusterObjectSet")
        .map(|owner| owner.name.clone())
        .collect()
}
