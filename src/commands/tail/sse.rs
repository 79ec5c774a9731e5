//! Server-sent events, parsed as they arrive.
//!
//! Bytes arrive in arbitrary pieces; a message ends with an empty line. A message that is longer than any that
//! Faultline sends ends the connection, so that it cannot exhaust the memory.

use crate::client;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;

/// The time without any message after which the server is considered gone. A server sends one at least every 15
/// seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// The maximum size of a message. An event has at most a few megabytes.
const MESSAGE_BYTES: usize = 64 << 20;

/// A message of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// An event, as JSON.
    Event { id: Option<String>, json: String },
    /// The position up to which the server has searched, without an event.
    Position { id: Option<String> },
    /// Events were missed.
    Gap { id: Option<String> },
    /// No more messages will follow.
    End { reason: String },
}

/// The messages of one connection.
pub(super) struct EventStream {
    url: String,
    body: Incoming,
    parser: SseParser,
}

impl EventStream {
    pub(super) fn new(url: String, body: Incoming) -> Self {
        Self { url, body, parser: SseParser::default() }
    }

    /// Waits for the next message. An error is a sentence that says why none will arrive.
    pub(super) async fn next(&mut self) -> Result<Message, String> {
        loop {
            if let Some(message) = self.parser.next() {
                return Ok(message);
            }
            let frame = timeout(IDLE_TIMEOUT, self.body.frame()).await;
            match frame.map_err(|_| format!("{} has not said anything for a while", self.url))? {
                None => return Err(format!("{} has ended the connection", self.url)),
                Some(Err(error)) => return Err(client::connection_error(&self.url, &error)),
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.parser.push(bytes);
                    }
                }
            }
            if self.parser.pending_bytes() > MESSAGE_BYTES {
                return Err(format!("{} sends a message without an end", self.url));
            }
        }
    }
}

/// Assembles messages from bytes.
#[derive(Debug, Default)]
struct SseParser {
    bytes: Vec<u8>,
    /// The number of bytes that were parsed.
    consumed: usize,
}

impl SseParser {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
        self.bytes.extend_from_slice(bytes);
    }

    fn pending_bytes(&self) -> usize {
        self.bytes.len() - self.consumed
    }

    /// Returns the next complete message.
    fn next(&mut self) -> Option<Message> {
        let rest = &self.bytes[self.consumed..];
        let end = memchr::memmem::find(rest, b"\n\n")?;
        let text = String::from_utf8_lossy(&rest[..end]);
        let message = parse_message(&text);
        self.consumed += end + 2;
        Some(message)
    }
}

fn parse_message(text: &str) -> Message {
    let (mut id, mut kind, mut data) = (None, "", String::new());
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => id = Some(value.to_owned()),
            "event" => kind = value,
            "data" => data.push_str(value),
            // Comments and other fields are ignored.
            _ => {}
        }
    }
    match kind {
        "" if data.is_empty() => Message::Position { id },
        "" => Message::Event { id, json: data },
        "gap" => Message::Gap { id },
        "end" => Message::End { reason: reason(&data) },
        _ => Message::Position { id },
    }
}

fn reason(data: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(data).ok();
    let reason = value.and_then(|value| value.get("reason")?.as_str().map(str::to_owned));
    reason.unwrap_or_else(|| "the server has ended the connection".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let text = ": following\nretry: 1000\nid: 7\n\nid: 8.0\ndata: {\"a\":\"ü\"}\n\n\
                    event: gap\nid: 9\ndata: {}\n\nevent: end\ndata: {\"reason\":\"enough\"}\n\nid: 1";
        let id = |text: &str| Some(text.to_owned());
        let expected = [
            Message::Position { id: id("7") },
            Message::Event { id: id("8.0"), json: "{\"a\":\"ü\"}".to_owned() },
            Message::Gap { id: id("9") },
            Message::End { reason: "enough".to_owned() },
        ];
        for size in 1..=text.len() {
            let mut parser = SseParser::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                parser.push(piece);
                found.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(found, expected, "in pieces of {size}");
            assert_eq!(parser.pending_bytes(), 5);
        }
    }
}
