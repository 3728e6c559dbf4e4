//! Small answers, kept because catalogs are asked the same things again and again.
//!
//! Keyed by their entity tag, which names content, selection and form: what is kept is never stale. Bounded in
//! bytes; the least recently used go first.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::storage::Encoding;

/// Most bytes kept.
const ALL: usize = 8 * 1024 * 1024;
/// Most bytes of one answer that is kept as it is, which is read again about as quickly.
const ONE: usize = 256 * 1024;
/// Most bytes of one that had to be compressed: the bundles of a large package.
const ONE_COMPRESSED: usize = 1024 * 1024;
/// What an answer costs beside its bytes, roughly.
const OVERHEAD: usize = 256;

/// An answer's bytes, and the form they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) bytes: Bytes,
    pub(super) form: Encoding,
}

/// Most bytes of an answer in a form that is kept.
pub(super) fn most(form: Encoding) -> usize {
    match form {
        Encoding::Identity => ONE,
        Encoding::Gzip | Encoding::Zstd => ONE_COMPRESSED,
    }
}

/// The answers.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    answers: HashMap<String, (Answer, u64)>,
    size: usize,
    clock: u64,
}

impl Kept {
    pub(super) fn get(&self, tag: &str) -> Option<Answer> {
        let mut inner = self.0.lock();
        inner.clock += 1;
        let now = inner.clock;
        let (answer, used) = inner.answers.get_mut(tag)?;
        *used = now;
        Some(answer.clone())
    }

    /// Keeps an answer, unless it is too large.
    pub(super) fn put(&self, tag: &str, answer: Answer) {
        let cost = cost(tag, &answer);
        if answer.bytes.len() > most(answer.form) {
            return;
        }
        let mut inner = self.0.lock();
        inner.clock += 1;
        let now = inner.clock;
        if let Some((old, _)) = inner.answers.insert(tag.to_owned(), (answer, now)) {
            inner.size -= self::cost(tag, &old);
        }
        inner.size += cost;
        if inner.size > ALL {
            inner.shrink();
        }
    }
}

impl Inner {
    /// Makes an eighth of the room free at once, so that this is seldom done.
    fn shrink(&mut self) {
        let mut by_age: Vec<(u64, String)> = self
            .answers
            .iter()
            .map(|(tag, (_, used))| (*used, tag.clone()))
            .collect();
        by_age.sort_unstable();
        for (_, tag) in by_age {
            if self.size <= ALL / 8 * 7 {
                break;
            }
            if let Some((old, _)) = self.answers.remove(&tag) {
                self.size -= cost(&tag, &old);
            }
        }
    }
}

fn cost(tag: &str, answer: &Answer) -> usize {
    answer.bytes.len() + tag.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_go() {
        let kept = Kept::default();
        let answer = |length: usize| Answer {
            bytes: vec![0; length].into(),
            form: Encoding::Identity,
        };
        kept.put("first", answer(10));
        for n in 0..100 {
            kept.put(&n.to_string(), answer(ONE));
            assert_eq!(kept.get("first"), Some(answer(10)), "used all the time");
            assert!(kept.0.lock().size <= ALL);
        }
        assert_eq!(kept.get("0"), None);
        assert_eq!(kept.get("99"), Some(answer(ONE)));
        kept.put("large", answer(ONE + 1));
        assert_eq!(kept.get("large"), None);
        let compressed = Answer {
            form: Encoding::Gzip,
            ..answer(ONE + 1)
        };
        kept.put("large", compressed.clone());
        assert_eq!(kept.get("large"), Some(compressed));
    }
}
