//! A limit on the connections of one listener: in total, and from one address, so that no address can hold them all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts open connections in total and by client address, and limits both.
#[derive(Debug)]
pub struct ConnectionLimiter {
    max_total: usize,
    max_per_address: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    by_network: HashMap<IpAddr, usize>,
}

/// Permission for one connection. Dropping it releases the connection.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    network: IpAddr,
}

/// The limit that a connection would exceed. This is a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// The limit on all connections of a listener.
    Total,
    /// The limit on the connections from one address.
    Address,
}

impl ConnectionLimit {
    /// Every limit.
    pub const ALL: [Self; 2] = [Self::Total, Self::Address];

    /// Returns a short, stable name, which metrics use as a label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Address => "address",
        }
    }
}

impl ConnectionLimiter {
    /// Creates a limiter that permits this many connections in total, and this many for each address.
    #[must_use]
    pub fn new(max_total: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self { max_total, max_per_address, open: Mutex::default() })
    }

    /// Returns a permit for a connection from this address.
    ///
    /// # Errors
    /// The limit that is reached. The limit of the address is checked first.
    pub fn try_acquire(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, ConnectionLimit> {
        let network = network_of(address);
        let mut open = self.open();
        if open.by_network.get(&network).is_some_and(|count| *count >= self.max_per_address) {
            return Err(ConnectionLimit::Address);
        }
        if open.total >= self.max_total {
            return Err(ConnectionLimit::Total);
        }
        open.total += 1;
        *open.by_network.entry(network).or_default() += 1;
        Ok(ConnectionPermit { limiter: Arc::clone(self), network })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.open();
        open.total = open.total.saturating_sub(1);
        if let Some(count) = open.by_network.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.by_network.remove(&self.network);
            }
        }
    }
}

/// Returns the network that counts as one address: for IPv6 the /64 network, in which one machine can choose its
/// address.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquire(limiter: &Arc<ConnectionLimiter>, address: &str) -> Result<ConnectionPermit, ConnectionLimit> {
        limiter.try_acquire(address.parse().unwrap())
    }

    #[test]
    fn an_address_gets_no_more_than_its_maximum() {
        let limiter = ConnectionLimiter::new(100, 2);
        let acquire = |address: &str| acquire(&limiter, address);
        let permits = [acquire("10.0.0.1").unwrap(), acquire("::ffff:10.0.0.1").unwrap()];
        assert_eq!(acquire("10.0.0.1").unwrap_err(), ConnectionLimit::Address);
        let _others =
            [acquire("10.0.0.2").unwrap(), acquire("2001:db8::1").unwrap(), acquire("2001:db8::2").unwrap()];
        assert!(acquire("2001:db8::ffff:1").is_err(), "the same network");
        assert!(acquire("2001:db8:0:1::1").is_ok());
        drop(permits);
        assert!(acquire("10.0.0.1").is_ok());
        assert_eq!(limiter.open().by_network.len(), 2, "addresses without connections are removed");
    }

    #[test]
    fn all_addresses_together_get_no_more_than_the_total() {
        let limiter = ConnectionLimiter::new(2, 2);
        let first = acquire(&limiter, "10.0.0.1").unwrap();
        let _second = acquire(&limiter, "10.0.0.2").unwrap();
        assert_eq!(acquire(&limiter, "10.0.0.3").unwrap_err(), ConnectionLimit::Total);
        assert_eq!(limiter.open().by_network.len(), 2, "a rejected address is not counted");
        drop(first);
        assert!(acquire(&limiter, "10.0.0.3").is_ok());
    }
}
