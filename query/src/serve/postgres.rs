//! The PostgreSQL endpoint: simple and extended queries, prepared statements, cursors, and the catalog.
//!
//! Invariants:
//!
//! - Every connection has a [`Session`](crate::Session) of its own, and statements reach the engine only through it, so
//!   that guard and limits hold here as at every endpoint.
//! - Rows are sent as they are produced. When a client cancels or disconnects, its query stops.
//! - No bytes make a connection panic, hold more than its share of memory, or block other connections.

pub(crate) mod catalog;

mod cancel;
mod catalog_rewriting;
mod column_names;
mod columns;
mod command;
mod connection;
mod error;
mod extended;
mod message;
mod parser;
mod planned_statement;
mod planning;
mod portal;
mod reader;
mod rewriting;
mod scram_auth;
mod session;
mod settings;
mod startup;
mod tls_negotiation;
mod values;
mod writer;

use crate::engine::{DescribedStatement, EngineSession};
use crate::error::QueryError;
use crate::worker::QueryService;
use auth::listener::{ConnectionLimits, ConnectionStats, Listener, ListenerProtocol};
use auth::{Authenticator, ConnectionLimit, ConnectionLimiter, ConnectionPermit};
use cancel::CancelRegistry;
use error::PgError;
pub(crate) use parser::StatementParser;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The maximum number of clients that are starting a session. They do not count as sessions yet.
const STARTUPS: usize = 128;
/// The maximum number of them from one address, so that some are left for others.
const STARTUPS_PER_ADDRESS: usize = STARTUPS / 8 * 7;
/// The maximum number of texts that are parsed at once: the longest takes some fifty megabytes meanwhile.
const PARSERS: usize = 2;
/// The memory of a connection for prepared statements, cursors and portals, in statements of the maximum length.
const RETAINED_STATEMENTS: usize = 8;
/// The time that running queries have to finish when the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// The state that all sessions share.
#[derive(Debug)]
struct PostgresServer {
    service: QueryService,
    authenticator: Arc<Authenticator>,
    /// Limits how many texts are parsed at once, which takes memory of the server itself.
    parsing: Arc<Semaphore>,
    cancels: Arc<CancelRegistry>,
    /// Limits the sessions, in total and of one address.
    sessions: Arc<ConnectionLimiter>,
    connections: Arc<ConnectionStats>,
}

impl PostgresServer {
    fn new(
        service: QueryService,
        authenticator: Arc<Authenticator>,
        connections: Arc<ConnectionStats>,
    ) -> Self {
        let limits = service.limits();
        let sessions = ConnectionLimiter::new(limits.connections, limits.connections_per_address);
        let cancels = Arc::default();
        let parsing = Arc::new(Semaphore::new(PARSERS));
        Self { service, authenticator, parsing, cancels, sessions, connections }
    }

    /// Returns a permit for a session of an authenticated client.
    fn session_permit(&self, address: IpAddr) -> Result<ConnectionPermit, PgError> {
        let limits = self.service.limits();
        self.sessions.try_acquire(address).map_err(|limit| {
            self.authenticator.count_denial(auth::DenialReason::TooManyConnections);
            self.connections.of(ListenerProtocol::Postgres).count_rejection(limit);
            let message = match limit {
                ConnectionLimit::Total => format!("there are {} connections already", limits.connections),
                ConnectionLimit::Address => {
                    let most = limits.connections_per_address;
                    format!("there are {most} connections of this address already")
                }
            };
            PgError::fatal("53300", message).hint("close one, or try again in a moment")
        })
    }

    /// Returns the maximum memory for the prepared statements, cursors and portals of a connection.
    fn retained_bytes(&self) -> usize {
        RETAINED_STATEMENTS * self.service.limits().statement_bytes
    }

    /// Returns the maximum length of a message, which contains a statement or values.
    fn max_message_bytes(&self) -> usize {
        4 * self.service.limits().statement_bytes
    }
}

/// Plans one statement of a client's text, in a worker process. It needs a deep stack.
pub(crate) async fn resolve(
    session: &EngineSession,
    sql: &str,
    user: &str,
    index: usize,
    types: &[u32],
) -> Result<DescribedStatement, QueryError> {
    planning::resolve(session, session.parser(), sql, user, index, types).await
}

/// Serves `listener` until `shutdown` is ready. Then running queries have a moment to end.
///
/// The listener limits the clients that are starting a session; sessions have limits of their own, about which the client
/// gets an error message.
pub async fn run(
    listener: Listener,
    service: QueryService,
    authenticator: Arc<Authenticator>,
    connections: Arc<ConnectionStats>,
    shutdown: impl Future<Output = ()>,
) {
    let limits =
        ConnectionLimits { total: STARTUPS, per_address: STARTUPS_PER_ADDRESS, reserve: None, drain: DRAIN };
    let server = PostgresServer::new(service, authenticator, Arc::clone(&connections));
    auth::listener::serve(listener, limits, server, connections, shutdown).await;
}
