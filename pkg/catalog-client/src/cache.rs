//! LRU cache of package contents: one content per catalog and package, bounded in bytes.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use olm_fbc::PackageContent;
use olm_text::name::{CatalogName, PackageName};

/// Size of an entry beside its content, in bytes.
const OVERHEAD: u64 = 512;

/// Catalog and package.
pub(crate) type Key = (CatalogName, PackageName);

/// Cache that evicts the least recently used entry first.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<Key, Entry>,
    bytes: u64,
    limit: u64,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    digest: String,
    /// Content of the package; `None` if the catalog has no such package.
    content: Option<Arc<PackageContent>>,
    bytes: u64,
    used: u64,
    /// Time of the first failed read of a later digest.
    failing: Option<SystemTime>,
}

/// Result of a lookup.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// Content with the requested digest.
    Hit(Option<Arc<PackageContent>>),
    /// Content with another digest, in which the package existed.
    Stale(Arc<PackageContent>),
    /// The package is not cached.
    Miss,
}

impl Cache {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            entries: HashMap::new(),
            bytes: 0,
            limit,
            clock: 0,
        }
    }

    pub(crate) fn get(&mut self, key: &Key, digest: &str) -> Lookup {
        self.clock += 1;
        let Some(entry) = self.entries.get_mut(key) else {
            return Lookup::Miss;
        };
        entry.used = self.clock;
        if entry.digest == digest {
            return Lookup::Hit(entry.content.clone());
        }
        entry.content.clone().map_or(Lookup::Miss, Lookup::Stale)
    }

    /// Replaces the content of a package; content larger than the limit is not cached.
    pub(crate) fn put(&mut self, key: Key, digest: &str, content: Option<Arc<PackageContent>>, bytes: u64) {
        self.remove(&key);
        let bytes = bytes.saturating_add(OVERHEAD);
        if bytes > self.limit {
            return;
        }
        while self.bytes.saturating_add(bytes) > self.limit {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.bytes += bytes;
        let entry = Entry {
            digest: digest.to_owned(),
            content,
            bytes,
            used: self.clock,
            failing: None,
        };
        self.entries.insert(key, entry);
    }

    /// Records that a read of a later digest failed at `now`. Returns the time of the first such failure.
    pub(crate) fn failed(&mut self, key: &Key, now: SystemTime) -> SystemTime {
        let entry = self.entries.get_mut(key);
        entry.map_or(now, |entry| *entry.failing.get_or_insert(now))
    }

    pub(crate) fn forget(&mut self, catalog: &CatalogName) {
        self.entries.retain(|(of, _), _| of != catalog);
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(package: &str) -> Key {
        ("catalog".into(), package.into())
    }

    fn some() -> Arc<PackageContent> {
        Arc::default()
    }

    #[test]
    fn least_recently_used_goes_first() {
        let mut cache = Cache::new(2 * (OVERHEAD + 100));
        cache.put(key("a"), "1", Some(some()), 100);
        cache.put(key("b"), "1", Some(some()), 100);
        assert!(matches!(cache.get(&key("a"), "1"), Lookup::Hit(Some(_))));
        cache.put(key("c"), "1", Some(some()), 100);
        assert!(matches!(cache.get(&key("b"), "1"), Lookup::Miss));
        assert!(matches!(cache.get(&key("a"), "1"), Lookup::Hit(Some(_))));
        assert_eq!(cache.bytes, 2 * (OVERHEAD + 100));
        cache.put(key("a"), "2", Some(some()), 5000);
        assert!(matches!(cache.get(&key("a"), "2"), Lookup::Miss));
        assert_eq!(cache.bytes, OVERHEAD + 100);
    }

    #[test]
    fn another_digest_is_stale_content() {
        let mut cache = Cache::new(10_000);
        cache.put(key("a"), "1", Some(some()), 1);
        cache.put(key("gone"), "1", None, 0);
        assert!(matches!(cache.get(&key("a"), "2"), Lookup::Stale(_)));
        let (first, second) = (SystemTime::UNIX_EPOCH, SystemTime::now());
        assert_eq!(cache.failed(&key("a"), first), first);
        assert_eq!(cache.failed(&key("a"), second), first);
        cache.put(key("a"), "2", Some(some()), 1);
        assert_eq!(
            cache.failed(&key("a"), second),
            second,
            "what was read begins anew"
        );
        assert!(matches!(cache.get(&key("gone"), "1"), Lookup::Hit(None)));
        assert!(matches!(cache.get(&key("gone"), "2"), Lookup::Miss));
        cache.forget(&"catalog".into());
        assert!(matches!(cache.get(&key("a"), "1"), Lookup::Miss));
        assert_eq!(cache.bytes, 0);
    }
}
