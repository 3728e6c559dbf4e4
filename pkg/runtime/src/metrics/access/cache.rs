//! Bounded cache with a time to live; the oldest entries go first.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// SHA-256 digest of a request or token.
pub(super) type Key = [u8; 32];

/// Values by key, each with the same time to live.
#[derive(Debug)]
pub(super) struct Cache<V> {
    ttl: Duration,
    capacity: usize,
    values: HashMap<Key, (Instant, V)>,
    /// Keys by age. A key that was inserted twice occurs twice.
    order: VecDeque<(Instant, Key)>,
}

impl<V: Copy> Cache<V> {
    /// Returns a cache for at most `capacity` values, each valid for `ttl`.
    pub(super) fn new(ttl: Duration, capacity: usize) -> Self {
        Self {
            ttl,
            capacity,
            values: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<V> {
        let (since, value) = self.values.get(key)?;
        (now - *since < self.ttl).then_some(*value)
    }

    pub(super) fn insert(&mut self, key: Key, value: V, now: Instant) {
        self.values.insert(key, (now, value));
        self.order.push_back((now, key));
        while let Some((since, key)) = self.order.front().copied() {
            if self.order.len() <= self.capacity && now - since < self.ttl {
                break;
            }
            self.order.pop_front();
            if self.values.get(&key).is_some_and(|(time, _)| *time == since) {
                self.values.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire_and_the_oldest_go_first() {
        let mut cache = Cache::new(Duration::from_secs(10), 3);
        let key = |number| [number; 32];
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        for number in 0..100 {
            cache.insert(key(number), number, at(0));
            assert!(cache.values.len() <= 3 && cache.order.len() <= 3);
        }
        assert_eq!(cache.get(&key(99), at(6)), Some(99));
        assert_eq!(cache.get(&key(96), at(6)), None);
        cache.insert(key(99), 1, at(6));
        assert_eq!(cache.get(&key(99), at(12)), Some(1), "inserted again");
        assert_eq!(cache.get(&key(98), at(12)), None);
        cache.insert(key(0), 0, at(12));
        assert_eq!(cache.values.len(), 2, "what is too old is not kept");
    }
}
