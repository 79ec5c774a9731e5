//! Reads messages from a socket, within bounds.
//!
//! What always holds: a message takes room as it arrives, and never more than it may have; one that is too long is read
//! past, and the connection goes on.

use super::failure::Failure;
use super::message::Message;
use super::wire::Incoming;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

/// What is read ahead while a query runs.
const READ_AHEAD: usize = 64 << 10;
/// The kind of a message, and its length.
const HEAD: usize = 5;

/// What a client sends.
pub(super) struct Inbox {
    socket: Incoming,
    buffer: BytesMut,
    /// The longest message.
    most: usize,
    /// Bytes of a message that is too long, still to come.
    skip: usize,
}

/// What came.
#[derive(Debug)]
pub(super) enum Received {
    Message(Message),
    /// Something that cannot be answered but with this; whether silence until `Sync` has to follow.
    Bad(Failure, bool),
    /// The client has gone.
    Closed,
}

impl Inbox {
    /// Reads what has come already, then the socket.
    pub(super) fn new(buffer: BytesMut, socket: Incoming, most: usize) -> Self {
        Self { socket, buffer, most, skip: 0 }
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Received {
        loop {
            if let Some(received) = self.take() {
                return received;
            }
            if !self.read().await {
                return Received::Closed;
            }
        }
    }

    /// The next message before startup: a length, and as many bytes. `None` when the client has gone.
    pub(super) async fn next_opening(&mut self, most: usize) -> Result<Option<Bytes>, Failure> {
        while self.buffer.len() < 4 {
            if !self.read().await {
                return Ok(None);
            }
        }
        let length = (&self.buffer[..4]).get_u32() as usize;
        // Room for a length and a code, at least.
        if !(8..=most).contains(&length) {
            return Err(Failure::fatal("08P01", "this is no startup message of the PostgreSQL protocol"));
        }
        while self.buffer.len() < length {
            if !self.read().await {
                return Ok(None);
            }
        }
        let mut message = self.buffer.split_to(length).freeze();
        message.advance(4);
        Ok(Some(message))
    }

    /// Ready when the client has gone. What it sends meanwhile is kept, up to a bound.
    pub(super) async fn closed(&mut self) {
        loop {
            if self.buffer.len() >= READ_AHEAD.min(self.most) {
                // It is not to be heard now whether he is still there; a write, or the limit of time, will tell.
                std::future::pending::<()>().await;
            }
            if !self.read().await {
                return;
            }
        }
    }

    /// False when nothing more comes.
    async fn read(&mut self) -> bool {
        self.discard();
        matches!(self.socket.read_buf(&mut self.buffer).await, Ok(1..))
    }

    fn discard(&mut self) {
        let known = self.skip.min(self.buffer.len());
        self.buffer.advance(known);
        self.skip -= known;
    }

    /// What is whole in the buffer.
    fn take(&mut self) -> Option<Received> {
        self.discard();
        if self.skip > 0 || self.buffer.len() < HEAD {
            return None;
        }
        let kind = self.buffer[0];
        let length = (&self.buffer[1..HEAD]).get_u32() as usize;
        let Some(body) = length.checked_sub(4).filter(|_| length <= i32::MAX as usize) else {
            return Some(out_of_step());
        };
        if body > self.most {
            self.buffer.advance(HEAD);
            self.skip = body;
            let message = format!("a message has {body} bytes; at most {} are read", self.most);
            return Some(Received::Bad(Failure::error("54000", message), Message::is_extended(kind)));
        }
        if self.buffer.len() < HEAD + body {
            return None;
        }
        self.buffer.advance(HEAD);
        let body = self.buffer.split_to(body).freeze();
        Some(match Message::read(kind, body) {
            Some(Ok(message)) => Received::Message(message),
            Some(Err(failure)) => Received::Bad(failure, Message::is_extended(kind)),
            None => out_of_step(),
        })
    }
}

/// What follows cannot be told apart any more.
fn out_of_step() -> Received {
    Received::Bad(Failure::fatal("08P01", "this is no message of the PostgreSQL protocol"), false)
}
