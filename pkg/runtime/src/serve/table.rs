//! Open connections of a server, limited in total and per client.
//!
//! At a limit, a new connection evicts another one: first the one that is idle longest, then the one whose client
//! reads most slowly, then one that became idle just now.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    activity::{Activity, EvictionOrder},
    descriptors,
};

/// Client identified by its address: one IPv4 address, or one IPv6 /64 network. Stored in the extensions of every
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(IpAddr);

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & (u128::MAX << 64);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The connection table. Slots are released on drop.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    connections: usize,
    per_client: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    by_number: HashMap<u64, (Peer, Arc<Activity>)>,
    by_peer: HashMap<Peer, usize>,
}

/// Slot of one connection in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    table: Arc<ConnectionTable>,
    number: u64,
}

/// Reason for refusing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The server has its maximum of connections, all busy.
    All,
    /// The client has its maximum of connections, all busy.
    Client,
}

impl ConnectionTable {
    pub(super) fn new(connections: usize, per_client: usize) -> Self {
        Self {
            connections: descriptors::connections(connections),
            per_client,
            open: Mutex::default(),
        }
    }

    /// Reserves a slot for a new connection, if necessary by evicting another one.
    ///
    /// # Errors
    /// No connection can be evicted.
    pub(super) fn reserve(self: &Arc<Self>, peer: Peer, activity: &Arc<Activity>) -> Result<Slot, Full> {
        let mut open = self.open.lock();
        if open.by_peer.get(&peer).copied().unwrap_or_default() >= self.per_client {
            let victim = open.first_to_evict(Some(peer)).ok_or(Full::Client)?;
            open.evict(victim);
        } else if open.by_number.len() >= self.connections {
            // Clients with many connections do not displace those of others.
            let busiest = open.by_peer.iter().max_by_key(|(_, count)| **count);
            let busiest = busiest.map(|(peer, _)| *peer);
            let victim = open
                .first_to_evict(busiest)
                .or_else(|| open.first_to_evict(None))
                .ok_or(Full::All)?;
            open.evict(victim);
        }
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, (peer, activity.clone()));
        *open.by_peer.entry(peer).or_default() += 1;
        Ok(Slot {
            table: self.clone(),
            number,
        })
    }

    /// Returns the number of open connections.
    pub(super) fn count(&self) -> usize {
        self.open.lock().by_number.len()
    }

    /// Closes the connection whose client reads most slowly. Returns false if there is none.
    pub(super) fn evict_slowest(&self) -> bool {
        let mut open = self.open.lock();
        let slowest = open
            .candidates(None)
            .filter(|(order, _)| matches!(order, EvictionOrder::Slow(_)));
        match slowest.min() {
            Some((_, victim)) => {
                open.evict(victim);
                true
            }
            None => false,
        }
    }
}

impl OpenConnections {
    /// Returns the connections that may be evicted, of one client or of all.
    fn candidates(&self, of: Option<Peer>) -> impl Iterator<Item = (EvictionOrder, u64)> {
        let now = Instant::now();
        self.by_number
            .iter()
            .filter(move |(_, (peer, _))| of.is_none_or(|wanted| wanted == *peer))
            .filter_map(move |(number, (_, activity))| Some((activity.eviction_order(now)?, *number)))
    }

    fn first_to_evict(&self, of: Option<Peer>) -> Option<u64> {
        self.candidates(of).min().map(|(_, number)| number)
    }

    fn evict(&mut self, number: u64) {
        if let Some(activity) = self.remove(number) {
            activity.evict();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (peer, activity) = self.by_number.remove(&number)?;
        if let Some(count) = self.by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&peer);
            }
        }
        Some(activity)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.table.open.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_addresses_or_networks() {
        let peer = |text: &str| Peer::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::2:3"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    }

    #[tokio::test]
    async fn clients_with_most_connections_are_evicted_first() {
        let peers = [1, 2].map(|last| Peer::from(IpAddr::from([192, 0, 2, last])));
        let table = Arc::new(ConnectionTable::new(4, 4));
        let new = || Arc::new(Activity::new());
        let kept = table.reserve(peers[1], &new()).unwrap();
        // This connection is idle longest, but it is its client's only one.
        let slots: Vec<_> = (0..3).map(|_| table.reserve(peers[0], &new()).unwrap()).collect();
        let more = table.reserve(peers[0], &new()).unwrap();
        let open = table.open.lock();
        assert!(open.by_number.contains_key(&kept.number));
        assert!(!open.by_number.contains_key(&slots[0].number));
        assert_eq!(open.by_peer[&peers[0]], 3);
        drop(open);
        assert_eq!(table.count(), 4);
        drop((kept, slots, more));
        assert!(table.open.lock().by_number.is_empty() && table.open.lock().by_peer.is_empty());
    }

    #[tokio::test]
    async fn busy_connections_are_not_closed() {
        let peer = Peer::from(IpAddr::from([192, 0, 2, 1]));
        let table = Arc::new(ConnectionTable::new(4, 2));
        let busy = [Arc::new(Activity::new()), Arc::new(Activity::new())];
        let _slots = busy.each_ref().map(|activity| {
            activity.begin();
            table.reserve(peer, activity).unwrap()
        });
        let full = table.reserve(peer, &Arc::new(Activity::new())).unwrap_err();
        assert_eq!(full, Full::Client);
        let other = Peer::from(IpAddr::from([192, 0, 2, 2]));
        assert!(table.reserve(other, &Arc::new(Activity::new())).is_ok());
    }
}
