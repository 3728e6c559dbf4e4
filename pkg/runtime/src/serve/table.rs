//! The open connections of a server, capped in all and per client. At a cap, the connection that is worth least is
//! closed for a new one: the one that is idle longest, then the one whose client takes its answer most slowly, then one
//! that became idle just now.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    activity::{Activity, Worth},
    descriptors,
};

/// A client, as far as its address tells it apart: one IPv4 address, or one IPv6 network of 64 bits. In the extensions
/// of every request.
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

/// The table. Places give themselves back.
#[derive(Debug)]
pub(super) struct Table {
    connections: usize,
    per_client: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    entries: HashMap<u64, (Peer, Arc<Activity>)>,
    by_peer: HashMap<Peer, usize>,
}

/// The place of one connection in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    table: Arc<Table>,
    number: u64,
}

/// The reason why a connection has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The server has as many connections as it may, all busy.
    All,
    /// The client has as many connections as it may, all busy.
    Client,
}

impl Table {
    pub(super) fn new(connections: usize, per_client: usize) -> Self {
        Self {
            connections: descriptors::connections(connections),
            per_client,
            open: Mutex::default(),
        }
    }

    /// Makes room for one connection more, if none is there.
    ///
    /// # Errors
    /// No connection can be closed for the new one.
    pub(super) fn enter(self: &Arc<Self>, peer: Peer, activity: &Arc<Activity>) -> Result<Place, Full> {
        let mut open = self.open.lock();
        if open.by_peer.get(&peer).copied().unwrap_or_default() >= self.per_client {
            let victim = open.least(Some(peer)).ok_or(Full::Client)?;
            open.evict(victim);
        } else if open.entries.len() >= self.connections {
            // A client that has many connections does not cost others theirs.
            let busiest = open.by_peer.iter().max_by_key(|(_, count)| **count);
            let busiest = busiest.map(|(peer, _)| *peer);
            let victim = open
                .least(busiest)
                .or_else(|| open.least(None))
                .ok_or(Full::All)?;
            open.evict(victim);
        }
        let number = open.next;
        open.next += 1;
        open.entries.insert(number, (peer, activity.clone()));
        *open.by_peer.entry(peer).or_default() += 1;
        Ok(Place {
            table: self.clone(),
            number,
        })
    }

    /// Closes the connection whose client takes its answers most slowly. Returns whether there is one.
    pub(super) fn relieve(&self) -> bool {
        let mut open = self.open.lock();
        let slowest = open
            .worths(None)
            .filter(|(worth, _)| matches!(worth, Worth::Slow(_)));
        match slowest.min() {
            Some((_, victim)) => {
                open.evict(victim);
                true
            }
            None => false,
        }
    }
}

impl Open {
    /// The connections that may be closed, of one client or of all.
    fn worths(&self, of: Option<Peer>) -> impl Iterator<Item = (Worth, u64)> {
        let now = Instant::now();
        self.entries
            .iter()
            .filter(move |(_, (peer, _))| of.is_none_or(|wanted| wanted == *peer))
            .filter_map(move |(number, (_, activity))| Some((activity.worth(now)?, *number)))
    }

    fn least(&self, of: Option<Peer>) -> Option<u64> {
        self.worths(of).min().map(|(_, number)| number)
    }

    fn evict(&mut self, number: u64) {
        if let Some(activity) = self.leave(number) {
            activity.evict();
        }
    }

    fn leave(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (peer, activity) = self.entries.remove(&number)?;
        if let Some(count) = self.by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&peer);
            }
        }
        Some(activity)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.open.lock().leave(self.number);
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
    async fn who_has_most_connections_gives_way() {
        let peers = [1, 2].map(|last| Peer::from(IpAddr::from([192, 0, 2, last])));
        let table = Arc::new(Table::new(4, 4));
        let new = || Arc::new(Activity::new());
        let kept = table.enter(peers[1], &new()).unwrap();
        // It is idle longer than all others, but its client has no other.
        let places: Vec<_> = (0..3).map(|_| table.enter(peers[0], &new()).unwrap()).collect();
        let more = table.enter(peers[0], &new()).unwrap();
        let open = table.open.lock();
        assert!(open.entries.contains_key(&kept.number));
        assert!(!open.entries.contains_key(&places[0].number));
        assert_eq!((open.entries.len(), open.by_peer[&peers[0]]), (4, 3));
        drop(open);
        drop((kept, places, more));
        assert!(table.open.lock().entries.is_empty() && table.open.lock().by_peer.is_empty());
    }

    #[tokio::test]
    async fn busy_connections_are_not_closed() {
        let peer = Peer::from(IpAddr::from([192, 0, 2, 1]));
        let table = Arc::new(Table::new(4, 2));
        let busy = [Arc::new(Activity::new()), Arc::new(Activity::new())];
        let _places = busy.each_ref().map(|activity| {
            activity.begin();
            table.enter(peer, activity).unwrap()
        });
        let full = table.enter(peer, &Arc::new(Activity::new())).unwrap_err();
        assert_eq!(full, Full::Client);
        let other = Peer::from(IpAddr::from([192, 0, 2, 2]));
        assert!(table.enter(other, &Arc::new(Activity::new())).is_ok());
    }
}
