//! Who has a connection, and which one is closed for a new one: the oldest that waits for its client.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The places of one listener.
#[derive(Clone, Debug)]
pub(super) struct Places {
    permits: Arc<Semaphore>,
    per_peer: usize,
    open: Arc<Mutex<Open>>,
    /// A connection has begun to wait for its client.
    waits: Arc<Notify>,
    /// One may be closed for another, or has ended.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Open {
    peers: HashMap<IpAddr, usize>,
    next: u64,
    /// Connections that wait for their clients, those that have waited longest first.
    waiting: BTreeMap<u64, (IpAddr, CancellationToken)>,
    /// Connections that have had an answer, those that had their first one earliest first.
    answered: BTreeMap<u64, (IpAddr, CancellationToken)>,
}

impl Open {
    /// Closes the connection that has waited longest for its client, of this peer or of all; whether there is one.
    fn close_oldest(&mut self, of: Option<IpAddr>) -> bool {
        let is_of = |peer: IpAddr| of.is_none_or(|of| of == peer);
        let oldest = self.waiting.iter().find(|(_, (peer, _))| is_of(*peer)).map(|(number, _)| *number);
        let Some((_, closed)) = oldest.and_then(|number| self.waiting.remove(&number)) else { return false };
        closed.cancel();
        true
    }

    /// Closes the connection of this peer that had its first answer earliest; whether there is one. A client that asks again and again
    /// without waiting for answers never waits, and must not keep others out.
    fn close_answered(&mut self, of: IpAddr) -> bool {
        let earliest = self.answered.iter().find(|(_, (peer, _))| *peer == of).map(|(number, _)| *number);
        let Some((_, closed)) = earliest.and_then(|number| self.answered.remove(&number)) else { return false };
        closed.cancel();
        true
    }
}

impl Places {
    pub(super) fn new(connections: usize, per_peer: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(connections)),
            per_peer,
            open: Arc::default(),
            waits: Arc::default(),
            changed: Arc::default(),
        }
    }

    /// A place for a connection of this peer. None when the peer has as many as it may, and all of them wait for their first answer.
    pub(super) async fn take(&self, peer: IpAddr) -> Option<ConnectionPlace> {
        let peer = network(peer);
        let mut has_closed = false;
        {
            let mut open = self.lock();
            if open.peers.get(&peer).is_some_and(|count| *count >= self.per_peer) {
                has_closed = open.close_oldest(Some(peer)) || open.close_answered(peer);
                if !has_closed {
                    return None;
                }
            }
        }
        let permit = loop {
            if !has_closed && self.permits.available_permits() == 0 {
                has_closed = self.lock().close_oldest(None);
            }
            tokio::select! {
                permit = Arc::clone(&self.permits).acquire_owned() => break permit.expect("the semaphore is never closed"),
                () = self.waits.notified() => {}
            }
        };
        *self.lock().peers.entry(peer).or_default() += 1;
        let closed = CancellationToken::new();
        Some(ConnectionPlace { places: self.clone(), peer, closed, waits: None, answered: None, _permit: permit })
    }

    /// Waits until there may be a place where there was none.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A peer's address; of an IPv6 address the network, because one host has all of it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

/// One connection's place, free again when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    places: Places,
    peer: IpAddr,
    closed: CancellationToken,
    /// Its number among those that wait for their clients.
    waits: Option<u64>,
    /// Its number among those that have had an answer.
    answered: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPlace {
    /// Ends when the connection is to be closed for another.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// From now on the connection waits for its client, and may be closed for another.
    pub(super) fn waits(&mut self) {
        if self.waits.is_none() {
            let mut open = self.places.lock();
            open.next += 1;
            let number = open.next;
            open.waiting.insert(number, (self.peer, self.closed.clone()));
            self.waits = Some(number);
            drop(open);
            self.places.waits.notify_one();
            self.places.changed.notify_one();
        }
    }

    /// The connection has had an answer.
    pub(super) fn answered(&mut self) {
        if self.answered.is_none() {
            let mut open = self.places.lock();
            open.next += 1;
            let number = open.next;
            open.answered.insert(number, (self.peer, self.closed.clone()));
            self.answered = Some(number);
        }
    }

    /// From now on the client waits for the process.
    pub(super) fn works(&mut self) {
        if let Some(number) = self.waits.take() {
            self.places.lock().waiting.remove(&number);
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.works();
        let mut open = self.places.lock();
        if let Some(number) = self.answered {
            open.answered.remove(&number);
        }
        if let Some(count) = open.peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.peers.remove(&self.peer);
            }
        }
        drop(open);
        self.places.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_peers_count_by_their_network() {
        let network = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:0:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }
}
