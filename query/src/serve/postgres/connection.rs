//! One connection: startup, then message after message, until one of the two has enough.

use super::Door;
use super::conversation::Conversation;
use super::failure::Failure;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::startup::{self, Turned};
use super::wire::{self, Wire};
use pgwire::messages::PgWireBackendMessage as Reply;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

/// How long a client may take to say who it is.
const STARTUP: Duration = Duration::from_secs(10);
/// How long a client that is told goodbye may take to hear it.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves one client.
pub(super) async fn serve(
    socket: TcpStream,
    door: Arc<Door>,
    starting: OwnedSemaphorePermit,
    mut stop: watch::Receiver<bool>,
) {
    // Slower without it, but as right.
    socket.set_nodelay(true).ok();
    let until = Instant::now() + STARTUP;
    let agreed = tokio::select! {
        agreed = tokio::time::timeout_at(until, wire::agree(&door, socket)) => agreed,
        () = stopped(&mut stop) => return,
    };
    let Ok(Ok(Wire { incoming, outgoing, came, is_encrypted })) = agreed else { return };
    let mut inbox = Inbox::new(came, incoming, door.longest_message());
    let mut outbox = Outbox::new(outgoing);
    let welcome = startup::welcome(&door, &mut inbox, &mut outbox, is_encrypted);
    let welcome = tokio::select! {
        welcome = tokio::time::timeout_at(until, welcome) => welcome,
        () = stopped(&mut stop) => Ok(Err(stopping().into())),
    };
    drop(starting);
    let guest = match welcome {
        Ok(Ok(guest)) => guest,
        Ok(Err(Turned::Down(failure))) => return farewell(&mut outbox, &failure).await,
        Ok(Err(Turned::Away)) | Err(_) => return,
    };
    let mut conversation = Conversation::new(door, guest, outbox);
    loop {
        let received = tokio::select! {
            received = inbox.next() => received,
            () = stopped(&mut stop) => return farewell(conversation.outbox(), &stopping()).await,
        };
        let answered = tokio::select! {
            answered = conversation.answer(received) => answered,
            // With the conversation goes what it was running.
            () = inbox.closed() => return,
        };
        if !matches!(answered, Ok(true)) {
            return drop(tokio::time::timeout(GOODBYE, conversation.outbox().close()).await);
        }
    }
}

/// Ready when the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the server has gone already.
    drop(stop.wait_for(|stop| *stop).await);
}

fn stopping() -> Failure {
    Failure::fatal("57P01", "the server is stopping")
}

async fn farewell(outbox: &mut Outbox, failure: &Failure) {
    if outbox.put(&Reply::ErrorResponse(failure.response())).is_ok() {
        drop(tokio::time::timeout(GOODBYE, outbox.close()).await);
    }
}
