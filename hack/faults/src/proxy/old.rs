//! Earlier answers of the API server's cache.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// Most answers of one request that are kept.
const KEPT: usize = 4;
/// Largest answer that is kept, in bytes.
const LARGEST: usize = 4 << 20;

/// Earlier lists, by path and query.
///
/// Lists with `resourceVersion=0` may be old: the API server answers them from its cache. A list without a version is consistent by the
/// API's contract; only on demand are such lists old as well.
#[derive(Debug, Default)]
pub(super) struct OldAnswers {
    lists: Mutex<BTreeMap<String, VecDeque<Bytes>>>,
    consistent_too: AtomicBool,
}

impl OldAnswers {
    pub(super) fn remember(&self, request: &str, answer: &Bytes) {
        if answer.len() > LARGEST || !self.may_be_old(request) {
            return;
        }
        let mut answers = self.lists.lock();
        let known = answers.entry(request.to_owned()).or_default();
        if known.back() != Some(answer) {
            known.push_back(answer.clone());
        }
        if known.len() > KEPT {
            known.pop_front();
        }
    }

    /// Lets consistent lists be old.
    pub(super) fn break_contract(&self) {
        self.consistent_too.store(true, Ordering::Relaxed);
    }

    fn may_be_old(&self, request: &str) -> bool {
        self.consistent_too.load(Ordering::Relaxed) || from_cache(request)
    }

    pub(super) fn oldest(&self, request: &str) -> Option<Bytes> {
        self.lists.lock().get(request)?.front().cloned()
    }
}

fn from_cache(request: &str) -> bool {
    let query = request.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| pair == "resourceVersion=0")
}
