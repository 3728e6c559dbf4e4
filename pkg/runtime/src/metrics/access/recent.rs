//! Recent answers by digest: bounded, the oldest goes first.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// The digest of what was asked.
pub(super) type Key = [u8; 32];

/// Values by key, each for a while.
#[derive(Debug)]
pub(super) struct Recent<V> {
    keep: Duration,
    most: usize,
    values: HashMap<Key, (Instant, V)>,
    /// Keys by age. A key that was inserted again is in it twice.
    order: VecDeque<(Instant, Key)>,
}

impl<V: Copy> Recent<V> {
    /// Keeps at most `most` values, each for `keep`.
    pub(super) fn new(keep: Duration, most: usize) -> Self {
        Self {
            keep,
            most,
            values: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<V> {
        let (since, value) = self.values.get(key)?;
        (now - *since < self.keep).then_some(*value)
    }

    pub(super) fn insert(&mut self, key: Key, value: V, now: Instant) {
        self.values.insert(key, (now, value));
        self.order.push_back((now, key));
        while let Some((since, key)) = self.order.front().copied() {
            if self.order.len() <= self.most && now - since < self.keep {
                break;
            }
            self.order.pop_front();
            if self.values.get(&key).is_some_and(|(kept, _)| *kept == since) {
                self.values.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_for_a_while_and_the_oldest_go() {
        let mut recent = Recent::new(Duration::from_secs(10), 3);
        let key = |number| [number; 32];
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        for number in 0..100 {
            recent.insert(key(number), number, at(0));
            assert!(recent.values.len() <= 3 && recent.order.len() <= 3);
        }
        assert_eq!(recent.get(&key(99), at(6)), Some(99));
        assert_eq!(recent.get(&key(96), at(6)), None);
        recent.insert(key(99), 1, at(6));
        assert_eq!(recent.get(&key(99), at(12)), Some(1), "inserted again");
        assert_eq!(recent.get(&key(98), at(12)), None);
        recent.insert(key(0), 0, at(12));
        assert_eq!(recent.values.len(), 2, "what is too old is not kept");
    }
}
