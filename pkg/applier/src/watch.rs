//! What changes on the cluster among the objects we manage.
//!
//! One watcher per kind, of metadata alone, restricted to objects with our owner label; started when the first revision needs the kind and
//! dropped with the last. A watcher that fails tries again by itself and never holds up a reconcile: what is not known here is read
//! from the API server.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use futures::{Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource as _};
use olm_api::{ClusterObjectSet, keys};
use parking_lot::Mutex;
use tokio::sync::mpsc;

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
    /// Nothing: the kind is not watched, or not everything of it has been listed yet.
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
    /// When everything had been listed first.
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
}

struct Watch {
    users: HashSet<String>,
    cache: Arc<Mutex<Cache>>,
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
}

impl Watches {
    /// No watcher yet, and the stream of revisions whose objects changed.
    pub fn new(
        client: Client,
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
            },
            stream,
        )
    }

    /// Watches `kind` on behalf of the revision with this uid.
    pub fn need(&self, user: &str, kind: &Kind, resource: &ApiResource) {
        let mut watches = self.kinds.lock();
        let watch = watches.entry(kind.clone()).or_insert_with(|| {
            tracing::debug!(group = kind.0, version = kind.1, kind = kind.2, "watch starts");
            let cache = Arc::new(Mutex::new(Cache::default()));
            let api = Api::all_with(self.client.clone(), resource);
            let task = tokio::spawn(follow(api, Arc::clone(&cache), self.triggers.clone()));
            Watch {
                users: HashSet::new(),
                cache,
                task,
            }
        });
        watch.users.insert(user.to_owned());
    }

    /// Ends what only this revision needed.
    pub fn release(&self, user: &str) {
        self.kinds.lock().retain(|_, watch| {
            watch.users.remove(user);
            !watch.users.is_empty()
        });
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
        let cache = self.kinds.lock().get(kind).map(|watch| Arc::clone(&watch.cache));
        let Some(cache) = cache else { return Sight::Unknown };
        let cache = cache.lock();
        let key = (namespace.to_owned(), name.to_owned());
        match (cache.objects.get(&key), cache.synced) {
            (Some((seen, _)), _) => Sight::Seen(seen.clone()),
            (None, _) if cache.gone.contains(&key) => Sight::Gone,
            (None, Some(since)) => Sight::Never(since),
            (None, None) => Sight::Unknown,
        }
    }
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

async fn follow(
    api: Api<PartialObjectMeta<DynamicObject>>,
    cache: Arc<Mutex<Cache>>,
    triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
) {
    let config = watcher::Config::default().labels(keys::OWNER_NAME_LABEL);
    let mut events = std::pin::pin!(watcher::watcher(api, config).default_backoff());
    let mut listed: HashSet<Key> = HashSet::new();
    while let Some(event) = events.next().await {
        let owners = match event {
            Ok(Event::Apply(object)) => note(&cache, object.meta()).1,
            Ok(Event::InitApply(object)) => {
                let (key, owners) = note(&cache, object.meta());
                listed.insert(key);
                owners
            }
            Ok(Event::Delete(object)) => {
                let mut owners = owners_of(object.meta());
                let key = key_of(object.meta());
                let mut cache = cache.lock();
                if let Some((_, known)) = cache.objects.remove(&key) {
                    owners.extend(known);
                }
                cache.bury(key);
                owners
            }
            Ok(Event::Init) => {
                listed.clear();
                Vec::new()
            }
            Ok(Event::InitDone) => {
                let mut cache = cache.lock();
                let missed: Vec<Key> = cache
                    .objects
                    .keys()
                    .filter(|key| !listed.contains(*key))
                    .cloned()
                    .collect();
                let mut owners = Vec::new();
                for key in missed {
                    if let Some((_, known)) = cache.objects.remove(&key) {
                        owners.extend(known);
                    }
                    cache.bury(key);
                }
                cache.synced.get_or_insert_with(Instant::now);
                listed = HashSet::new();
                owners
            }
            Err(error) => {
                tracing::debug!(%error, "watch of managed objects failed, it is tried again");
                Vec::new()
            }
        };
        let owners: HashSet<String> = owners.into_iter().collect();
        for owner in owners {
            if triggers.send(ObjectRef::new(&owner)).await.is_err() {
                return;
            }
        }
    }
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
