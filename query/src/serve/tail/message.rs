//! What is said to a reader, as server-sent events, and how far he has come by it.

use serde_json::json;
use std::fmt;

/// How far a reader has come: a record of the log, all of it or up to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) sequence: u64,
    /// The last row that was sent; none when everything was looked at.
    pub(super) row: Option<u64>,
}

impl Place {
    /// After a whole record.
    pub(super) fn after(sequence: u64) -> Self {
        Self { sequence, row: None }
    }

    /// Reads `17` or `17.3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once('.') {
            Some((sequence, row)) => {
                Some(Self { sequence: sequence.parse().ok()?, row: Some(row.parse().ok()?) })
            }
            None => Some(Self::after(text.parse().ok()?)),
        }
    }

    /// The last record of which nothing is left to see.
    pub(super) fn complete(self) -> u64 {
        if self.row.is_some() { self.sequence.saturating_sub(1) } else { self.sequence }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "{}.{row}", self.sequence),
            None => write!(f, "{}", self.sequence),
        }
    }
}

/// The first word: when to come back, and from where.
pub(super) fn hello(place: Place) -> String {
    format!(": following\nretry: 1000\nid: {place}\n\n")
}

/// An event.
pub(super) fn event(place: Place, json: &str) -> String {
    format!("id: {place}\ndata: {json}\n\n")
}

/// Nothing to tell, but how far we have looked; readers remember it, and see nothing.
pub(super) fn still_here(place: Place) -> String {
    format!(": nothing new\nid: {place}\n\n")
}

/// Something was missed.
pub(super) fn gap(after: Place, place: Place) -> String {
    let message = "events between these places went before they could be sent; ask for them with SQL";
    let data = json!({"after": after.to_string(), "up_to": place.to_string(), "message": message});
    format!("event: gap\nid: {place}\ndata: {data}\n\n")
}

/// The last word.
pub(super) fn end(reason: &str) -> String {
    format!("event: end\ndata: {}\n\n", json!({"reason": reason}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["0", "17", "17.0", "18446744073709551615.3"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "-1", "1.", ".1", "1.2.3", "x"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
        assert_eq!((Place::after(17).complete(), Place::parse("17.3").unwrap().complete()), (17, 16));
    }
}
