//! The ledger: senders of accepted writes, which the proxies record and the observer looks up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use olm_proof::Preconditions;
use parking_lot::Mutex;
use serde_json::Value;

use super::request::Target;

/// Maximum number of writes that the ledger remembers. The observer looks a write up within seconds.
const WRITES_LIMIT: usize = 100_000;

/// Number of the process that sent a write through a proxy.
pub type Sender = u32;

/// Accepted writes through all proxies. Resource versions are revisions of etcd, so they order the writes of all kinds.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Newest resource version seen so far.
    newest: AtomicU64,
    books: Mutex<Books>,
    /// Number of accepted changes, without those of leases and events.
    changes: AtomicU64,
}

/// Senders of the accepted writes.
#[derive(Debug, Default)]
struct Books {
    /// Senders by the resource version that their write gave an object.
    writes: BTreeMap<u64, Sender>,
    /// Accepted deletions by uid of the object, in the order of their answers.
    deletions: BTreeMap<String, VecDeque<(Sender, Preconditions)>>,
}

impl Ledger {
    /// Records that a resource version exists now.
    pub fn saw(&self, resource_version: u64) {
        self.newest.fetch_max(resource_version, Ordering::SeqCst);
    }

    /// Returns the newest recorded resource version.
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Returns the number of accepted changes by all senders. Changes of leases and events, and writes without effect, do not
    /// count.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Records the successful answer to a write. `floor` is the value of [`Ledger::newest`] when the request arrived. If the
    /// object in the answer is not newer, the write had no effect.
    pub(crate) fn record(&self, sender: Sender, target: &Target, floor: u64, body: &[u8], answer: &[u8]) {
        let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
            return;
        };
        let version = resource_version(&answer);
        if let Some(version) = version {
            self.saw(version);
        }
        let deletes = target.verb == super::Verb::Delete;
        let changed = deletes || version.is_some_and(|version| version > floor);
        if changed && !target.is_chatter() {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        let mut books = self.books.lock();
        if deletes {
            let uid = text(&answer, "/metadata/uid").or_else(|| text(&answer, "/details/uid"));
            if let Some(uid) = uid {
                let entry = (sender, preconditions(body));
                books.deletions.entry(uid).or_default().push_back(entry);
            }
        }
        if let Some(version) = version.filter(|_| changed) {
            books.writes.entry(version).or_insert(sender);
            while books.writes.len() > WRITES_LIMIT {
                books.writes.pop_first();
            }
        }
    }

    /// Returns the sender of the write that gave an object this resource version, if it came through a proxy.
    pub fn writer(&self, resource_version: u64) -> Option<Sender> {
        self.books.lock().writes.get(&resource_version).copied()
    }

    /// Removes and returns the oldest recorded deletion of the object.
    pub fn take_deletion(&self, uid: &str) -> Option<(Sender, Preconditions)> {
        self.books.lock().deletions.get_mut(uid)?.pop_front()
    }
}

/// Returns `metadata.resourceVersion` as a number.
pub(crate) fn resource_version(object: &Value) -> Option<u64> {
    text(object, "/metadata/resourceVersion")?.parse().ok()
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn preconditions(body: &[u8]) -> Preconditions {
    let options: Value = serde_json::from_slice(body).unwrap_or_default();
    Preconditions {
        uid: text(&options, "/preconditions/uid"),
        resource_version: text(&options, "/preconditions/resourceVersion"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use serde_json::json;

    #[test]
    fn a_write_that_changes_nothing_has_no_sender() {
        let ledger = Ledger::default();
        let target = Target::read(&Method::PATCH, "/api/v1/namespaces/a/configmaps/b", "");
        let answer = json!({"metadata": {"uid": "u", "resourceVersion": "7"}}).to_string();
        ledger.record(0, &target, 7, b"", answer.as_bytes());
        assert_eq!((ledger.writer(7), ledger.changes()), (None, 0));
        ledger.record(0, &target, 6, b"", answer.as_bytes());
        assert_eq!((ledger.writer(7), ledger.changes()), (Some(0), 1));
    }

    #[test]
    fn deletions_keep_their_preconditions() {
        let ledger = Ledger::default();
        let target = Target::read(&Method::DELETE, "/api/v1/namespaces/a/configmaps/b", "");
        let body = json!({"preconditions": {"uid": "u"}}).to_string();
        let answer = json!({"kind": "Status", "details": {"uid": "u"}}).to_string();
        ledger.record(3, &target, 0, body.as_bytes(), answer.as_bytes());
        let (sender, preconditions) = ledger.take_deletion("u").unwrap();
        assert_eq!((sender, preconditions.uid.as_deref()), (3, Some("u")));
        assert!(ledger.take_deletion("u").is_none());
    }
}
