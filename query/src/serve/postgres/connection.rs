//! One connection: startup, then message after message, until one of the two has enough.

use super::conversation::Conversation;
use super::failure::Failure;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::startup::{self, Turned};
use super::wire::{self, Wire};
use super::{Door, Starting};
use access::Denied;
use pgwire::messages::PgWireBackendMessage as Reply;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a client may take to say who it is.
const STARTUP: Duration = Duration::from_secs(10);
/// How long a client that is told goodbye may take to hear it.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves one client.
pub(super) async fn serve(
    socket: TcpStream,
    door: Arc<Door>,
    starting: Starting,
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
    let welcome = startup::welcome(&door, &mut inbox, &mut outbox, is_encrypted, starting.address);
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
    let client = guest.client.clone();
    let idle = door.service.limits().idle;
    let mut conversation = Conversation::new(door, guest, outbox);
    let failure = tokio::select! {
        failure = converse(&mut conversation, &mut inbox, &mut stop, idle) => failure,
        // With the conversation goes what it was running; what it has put in the outbox are whole messages.
        denied = client.revoked() => Some(revoked(&denied)),
    };
    match failure {
        Some(failure) => farewell(conversation.outbox(), &failure).await,
        None => drop(tokio::time::timeout(GOODBYE, conversation.outbox().close()).await),
    }
}

/// Answers message after message; returns what the client is told at the end, if there is anything to tell.
async fn converse(
    conversation: &mut Conversation,
    inbox: &mut Inbox,
    stop: &mut watch::Receiver<bool>,
    idle: Duration,
) -> Option<Failure> {
    loop {
        let received = tokio::select! {
            received = inbox.next() => received,
            () = stopped(stop) => return Some(stopping()),
            () = tokio::time::sleep(idle) => return Some(idle_for(idle)),
        };
        let answered = tokio::select! {
            answered = conversation.answer(received) => answered,
            // With the conversation goes what it was running.
            () = inbox.closed() => return None,
        };
        if !matches!(answered, Ok(true)) {
            return None;
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

fn idle_for(idle: Duration) -> Failure {
    let message = format!("the session was idle for {} s", idle.as_secs());
    Failure::fatal("57P05", message).hint("connect again; --query-idle sets how long a session may be idle")
}

fn revoked(denied: &Denied) -> Failure {
    let message = format!("the session ends because its token was revoked: {denied}");
    Failure::fatal("57P01", message).hint("connect again with a token of the scope query")
}

async fn farewell(outbox: &mut Outbox, failure: &Failure) {
    if outbox.put(&Reply::ErrorResponse(failure.response())).is_ok() {
        drop(tokio::time::timeout(GOODBYE, outbox.close()).await);
    }
}
