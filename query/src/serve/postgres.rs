//! The PostgreSQL door: simple and extended queries, prepared statements, cursors, and what clients ask of the catalog.
//!
//! What always holds:
//!
//! - Every connection has a [`Session`](crate::Session) of its own; statements reach the engine through it and nowhere
//!   else, so that guard and limits hold here as at every door.
//! - Rows are sent as they come. A client that cancels, or goes away, takes its query along.
//! - No bytes make a connection panic, hold more than its share of memory, or keep others waiting.

pub(crate) mod catalog;

mod cancel;
mod columns;
mod command;
mod connection;
mod conversation;
mod described;
mod extended;
mod failure;
mod inbox;
mod message;
mod names;
mod outbox;
mod planning;
mod portal;
mod proof;
mod reading;
mod rewriting;
mod settings;
mod startup;
mod values;
mod wire;

use crate::engine::{EngineSession, Resolved};
use crate::error::QueryError;
use crate::worker::QueryService;
use access::tls::{Listener, Tls};
use access::{Gate, PeerSlot, Peers};
use cancel::Cancels;
use failure::Failure;
pub(crate) use reading::Reader;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Clients that may be saying who they are at once; they are not counted as connections yet.
const STARTING: usize = 128;
/// Those of one address: some are left for the others.
const STARTING_OF_ADDRESS: usize = STARTING / 8 * 7;
/// Texts that are read at once: the longest takes some fifty megabytes while it is read.
const READING: usize = 2;
/// Statements of the greatest length that a connection may keep, in prepared statements, cursors and portals together.
const KEPT_STATEMENTS: usize = 8;
/// How long running queries have when the server stops.
const GRACE: Duration = Duration::from_secs(2);
/// A pause when the machine has no more sockets to give.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Debug)]
struct Door {
    service: QueryService,
    gate: Arc<Gate>,
    tls: Option<Arc<Tls>>,
    reader: Arc<Reader>,
    /// Texts that may be read at once, which is done in the server's own memory.
    reading: Arc<Semaphore>,
    cancels: Arc<Cancels>,
    slots: Arc<Semaphore>,
    /// Who has them.
    peers: Arc<Peers>,
    starting: Arc<Semaphore>,
    /// Who is saying who it is.
    starting_peers: Arc<Peers>,
}

/// A client that is saying who it is.
#[derive(Debug)]
struct Starting {
    address: IpAddr,
    _slot: (OwnedSemaphorePermit, PeerSlot),
}

/// A place among the connections, given back when it is dropped.
#[derive(Debug)]
struct Slot {
    _slot: (OwnedSemaphorePermit, PeerSlot),
}

impl Door {
    fn new(service: QueryService, gate: Arc<Gate>, tls: Option<Arc<Tls>>) -> Self {
        let slots = Arc::new(Semaphore::new(service.limits().connections));
        let peers = Peers::new(service.limits().connections_per_address);
        let starting = Arc::new(Semaphore::new(STARTING));
        let starting_peers = Peers::new(STARTING_OF_ADDRESS);
        let (reader, cancels) = (Arc::default(), Arc::default());
        let reading = Arc::new(Semaphore::new(READING));
        Self { service, gate, tls, reader, reading, cancels, slots, peers, starting, starting_peers }
    }

    /// Lets a client say who it is, unless too many do.
    fn start(&self, address: IpAddr) -> Option<Starting> {
        let of_address = self.starting_peers.enter(address);
        let slot = of_address.and_then(|peer| {
            let slot = Arc::clone(&self.starting).try_acquire_owned().ok()?;
            Some((slot, peer))
        });
        if slot.is_none() {
            self.gate.count(access::Reason::Connections);
        }
        Some(Starting { address, _slot: slot? })
    }

    /// A place among the connections.
    fn slot(&self, address: IpAddr) -> Result<Slot, Failure> {
        let limits = self.service.limits();
        let full = |message: String| {
            self.gate.count(access::Reason::Connections);
            Failure::fatal("53300", message).hint("close one, or try again in a moment")
        };
        let peer = self.peers.enter(address).ok_or_else(|| {
            full(format!("there are {} connections of this address already", limits.connections_per_address))
        })?;
        let slot = Arc::clone(&self.slots)
            .try_acquire_owned()
            .map_err(|_| full(format!("there are {} connections already", limits.connections)))?;
        Ok(Slot { _slot: (slot, peer) })
    }

    /// Memory that a connection may use for what it keeps.
    fn kept_bytes(&self) -> usize {
        KEPT_STATEMENTS * self.service.limits().statement_bytes
    }

    /// A statement, its values, and what is around them.
    fn longest_message(&self) -> usize {
        4 * self.service.limits().statement_bytes
    }
}

/// Plans one statement of a client's text, in a worker process. Needs a deep stack.
pub(crate) async fn resolve(
    session: &EngineSession,
    sql: &str,
    user: &str,
    index: usize,
    types: &[u32],
) -> Result<Resolved, QueryError> {
    planning::resolve(session, session.reader(), sql, user, index, types).await
}

/// Serves `listener` until `shutdown` is ready, and what is running then for a moment longer.
pub async fn run(
    listener: Listener,
    service: QueryService,
    gate: Arc<Gate>,
    shutdown: impl Future<Output = ()>,
) {
    let Listener { socket: listener, tls } = listener;
    let door = Arc::new(Door::new(service, gate, tls));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    // Too many who say nothing: whoever is real comes again.
                    let Some(starting) = door.start(peer.ip()) else { continue };
                    connections.spawn(connection::serve(socket, Arc::clone(&door), starting, stopped.clone()));
                }
                Err(error) => {
                    tracing::warn!("a PostgreSQL client could not be accepted: {error}");
                    tokio::time::sleep(OUT_OF_SOCKETS).await;
                }
            },
            Some(ended) = connections.join_next() => report(ended),
        }
    }
    drop(listener);
    stop.send_replace(true);
    let drained = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        connections.shutdown().await;
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a PostgreSQL connection ended unexpectedly: {error}");
    }
}
