//! Writes messages to a socket, several at a time.

use super::wire::Outgoing;
use bytes::BytesMut;
use pgwire::error::PgWireError;
use pgwire::messages::data::DataRow;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::{Message as _, PgWireBackendMessage};
use std::io;
use tokio::io::AsyncWriteExt;

/// What is gathered before it is written.
const GATHERED: usize = 64 << 10;

/// What is on its way to a client.
pub(super) struct Outbox {
    socket: Outgoing,
    buffer: BytesMut,
}

impl Outbox {
    pub(super) fn new(socket: Outgoing) -> Self {
        Self { socket, buffer: BytesMut::new() }
    }

    /// Adds a message.
    pub(super) fn put(&mut self, message: &PgWireBackendMessage) -> io::Result<()> {
        message.encode(&mut self.buffer).map_err(unwritable)
    }

    /// Adds a row.
    pub(super) fn put_row(&mut self, row: &DataRow) -> io::Result<()> {
        row.encode(&mut self.buffer).map_err(unwritable)
    }

    /// Says that the client may go on, and sends everything.
    pub(super) async fn ready(&mut self, ready: ReadyForQuery) -> io::Result<()> {
        self.put(&PgWireBackendMessage::ReadyForQuery(ready))?;
        self.flush().await
    }

    /// Sends what has gathered, if it is much.
    pub(super) async fn flush_much(&mut self) -> io::Result<()> {
        if self.buffer.len() < GATHERED {
            return Ok(());
        }
        self.flush().await
    }

    /// Sends everything.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all_buf(&mut self.buffer).await?;
        // What is encrypted is held back until it is asked for.
        self.socket.flush().await?;
        if self.buffer.capacity() > 2 * GATHERED {
            // One long text must not cost a connection its room for ever.
            self.buffer = BytesMut::new();
        }
        Ok(())
    }

    /// Sends everything, and says goodbye.
    pub(super) async fn close(&mut self) {
        // Nobody may be there any more.
        drop(self.flush().await);
        drop(self.socket.shutdown().await);
    }
}

fn unwritable(error: PgWireError) -> io::Error {
    io::Error::other(error)
}
