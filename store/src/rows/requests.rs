//! The responses to requests with an `Idempotency-Key`. They are stored in the WAL beside the rows of the request, so
//! that a sender that retries after a crash gets the same response, and nothing is stored twice.

use super::column::{Identity, Json, Time};
use crate::schema::Table;

/// The prefix of a row that holds the identities of counted calls and not a response. They are needed for a few minutes
/// only, so they are not flushed to the table: see [`crate::maintenance::recent_calls`].
pub const CALLS: &str = "{\"calls\":\"";

/// The response to a request with an `Idempotency-Key`.
#[derive(Debug, Clone, Copy)]
pub struct KeptAnswer<'r> {
    /// The time of the response, in microseconds since 1970.
    pub time: i64,
    /// The hash of the key.
    pub key: u128,
    /// The response.
    pub answer: &'r str,
}

super::table! {
    /// Builds the list of answers; it is never a table that anybody queries.
    pub RequestRows(row: KeptAnswer<'_>, Table::Requests) {
        time: Time = Some(row.time), always, "The time of the response";
        key: Identity = Some(row.key), always, "The hash of the idempotency key";
        answer: Json = Some(row.answer), always, "The response";
    }
}
