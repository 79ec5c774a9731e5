//! Connections by the address of their peer: no address may hold all that there are.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The connections of one listener, by where they come from.
#[derive(Debug)]
pub struct Peers {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of an address; dropped when it ends.
#[derive(Debug)]
pub struct PeerSlot {
    peers: Arc<Peers>,
    network: IpAddr,
}

impl Peers {
    /// Lets every address have at most so many connections.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// A place for a connection; none when the address has as many as it may.
    #[must_use]
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<PeerSlot> {
        let network = network_of(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(network).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(PeerSlot { peers: Arc::clone(self), network })
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        let mut open = self.peers.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.network);
            }
        }
    }
}

/// What counts as one address: of IPv6, the 64 bits that a machine is given to choose the others below.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let peers = Peers::new(2);
        let enter = |address: &str| peers.enter(address.parse().unwrap());
        let held = [enter("10.0.0.1").unwrap(), enter("::ffff:10.0.0.1").unwrap()];
        assert!(enter("10.0.0.1").is_none());
        let _others =
            [enter("10.0.0.2").unwrap(), enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()];
        assert!(enter("2001:db8::ffff:1").is_none(), "the same network");
        assert!(enter("2001:db8:0:1::1").is_some());
        drop(held);
        assert!(enter("10.0.0.1").is_some());
        assert_eq!(peers.open.lock().unwrap().len(), 2, "who has gone is forgotten");
    }
}
