//! Queue of token reviews. A client with many unknown tokens delays itself, and no other client.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::Peer;

/// Maximum number of concurrent reviews.
const MAX_CONCURRENT: usize = 4;
/// Maximum number of concurrent reviews for one client.
const MAX_PER_CLIENT: usize = 2;
/// Maximum number of waiting and running reviews for one client.
const MAX_WAITING: usize = 32;
/// Maximum number of concurrent reviews of recently valid tokens, in a queue of their own.
const MAX_VALID: usize = 4;

/// The queue. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ReviewQueue {
    all: Arc<Semaphore>,
    valid: Arc<Semaphore>,
    clients: Arc<Mutex<HashMap<Option<Peer>, Client>>>,
}

#[derive(Clone, Debug)]
struct Client {
    permits: Arc<Semaphore>,
    /// Number of reviews that run or wait.
    entries: usize,
}

/// Permission for one review, until it is dropped.
#[derive(Debug)]
pub(super) struct ReviewPermit {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    _entry: Option<QueueEntry>,
}

/// A review of a client that runs or waits.
#[derive(Debug)]
struct QueueEntry {
    queue: ReviewQueue,
    peer: Option<Peer>,
}

impl Default for ReviewQueue {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            valid: Arc::new(Semaphore::new(MAX_VALID)),
            clients: Arc::default(),
        }
    }
}

impl ReviewQueue {
    /// Waits for a permit for a client, or returns `None` if too many of its tokens wait.
    pub(super) async fn acquire(&self, peer: Option<Peer>) -> Option<ReviewPermit> {
        let (own, entry) = self.enter(peer)?;
        // The client's own permit first, so that a client has no more than its share of the common queue.
        let own = own.acquire_owned().await.ok();
        let common = self.all.clone().acquire_owned().await.ok();
        Some(ReviewPermit {
            _permits: [own, common],
            _entry: Some(entry),
        })
    }

    /// Waits for a permit for a recently valid token.
    pub(super) async fn acquire_valid(&self) -> ReviewPermit {
        let permit = self.valid.clone().acquire_owned().await.ok();
        ReviewPermit {
            _permits: [permit, None],
            _entry: None,
        }
    }

    fn enter(&self, peer: Option<Peer>) -> Option<(Arc<Semaphore>, QueueEntry)> {
        let mut clients = self.clients.lock();
        let client = clients.entry(peer).or_insert_with(|| Client {
            permits: Arc::new(Semaphore::new(MAX_PER_CLIENT)),
            entries: 0,
        });
        if client.entries >= MAX_WAITING {
            return None;
        }
        client.entries += 1;
        let entry = QueueEntry {
            queue: self.clone(),
            peer,
        };
        Some((client.permits.clone(), entry))
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        let mut clients = self.queue.clients.lock();
        if let Some(client) = clients.get_mut(&self.peer) {
            client.entries -= 1;
            if client.entries == 0 {
                clients.remove(&self.peer);
            }
        }
    }
}
