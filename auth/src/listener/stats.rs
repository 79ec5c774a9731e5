//! Counters of the connections of every listener, by protocol. The accept loop writes them; the metrics read them.

use super::ListenerProtocol;
use crate::ConnectionLimit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The connection counters of all listeners.
#[derive(Debug, Default)]
pub struct ConnectionStats {
    protocols: [ProtocolStats; ListenerProtocol::ALL.len()],
}

/// The connection counters of one protocol.
#[derive(Debug, Default)]
pub struct ProtocolStats {
    opened: AtomicU64,
    closed: AtomicU64,
    rejected: [AtomicU64; ConnectionLimit::ALL.len()],
    reserved: AtomicU64,
    accept_errors: AtomicU64,
}

impl ConnectionStats {
    /// Returns the counters of one protocol.
    #[must_use]
    pub fn of(&self, protocol: ListenerProtocol) -> &ProtocolStats {
        &self.protocols[protocol as usize]
    }

    /// Returns the value of one counter for each protocol.
    #[must_use]
    pub fn by_protocol(
        &self,
        read: fn(&ProtocolStats) -> u64,
    ) -> [(ListenerProtocol, u64); ListenerProtocol::ALL.len()] {
        ListenerProtocol::ALL.map(|protocol| (protocol, read(self.of(protocol))))
    }

    /// Returns the sum of a counter over all protocols.
    #[must_use]
    pub fn total(&self, read: fn(&ProtocolStats) -> u64) -> u64 {
        self.protocols.iter().map(read).sum()
    }
}

impl ProtocolStats {
    /// Returns the number of connections opened since the start.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// Returns the number of connections that are open.
    #[must_use]
    pub fn open(&self) -> u64 {
        // Read in this order, a connection that closes meanwhile cannot make the difference negative.
        let closed = self.closed.load(Relaxed);
        self.opened().saturating_sub(closed)
    }

    /// Returns the number of connections that were closed because this limit was reached.
    #[must_use]
    pub fn rejected_by(&self, limit: ConnectionLimit) -> u64 {
        self.rejected[limit as usize].load(Relaxed)
    }

    /// Returns the number of connections that were closed because a limit was reached.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        ConnectionLimit::ALL.into_iter().map(|limit| self.rejected_by(limit)).sum()
    }

    /// Returns the number of connections that were admitted to the reserve because a limit was reached.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Relaxed)
    }

    /// Returns the number of times that `accept` failed.
    #[must_use]
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Relaxed)
    }

    /// Counts a connection that is closed because a limit was reached.
    pub fn count_rejection(&self, limit: ConnectionLimit) {
        self.rejected[limit as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn count_opened(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    pub(super) fn count_closed(&self) {
        self.closed.fetch_add(1, Relaxed);
    }

    pub(super) fn count_reserved(&self) {
        self.reserved.fetch_add(1, Relaxed);
    }

    pub(super) fn count_accept_error(&self) {
        self.accept_errors.fetch_add(1, Relaxed);
    }
}
