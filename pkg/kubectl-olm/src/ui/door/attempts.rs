//! Limit on failed attempts to sign in.

use std::collections::HashMap;
use std::time::Duration;

use olm_runtime::serve::Peer;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time in which failures are counted.
const WINDOW: Duration = Duration::from_mins(1);
/// Maximum number of failures of an address in that time. Clients behind a proxy have one address.
const FAILURES: u32 = 30;
/// Maximum number of addresses that are counted.
const ADDRESSES: usize = 4096;

/// Counted failures by address.
#[derive(Default)]
pub(super) struct Attempts(Mutex<HashMap<Option<Peer>, (Instant, u32)>>);

impl Attempts {
    /// Returns true if an address may try.
    pub(super) fn admits(&self, peer: Option<Peer>, now: Instant) -> bool {
        let counted = self.0.lock();
        match counted.get(&peer) {
            Some((begin, count)) => now - *begin >= WINDOW || *count < FAILURES,
            None => counted.len() < ADDRESSES || counted.values().any(|(begin, _)| now - *begin >= WINDOW),
        }
    }

    /// Counts a failure.
    pub(super) fn failed(&self, peer: Option<Peer>, now: Instant) {
        let mut counted = self.0.lock();
        if counted.len() >= ADDRESSES && !counted.contains_key(&peer) {
            counted.retain(|_, (begin, _)| now - *begin < WINDOW);
        }
        let (begin, count) = counted.entry(peer).or_insert((now, 0));
        if now - *begin >= WINDOW {
            (*begin, *count) = (now, 0);
        }
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn peer(number: usize) -> Peer {
        let bits = u32::try_from(number).unwrap();
        IpAddr::V4(Ipv4Addr::from_bits(bits)).into()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_waits_and_others_do_not() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..FAILURES {
            assert!(attempts.admits(Some(peer(1)), now));
            attempts.failed(Some(peer(1)), now);
        }
        assert!(!attempts.admits(Some(peer(1)), now));
        assert!(attempts.admits(Some(peer(2)), now));
        assert!(attempts.admits(Some(peer(1)), now + WINDOW));
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded_and_becomes_free_again() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..ADDRESSES {
            attempts.failed(Some(peer(number)), now);
        }
        assert!(!attempts.admits(Some(peer(ADDRESSES)), now));
        assert!(
            attempts.admits(Some(peer(7)), now),
            "a known address is counted on"
        );
        assert!(attempts.admits(Some(peer(ADDRESSES)), now + WINDOW));
        attempts.failed(Some(peer(ADDRESSES)), now + WINDOW);
        assert_eq!(attempts.0.lock().len(), 1);
    }
}
