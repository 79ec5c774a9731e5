//! The `rejects` table: a bounded sample of records that could not be read, with the reason.

use super::column::{Text, Time, Whole};
use super::name::Name;
use crate::schema::Table;

/// A record that could not be used.
#[derive(Debug, Clone, Copy)]
pub struct Reject<'r> {
    /// The time when it arrived, in microseconds since 1970.
    pub time: i64,
    /// The receiver.
    pub source: &'r str,
    /// The service that the request named.
    pub service: Option<&'r str>,
    /// The reason, as one of a closed list of words.
    pub reason: &'r str,
    /// The reason, in a sentence.
    pub detail: &'r str,
    /// The position in the request, from 1.
    pub line: i64,
    /// The length of the record.
    pub bytes: i64,
    /// The beginning of the record, without secrets.
    pub sample: &'r str,
}

super::table! {
    /// Builds the `rejects` table.
    pub RejectRows(row: Reject<'_>, Table::Rejects) {
        time: Time = Some(row.time), always, "The time at which the record arrived";
        source: Name = Some(row.source), always, "The receiver that took the request";
        service: Name = row.service, optional, "The service that the request named";
        reason: Name = Some(row.reason), always, "The reason, as a word of a closed list";
        detail: Text = Some(row.detail), always, "The reason, as a sentence";
        line: Whole = Some(row.line), always, "The position in the request, from 1";
        bytes: Whole = Some(row.bytes), always, "The length of the record";
        sample: Text = Some(row.sample), always, "The beginning of the record, with secrets redacted";
    }
}
