//! The answers that were given to requests with an `Idempotency-Key`: kept in the log beside the rows they
//! speak of, so that a sender that asks again after a crash gets the same answer, and nothing is stored twice.

use super::column::{Identity, Json, Time};
use crate::schema::Table;

/// How a row begins that holds no answer but the identities of counted calls. They are needed for a few minutes only,
/// so they are not flushed to the table: see [`crate::maintenance::recent_calls`].
pub const CALLS: &str = "{\"calls\":\"";

/// The answer to a request with an `Idempotency-Key`.
#[derive(Debug, Clone, Copy)]
pub struct KeptAnswer<'r> {
    /// When it was given, in microseconds since 1970.
    pub time: i64,
    /// The hash of the key.
    pub key: u128,
    /// The answer.
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
