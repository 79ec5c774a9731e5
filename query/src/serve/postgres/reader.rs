//! Reads messages from a socket within limits.
//!
//! Invariant: memory is allocated as a message arrives, and never more than the limit. A message that is too long is
//! skipped, and the connection continues.

use super::error::PgError;
use super::message::Message;
use super::tls_negotiation::Incoming;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

/// The number of bytes that are read ahead while a query runs.
const READ_AHEAD: usize = 64 << 10;
/// The length of a message header: the type of the message, and its length.
const HEADER_BYTES: usize = 5;

/// Reads the messages of a client.
pub(super) struct MessageReader {
    socket: Incoming,
    buffer: BytesMut,
    /// The maximum length of a message.
    most: usize,
    /// The number of bytes that are left to skip of a message that is too long.
    skip: usize,
}

/// The result of reading a message.
#[derive(Debug)]
pub(super) enum Received {
    Message(Message),
    /// An invalid message, with its error. The flag is true if messages are skipped until `Sync`.
    Invalid(PgError, bool),
    /// The client has disconnected.
    Closed,
}

impl MessageReader {
    /// Creates a reader of bytes that were received already, and then of the socket.
    pub(super) fn new(buffer: BytesMut, socket: Incoming, most: usize) -> Self {
        Self { socket, buffer, most, skip: 0 }
    }

    /// Reads the next message.
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

    /// Reads a startup message: a length, and as many bytes. Returns `None` when the client has disconnected.
    pub(super) async fn next_startup_message(&mut self, most: usize) -> Result<Option<Bytes>, PgError> {
        while self.buffer.len() < 4 {
            if !self.read().await {
                return Ok(None);
            }
        }
        let length = (&self.buffer[..4]).get_u32() as usize;
        // The shortest message has a length and a code.
        if !(8..=most).contains(&length) {
            return Err(PgError::fatal("08P01", "this is not a startup message of the PostgreSQL protocol"));
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

    /// Waits until the client disconnects. Bytes that it sends meanwhile are buffered, up to a limit.
    pub(super) async fn closed(&mut self) {
        loop {
            if self.buffer.len() >= READ_AHEAD.min(self.most) {
                // With a full buffer a disconnect cannot be noticed; a write or the time limit ends the query.
                std::future::pending::<()>().await;
            }
            if !self.read().await {
                return;
            }
        }
    }

    /// Reads more bytes. Returns false at the end of the stream.
    async fn read(&mut self) -> bool {
        self.discard();
        matches!(self.socket.read_buf(&mut self.buffer).await, Ok(1..))
    }

    fn discard(&mut self) {
        let known = self.skip.min(self.buffer.len());
        self.buffer.advance(known);
        self.skip -= known;
    }

    /// Takes a complete message from the buffer.
    fn take(&mut self) -> Option<Received> {
        self.discard();
        if self.skip > 0 || self.buffer.len() < HEADER_BYTES {
            return None;
        }
        let kind = self.buffer[0];
        let length = (&self.buffer[1..HEADER_BYTES]).get_u32() as usize;
        let Some(body) = length.checked_sub(4).filter(|_| length <= i32::MAX as usize) else {
            return Some(framing_error());
        };
        if body > self.most {
            self.buffer.advance(HEADER_BYTES);
            self.skip = body;
            let message = format!("a message has {body} bytes; at most {} are read", self.most);
            return Some(Received::Invalid(PgError::error("54000", message), Message::is_extended(kind)));
        }
        if self.buffer.len() < HEADER_BYTES + body {
            return None;
        }
        self.buffer.advance(HEADER_BYTES);
        let body = self.buffer.split_to(body).freeze();
        Some(match Message::read(kind, body) {
            Some(Ok(message)) => Received::Message(message),
            Some(Err(error)) => Received::Invalid(error, Message::is_extended(kind)),
            None => framing_error(),
        })
    }
}

/// Returns the error after which message boundaries are unknown.
fn framing_error() -> Received {
    Received::Invalid(PgError::fatal("08P01", "this is not a message of the PostgreSQL protocol"), false)
}
