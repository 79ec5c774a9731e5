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

use crate::engine::Engine;
use access::Gate;
use access::tls::{Listener, Tls};
use cancel::Cancels;
use failure::Failure;
use reading::Reader;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Clients that may be saying who they are at once; they are not counted as connections yet.
const STARTING: usize = 128;
/// How long running queries have when the server stops.
const GRACE: Duration = Duration::from_secs(2);
/// A pause when the machine has no more sockets to give.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Debug)]
struct Door {
    engine: Engine,
    gate: Arc<Gate>,
    tls: Option<Arc<Tls>>,
    reader: Reader,
    cancels: Arc<Cancels>,
    slots: Arc<Semaphore>,
    starting: Arc<Semaphore>,
}

impl Door {
    fn new(engine: Engine, gate: Arc<Gate>, tls: Option<Arc<Tls>>) -> Self {
        let slots = Arc::new(Semaphore::new(engine.limits().connections));
        let starting = Arc::new(Semaphore::new(STARTING));
        Self { engine, gate, tls, reader: Reader::default(), cancels: Arc::default(), slots, starting }
    }

    /// A place among the connections.
    fn slot(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.slots).try_acquire_owned().map_err(|_| {
            let message = format!("there are {} connections already", self.engine.limits().connections);
            Failure::fatal("53300", message).hint("close one, or try again in a moment")
        })
    }

    /// A statement, its values, and what is around them.
    fn longest_message(&self) -> usize {
        4 * self.engine.limits().statement_bytes
    }
}

/// Serves `listener` until `shutdown` is ready, and what is running then for a moment longer.
pub async fn run(listener: Listener, engine: Engine, gate: Arc<Gate>, shutdown: impl Future<Output = ()>) {
    let Listener { socket: listener, tls } = listener;
    let door = Arc::new(Door::new(engine, gate, tls));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    // Too many who say nothing: whoever is real comes again.
                    let Ok(starting) = Arc::clone(&door.starting).try_acquire_owned() else { continue };
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
