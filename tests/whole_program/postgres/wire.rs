//! A PostgreSQL client that sends exactly the bytes it is given.

use crate::whole_program::server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A timeout that is long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub(super) struct Wire(TcpStream);

/// A message of the server: its kind, and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerMessage {
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

impl ServerMessage {
    /// Returns a field of an error.
    pub(super) fn field(&self, letter: u8) -> Option<String> {
        let fields = self.body.split(|byte| *byte == 0);
        let found = fields.filter_map(|field| field.split_first()).find(|(first, _)| **first == letter)?;
        Some(String::from_utf8_lossy(found.1).into_owned())
    }
}

impl Wire {
    /// Connects, and sends nothing.
    pub(super) fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address("postgres")).expect("the door is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Self(stream)
    }

    /// Connects, and completes the startup.
    pub(super) fn connect(server: &Server) -> Self {
        let mut wire = Self::open(server);
        wire.send(&startup(&[("user", "ann"), ("database", "faultline")]));
        let greeted = wire.until_ready();
        assert_eq!(greeted.first().map(|said| said.kind), Some(b'R'), "{greeted:?}");
        wire
    }

    /// Sends bytes as they are. Errors are ignored, because the server may have disconnected.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// Sends a simple query.
    pub(super) fn ask(&mut self, sql: &str) {
        self.send(&message(b'Q', &text(sql)));
    }

    /// Returns the next message, or `None` when the server has disconnected.
    pub(super) fn next(&mut self) -> Option<ServerMessage> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).ok()?;
        Some(ServerMessage { kind: head[0], body })
    }

    /// Reads one byte, as in the response to a request for encryption.
    pub(super) fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    /// Returns all messages until the server is ready, or has disconnected.
    pub(super) fn until_ready(&mut self) -> Vec<ServerMessage> {
        let mut all = Vec::new();
        while let Some(said) = self.next() {
            let is_ready = said.kind == b'Z';
            all.push(said);
            if is_ready {
                break;
            }
        }
        all
    }

    /// Returns the kinds of all messages until the server is ready.
    pub(super) fn kinds(&mut self) -> String {
        self.until_ready().iter().map(|said| char::from(said.kind)).collect()
    }
}

/// Returns a text with its zero byte.
pub(super) fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Returns a message with its kind and its length.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// Returns a message before startup: a length, a code, and the rest.
pub(super) fn opening(code: u32, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(rest.len() + 8).expect("a short message");
    [&length.to_be_bytes()[..], &code.to_be_bytes(), rest].concat()
}

/// Returns the first message of a client.
pub(super) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let pairs = parameters.iter().flat_map(|(name, value)| [text(name), text(value)].concat());
    let body: Vec<u8> = pairs.chain([0]).collect();
    opening(3 << 16, &body)
}
