//! Earlier answers to lists, as an API server whose cache lags would give them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// Maximum number of answers that are kept for one request.
const KEPT: usize = 4;
/// Maximum size of an answer that is kept, in bytes.
const LARGEST: usize = 4 << 20;

/// Earlier answers to lists, by path and query.
///
/// The API server answers lists with `resourceVersion=0` from its cache, so they may be old. A list without a version is
/// consistent by the contract of the API; such answers are kept only on request.
#[derive(Debug, Default)]
pub(super) struct OldAnswers {
    lists: Mutex<BTreeMap<String, VecDeque<Bytes>>>,
    /// True if answers to lists without a version are kept, too.
    consistent_too: AtomicBool,
}

impl OldAnswers {
    /// Keeps the answer to a list.
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

    /// Keeps the answers to all lists from now on.
    pub(super) fn break_contract(&self) {
        self.consistent_too.store(true, Ordering::Relaxed);
    }

    /// Returns true if answers to the request are kept.
    fn may_be_old(&self, request: &str) -> bool {
        self.consistent_too.load(Ordering::Relaxed) || from_cache(request)
    }

    /// Returns the oldest kept answer to a request.
    pub(super) fn oldest(&self, request: &str) -> Option<Bytes> {
        self.lists.lock().get(request)?.front().cloned()
    }
}

/// Returns true if the API server may answer the list from its cache.
fn from_cache(request: &str) -> bool {
    let query = request.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| pair == "resourceVersion=0")
}
