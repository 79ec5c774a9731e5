//! The messages of a tail, as server-sent events, and the positions that they carry.

use serde_json::json;
use std::fmt;

/// The position of a tail: a record of the WAL, all of it or up to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TailPosition {
    pub(super) sequence: u64,
    /// The last row that was sent; `None` after the whole record.
    pub(super) row: Option<u64>,
}

impl TailPosition {
    /// Returns the position after a whole record.
    pub(super) fn after(sequence: u64) -> Self {
        Self { sequence, row: None }
    }

    /// Parses `17` or `17.3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once('.') {
            Some((sequence, row)) => {
                Some(Self { sequence: sequence.parse().ok()?, row: Some(row.parse().ok()?) })
            }
            None => Some(Self::after(text.parse().ok()?)),
        }
    }

    /// Returns the last record that was sent completely.
    pub(super) fn complete(self) -> u64 {
        if self.row.is_some() { self.sequence.saturating_sub(1) } else { self.sequence }
    }
}

impl fmt::Display for TailPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "{}.{row}", self.sequence),
            None => write!(f, "{}", self.sequence),
        }
    }
}

/// Returns the first message: the delay before a reconnect, and the position.
pub(super) fn start(position: TailPosition) -> String {
    format!(": following\nretry: 1000\nid: {position}\n\n")
}

/// Returns the message with an event.
pub(super) fn event(position: TailPosition, json: &str) -> String {
    format!("id: {position}\ndata: {json}\n\n")
}

/// Returns a message with the new position and without an event; clients store the position.
pub(super) fn progress(position: TailPosition) -> String {
    format!(": nothing new\nid: {position}\n\n")
}

/// Returns the message about events that were missed.
pub(super) fn gap(after: TailPosition, position: TailPosition) -> String {
    let message = "events between these places went before they could be sent; ask for them with SQL";
    let data = json!({"after": after.to_string(), "up_to": position.to_string(), "message": message});
    format!("event: gap\nid: {position}\ndata: {data}\n\n")
}

/// Returns the last message.
pub(super) fn end(reason: &str) -> String {
    format!("event: end\ndata: {}\n\n", json!({"reason": reason}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["0", "17", "17.0", "18446744073709551615.3"] {
            assert_eq!(TailPosition::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "-1", "1.", ".1", "1.2.3", "x"] {
            assert_eq!(TailPosition::parse(text), None, "{text}");
        }
        assert_eq!(
            (TailPosition::after(17).complete(), TailPosition::parse("17.3").unwrap().complete()),
            (17, 16)
        );
    }
}
