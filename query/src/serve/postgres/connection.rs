//! One connection: it starts a session, and then handles message after message until the client, the server or a limit
//! ends it.

use super::PostgresServer;
use super::error::PgError;
use super::reader::MessageReader;
use super::session::PostgresSession;
use super::startup::{self, StartupError};
use super::tls_negotiation::{self, NegotiatedStream};
use super::writer::MessageWriter;
use auth::Denial;
use auth::listener::{Connection, ConnectionHandler};
use pgwire::messages::PgWireBackendMessage as Reply;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The maximum time that a client may take to start a session.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time that a client may take to read the last message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl ConnectionHandler for PostgresServer {
    async fn handle(self: Arc<Self>, connection: Connection) {
        let Connection { stream, address, tls, permit, mut closing, .. } = connection;
        // Without this option responses are slower, and no less correct.
        stream.set_nodelay(true).ok();
        let deadline = Instant::now() + STARTUP_TIMEOUT;
        let negotiation = tls_negotiation::negotiate(tls.as_deref(), stream);
        let negotiated = tokio::select! {
            negotiated = tokio::time::timeout_at(deadline, negotiation) => negotiated,
            () = stopped(&mut closing) => return,
        };
        let Ok(Ok(NegotiatedStream { incoming, outgoing, received, is_encrypted })) = negotiated else {
            return;
        };
        let mut reader = MessageReader::new(received, incoming, self.max_message_bytes());
        let mut writer = MessageWriter::new(outgoing);
        let needs_tls = tls.is_some() && !is_encrypted;
        let startup = startup::start_session(&self, &mut reader, &mut writer, needs_tls, address);
        let started = tokio::select! {
            started = tokio::time::timeout_at(deadline, startup) => started,
            () = stopped(&mut closing) => Ok(Err(stopping().into())),
        };
        // The session has a permit of its own.
        drop(permit);
        let started = match started {
            Ok(Ok(started)) => started,
            Ok(Err(StartupError::Rejected(error))) => return send_final_error(&mut writer, &error).await,
            Ok(Err(StartupError::Disconnected)) | Err(_) => return,
        };
        let client = started.client.clone();
        let idle = self.service.limits().idle;
        let mut session = PostgresSession::new(self, started, writer);
        let error = tokio::select! {
            error = handle_messages(&mut session, &mut reader, &mut closing, idle) => error,
            // Dropping the future stops a running query. The writer holds whole messages only.
            denial = client.revoked() => Some(revoked(&denial)),
        };
        match error {
            Some(error) => send_final_error(session.writer(), &error).await,
            None => drop(tokio::time::timeout(CLOSE_TIMEOUT, session.writer().close()).await),
        }
    }
}

/// Handles message after message. Returns the error that the client gets at the end, if there is one.
async fn handle_messages(
    session: &mut PostgresSession,
    reader: &mut MessageReader,
    stop: &mut watch::Receiver<bool>,
    idle: Duration,
) -> Option<PgError> {
    loop {
        let received = tokio::select! {
            received = reader.next() => received,
            () = stopped(stop) => return Some(stopping()),
            () = tokio::time::sleep(idle) => return Some(idle_for(idle)),
        };
        let result = tokio::select! {
            result = session.handle(received) => result,
            // Dropping the future stops a running query.
            () = reader.closed() => return None,
        };
        if !matches!(result, Ok(true)) {
            return None;
        }
    }
}

/// Waits until the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the accept loop has already ended.
    drop(stop.wait_for(|stop| *stop).await);
}

fn stopping() -> PgError {
    PgError::fatal("57P01", "the server is stopping")
}

fn idle_for(idle: Duration) -> PgError {
    let message = format!("the session was idle for {} s", idle.as_secs());
    PgError::fatal("57P05", message).hint("connect again; --query-idle sets how long a session may be idle")
}

fn revoked(denial: &Denial) -> PgError {
    let message = format!("the session ends because its token was revoked: {denial}");
    PgError::fatal("57P01", message).hint("connect again with a token of the scope query")
}

async fn send_final_error(writer: &mut MessageWriter, error: &PgError) {
    if writer.write(&Reply::ErrorResponse(error.response())).is_ok() {
        drop(tokio::time::timeout(CLOSE_TIMEOUT, writer.close()).await);
    }
}
