//! Cache of small responses, since catalogs are asked the same questions repeatedly.
//!
//! The key is the entity tag, which identifies content, selection and encoding, so entries are never stale. The size is
//! bounded; the least recently used entries are evicted first.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::storage::Encoding;

/// Maximum size of the cache, in bytes.
const MAX_TOTAL: usize = 8 * 1024 * 1024;
/// Maximum size of an uncompressed response, in bytes; a larger one is read again almost as fast.
const MAX_PLAIN: usize = 256 * 1024;
/// Maximum size of a compressed response, in bytes: the bundles of a large package.
const MAX_COMPRESSED: usize = 1024 * 1024;
/// Approximate cost of a response beside its bytes.
const OVERHEAD: usize = 256;

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
pub(super) struct ResponseCache(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<String, (EncodedBody, u64)>,
    size: usize,
    clock: u64,
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

    /// Caches a response unless it is too large.
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
    }
}

impl Inner {
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
}
