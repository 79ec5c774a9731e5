//! Writes messages to a socket through a buffer.

use super::tls_negotiation::Outgoing;
use bytes::BytesMut;
use pgwire::error::PgWireError;
use pgwire::messages::data::DataRow;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::{Message as _, PgWireBackendMessage};
use std::io;
use tokio::io::AsyncWriteExt;

/// The size at which the buffer is written to the socket.
const WRITE_BUFFER: usize = 64 << 10;

/// Writes messages to a client.
pub(super) struct MessageWriter {
    socket: Outgoing,
    buffer: BytesMut,
}

impl MessageWriter {
    pub(super) fn new(socket: Outgoing) -> Self {
        Self { socket, buffer: BytesMut::new() }
    }

    /// Adds a message to the buffer.
    pub(super) fn write(&mut self, message: &PgWireBackendMessage) -> io::Result<()> {
        message.encode(&mut self.buffer).map_err(unwritable)
    }

    /// Adds a row to the buffer.
    pub(super) fn write_row(&mut self, row: &DataRow) -> io::Result<()> {
        row.encode(&mut self.buffer).map_err(unwritable)
    }

    /// Adds `ReadyForQuery`, and writes the buffer to the socket.
    pub(super) async fn ready(&mut self, ready: ReadyForQuery) -> io::Result<()> {
        self.write(&PgWireBackendMessage::ReadyForQuery(ready))?;
        self.flush().await
    }

    /// Writes the buffer to the socket if it is full.
    pub(super) async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < WRITE_BUFFER {
            return Ok(());
        }
        self.flush().await
    }

    /// Writes the buffer to the socket.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all_buf(&mut self.buffer).await?;
        // A TLS stream buffers records until it is flushed.
        self.socket.flush().await?;
        if self.buffer.capacity() > 2 * WRITE_BUFFER {
            // A single long text must not keep a large buffer allocated.
            self.buffer = BytesMut::new();
        }
        Ok(())
    }

    /// Writes the buffer to the socket, and closes the connection.
    pub(super) async fn close(&mut self) {
        // The client may have disconnected already.
        drop(self.flush().await);
        drop(self.socket.shutdown().await);
    }
}

fn unwritable(error: PgWireError) -> io::Error {
    io::Error::other(error)
}
