//! Cache of small responses, since catalogs are asked the same questions repeatedly.
//!
//! The key identifies content, selection and encoding, so entries are never stale. The size is bounded; the least recently
//! used entries are evicted first. Entries that nobody asks for any more are dropped after a while, so that a server at rest
//! is small again.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::sleep};

use crate::storage::Encoding;

/// Maximum size of the cache, in bytes.
const MAX_TOTAL: usize = 8 * 1024 * 1024;
/// Maximum size of an uncompressed response, in bytes; a larger one is read again almost as fast.
const MAX_PLAIN: usize = 256 * 1024;
/// Maximum size of a compressed response, in bytes: the bundles of a large package.
const MAX_COMPRESSED: usize = 1024 * 1024;
/// Approximate cost of a response beside its bytes.
const OVERHEAD: usize = 256;

/// Time within which an entry must be used to stay. It is dropped after once to twice this time without use.
const SWEEP_INTERVAL: Duration = Duration::from_secs(20);

/// Bytes of a response and their encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncodedBody {
    pub(super) bytes: Bytes,
    pub(super) encoding: Encoding,
}

/// Returns the maximum size of a cached response in an encoding, in bytes.
pub(super) fn max_size(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Identity => MAX_PLAIN,
        Encoding::Gzip | Encoding::Zstd => MAX_COMPRESSED,
    }
}

/// Cache of responses.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<String, (EncodedBody, u64)>,
    size: usize,
    clock: u64,
    /// Time of the last sweep, by `clock`.
    swept: u64,
    /// A task sweeps until the cache is empty.
    sweeping: bool,
}

impl ResponseCache {
    pub(super) fn get(&self, tag: &str) -> Option<EncodedBody> {
        let mut inner = self.0.lock();
        inner.clock += 1;
        let now = inner.clock;
        let (body, used) = inner.entries.get_mut(tag)?;
        *used = now;
        Some(body.clone())
    }

    /// Caches a response unless it is too large. Within a runtime, it is dropped when nobody asks for it any more.
    pub(super) fn put(&self, tag: &str, body: EncodedBody) {
        let cost = cost(tag, &body);
        if body.bytes.len() > max_size(body.encoding) {
            return;
        }
        let mut inner = self.0.lock();
        inner.clock += 1;
        let now = inner.clock;
        if let Some((old, _)) = inner.entries.insert(tag.to_owned(), (body, now)) {
            inner.size -= self::cost(tag, &old);
        }
        inner.size += cost;
        if inner.size > MAX_TOTAL {
            inner.evict();
        }
        if !inner.sweeping
            && let Ok(runtime) = Handle::try_current()
        {
            inner.sweeping = true;
            runtime.spawn(sweep(Arc::downgrade(&self.0)));
        }
    }
}

/// Drops what is not used, until the cache is empty or dropped.
async fn sweep(cache: Weak<Mutex<Inner>>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let Some(cache) = cache.upgrade() else {
            return;
        };
        if !cache.lock().sweep() {
            return;
        }
    }
}

impl Inner {
    /// Drops the entries that were not used since the last sweep; returns whether there are others.
    fn sweep(&mut self) -> bool {
        let (since, mut dropped) = (self.swept, 0);
        self.entries.retain(|tag, (body, used)| {
            let keep = *used > since;
            if !keep {
                dropped += cost(tag, body);
            }
            keep
        });
        self.size -= dropped;
        self.swept = self.clock;
        self.sweeping = !self.entries.is_empty();
        if !self.sweeping {
            self.entries = HashMap::new();
        }
        self.sweeping
    }

    /// Evicts an eighth of the cache at once, so that evictions are rare.
    fn evict(&mut self) {
        let mut by_age: Vec<(u64, String)> = self
            .entries
            .iter()
            .map(|(tag, (_, used))| (*used, tag.clone()))
            .collect();
        by_age.sort_unstable();
        for (_, tag) in by_age {
            if self.size <= MAX_TOTAL / 8 * 7 {
                break;
            }
            if let Some((old, _)) = self.entries.remove(&tag) {
                self.size -= cost(&tag, &old);
            }
        }
    }
}

fn cost(tag: &str, body: &EncodedBody) -> usize {
    body.bytes.len() + tag.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_go() {
        let cache = ResponseCache::default();
        let body = |length: usize| EncodedBody {
            bytes: vec![0; length].into(),
            encoding: Encoding::Identity,
        };
        cache.put("first", body(10));
        for n in 0..100 {
            cache.put(&n.to_string(), body(MAX_PLAIN));
            assert_eq!(cache.get("first"), Some(body(10)), "used all the time");
            assert!(cache.0.lock().size <= MAX_TOTAL);
        }
        assert_eq!(cache.get("0"), None);
        assert_eq!(cache.get("99"), Some(body(MAX_PLAIN)));
        cache.put("large", body(MAX_PLAIN + 1));
        assert_eq!(cache.get("large"), None);
        let compressed = EncodedBody {
            encoding: Encoding::Gzip,
            ..body(MAX_PLAIN + 1)
        };
        cache.put("large", compressed.clone());
        assert_eq!(cache.get("large"), Some(compressed));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_goes() {
        let cache = ResponseCache::default();
        let body = EncodedBody {
            bytes: vec![0; 10].into(),
            encoding: Encoding::Identity,
        };
        cache.put("used", body.clone());
        cache.put("unused", body.clone());
        for _ in 0..5 {
            sleep(SWEEP_INTERVAL / 2).await;
            assert_eq!(cache.get("used"), Some(body.clone()));
        }
        assert_eq!(cache.get("unused"), None);
        sleep(SWEEP_INTERVAL * 3).await;
        {
            let inner = cache.0.lock();
            assert_eq!((inner.entries.len(), inner.size, inner.sweeping), (0, 0, false));
        }
        // The next entry starts the sweep again.
        cache.put("used", body);
        assert!(cache.0.lock().sweeping);
        sleep(SWEEP_INTERVAL * 3).await;
        assert_eq!(cache.get("used"), None);
    }
}
