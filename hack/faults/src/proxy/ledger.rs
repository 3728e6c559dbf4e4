//! Senders of accepted writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use olm_proof::Preconditions;
use parking_lot::Mutex;
use serde_json::Value;

use super::request::Target;

/// Most writes that are remembered. The observer asks within seconds.
const WRITES_LIMIT: usize = 100_000;

/// Process that sent a write through a proxy.
pub type Sender = u32;

/// Accepted writes of all proxies. Resource versions are revisions of etcd: they order the writes of all kinds.
#[derive(Debug, Default)]
pub struct Ledger {
    newest: AtomicU64,
    books: Mutex<Books>,
    /// Accepted changes, without leases and events.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Books {
    writes: BTreeMap<u64, Sender>,
    /// By uid, in the order of acceptance.
    deletions: BTreeMap<String, VecDeque<(Sender, Preconditions)>>,
}

impl Ledger {
    /// Notes a resource version that exists now.
    pub fn saw(&self, resource_version: u64) {
        self.newest.fetch_max(resource_version, Ordering::SeqCst);
    }

    /// Returns the newest resource version that was seen.
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Returns the number of accepted changes of all senders, without leases, events, and writes that changed nothing.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Records a successful answer to a write. `floor` is [`Ledger::newest`] when the request arrived: an object that is not newer was
    /// not changed by the request.
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

    /// Returns the sender of the write that gave an object this resource version.
    pub fn writer(&self, resource_version: u64) -> Option<Sender> {
        self.books.lock().writes.get(&resource_version).copied()
    }

    /// Takes the first accepted deletion of the object that was not taken before.
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
