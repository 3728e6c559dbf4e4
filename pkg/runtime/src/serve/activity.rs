//! Activity of one connection: requests in flight, and the times since when one side waits for the other.
//!
//! [`State`] decides. [`Activity`] has the clock, and shares the state between the connection, its responses and the connection
//! table.

mod state;

use std::task::Waker;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit},
    time::Instant,
};

use super::Limits;
use state::State;
pub(super) use state::{Decision, EvictionOrder, Protocol};

#[derive(Debug)]
struct Shared {
    state: State,
    /// Task of a response that waits until the kernel has its last frame.
    waiting_response: Option<Waker>,
}

/// Shared state of a connection.
#[derive(Debug)]
pub(super) struct Activity {
    shared: Mutex<Shared>,
    evicted: Notify,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            shared: Mutex::new(Shared {
                state: State::new(Instant::now()),
                waiting_response: None,
            }),
            evicted: Notify::new(),
        }
    }

    fn state(&self) -> MappedMutexGuard<'_, State> {
        MutexGuard::map(self.shared.lock(), |shared| &mut shared.state)
    }

    /// The handshake is complete: the timeout of the first request starts.
    pub(super) fn opened(&self, protocol: Protocol) {
        let mut state = self.state();
        state.protocol = protocol;
        state.idle = Instant::now();
    }

    /// The connection gets the buffers of HTTP, or releases them.
    pub(super) fn buffered(&self, buffered: bool) {
        self.state().buffered = buffered;
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.state().protocol
    }

    pub(super) fn received(&self) {
        self.state().received(Instant::now());
    }

    pub(super) fn blocked(&self) {
        self.state().blocked(Instant::now());
    }

    /// The stream accepted bytes.
    pub(super) fn wrote(&self) {
        self.state().wrote(Instant::now());
    }

    /// The kernel has all bytes.
    pub(super) fn sent(&self) {
        let mut shared = self.shared.lock();
        shared.state.sent(Instant::now());
        if let Some(waker) = shared.waiting_response.take() {
            waker.wake();
        }
    }

    /// A request arrived; returns the number of its response.
    pub(super) fn begin(&self) -> u64 {
        self.state().begin(Instant::now())
    }

    /// Holds a permit until a response is sent.
    pub(super) fn hold(&self, response: u64, permit: OwnedSemaphorePermit) {
        if let Some(response) = self.state().responses.get_mut(&response) {
            response.permit = Some(permit);
        }
    }

    /// Returns true if the next frame of a response may be produced. Otherwise `waker` is woken when the kernel has
    /// the previous frame. Over HTTP/2 the client's flow-control windows decide.
    pub(super) fn frame_requested(&self, response: u64, waker: &Waker) -> bool {
        let mut shared = self.shared.lock();
        if shared.state.protocol == Protocol::Http1 && shared.state.unsent {
            shared.waiting_response = Some(waker.clone());
            return false;
        }
        shared.state.frame_requested(response, Instant::now());
        true
    }

    /// The connection accepted a frame of a response.
    pub(super) fn frame_accepted(&self, response: u64, bytes: usize) {
        let mut state = self.state();
        state.unsent = true;
        state.wait_for_client(response, bytes as u64, Instant::now());
    }

    pub(super) fn end(&self, response: u64) {
        self.state().end(response, Instant::now());
    }

    pub(super) fn decide(&self, limits: &Limits) -> Decision {
        self.state().decide(Instant::now(), limits)
    }

    /// Returns the next deadline.
    pub(super) fn deadline(&self, limits: &Limits) -> Instant {
        self.state().deadline(Instant::now(), limits).0
    }

    pub(super) fn eviction_order(&self, now: Instant) -> Option<EvictionOrder> {
        self.state().eviction_order(now)
    }

    /// Ends the connection.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits for [`Activity::evict`].
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}
