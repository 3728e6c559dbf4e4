//! Turns of token reviews. A client with many unknown tokens waits for itself, and others do not wait for that client.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::Peer;

/// Reviews under way at once.
const AT_ONCE: usize = 4;
/// Number of these reviews for one client.
const PER_CLIENT: usize = 2;
/// Reviews that one client may wait for.
const WAITING: usize = 32;
/// Reviews under way at once of tokens that were good lately. They have turns of their own.
const KNOWN: usize = 4;

/// The turns. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    known: Arc<Semaphore>,
    clients: Arc<Mutex<HashMap<Option<Peer>, Client>>>,
}

#[derive(Clone, Debug)]
struct Client {
    turns: Arc<Semaphore>,
    /// Reviews under way or waited for.
    wanted: usize,
}

/// The right to one review, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    _wanted: Option<Wanted>,
}

/// One review that a client wants.
#[derive(Debug)]
struct Wanted {
    turns: Turns,
    peer: Option<Peer>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            known: Arc::new(Semaphore::new(KNOWN)),
            clients: Arc::default(),
        }
    }
}

impl Turns {
    /// Waits for the turn of a client, or returns `None` when too many of its tokens wait already.
    pub(super) async fn of_client(&self, peer: Option<Peer>) -> Option<Turn> {
        let (turns, wanted) = self.want(peer)?;
        // First its own, so that a client has no more than its share in the common queue.
        let own = turns.acquire_owned().await.ok();
        let common = self.all.clone().acquire_owned().await.ok();
        Some(Turn {
            _permits: [own, common],
            _wanted: Some(wanted),
        })
    }

    /// Waits for the turn of a token that was good lately.
    pub(super) async fn of_known(&self) -> Turn {
        let permit = self.known.clone().acquire_owned().await.ok();
        Turn {
            _permits: [permit, None],
            _wanted: None,
        }
    }

    fn want(&self, peer: Option<Peer>) -> Option<(Arc<Semaphore>, Wanted)> {
        let mut clients = self.clients.lock();
        let client = clients.entry(peer).or_insert_with(|| Client {
            turns: Arc::new(Semaphore::new(PER_CLIENT)),
            wanted: 0,
        });
        if client.wanted >= WAITING {
            return None;
        }
        client.wanted += 1;
        let wanted = Wanted {
            turns: self.clone(),
            peer,
        };
        Some((client.turns.clone(), wanted))
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        let mut clients = self.turns.clients.lock();
        if let Some(client) = clients.get_mut(&self.peer) {
            client.wanted -= 1;
            if client.wanted == 0 {
                clients.remove(&self.peer);
            }
        }
    }
}
