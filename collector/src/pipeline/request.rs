//! Requests to the pipeline and its responses.

use super::{RecordSink, StreamState};
use crate::counters::{CategoryCounts, RequestCounts};
use crate::rejection::Rejection;
use crate::source::Source;
use bytes::Bytes;
use classifier::{Dialect, Redactor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tokio::sync::OwnedSemaphorePermit;

/// The compression of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// No compression.
    #[default]
    Identity,
    /// The gzip format.
    Gzip,
    /// The Zstandard format.
    Zstd,
}

/// A request that has been received completely and is within the limits on its compressed size.
#[derive(Debug)]
pub struct Request {
    /// The receiver that it came through.
    pub source: Source,
    /// The body as it was received.
    pub body: Bytes,
    /// The compression of the body; a worker decompresses it, within the limits.
    pub encoding: Encoding,
    /// Parses the decompressed body into rows; runs on a worker thread.
    pub read: BodyReader,
    /// Values for records that do not give their own.
    pub defaults: Defaults,
    /// The `Idempotency-Key` that the sender gave.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The position up to which the source was read; it becomes durable together with the rows, or not at all.
    pub position: Option<Position>,
    /// The state of the stream that the body is a piece of; without it, the body is a stream of its own. The receiver
    /// commits it when the request was answered.
    pub stream: Option<StreamState>,
    /// The permits for the memory of the body; released when the request is answered.
    pub permits: Vec<OwnedSemaphorePermit>,
}

/// An `Idempotency-Key`: a request that is sent several times under one key is stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The name of the token that the key belongs to; `None` if no token is required.
    pub token: Option<String>,
    /// The key, as the sender chose it.
    pub key: String,
    /// A stable name of the format in which the body is parsed: the same body parsed in another format is another
    /// request.
    pub form: &'static str,
}

/// The position up to which a text (such as a log file) has been read. It is stored in the WAL beside the rows that
/// were read up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The unique number of the text.
    pub text: u64,
    /// The number of bytes before the position.
    pub offset: u64,
    /// Further data that the reader of the text needs after a restart.
    pub note: serde_json::Value,
}

/// Values for records that do not give their own.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The name of the service.
    pub service: Option<String>,
    /// The name of the environment, such as `production`.
    pub environment: Option<String>,
    /// The dialect in which errors are reported.
    pub dialect: Option<Dialect>,
}

impl Defaults {
    /// Redacts secrets, because these values go into rows beside those that the classifier has redacted.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        for name in [&mut self.service, &mut self.environment].into_iter().flatten() {
            if let Cow::Owned(clean) = redactor.text(name) {
                *name = clean;
            }
        }
    }
}

/// A function that parses a decompressed body into rows. A rejection means that nothing of the body is stored.
pub type BodyReader = fn(&[u8], &mut RecordSink<'_>) -> Result<(), Rejection>;

/// The response to a request whose contents are durable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IngestResponse {
    /// Lines, spans or log records that could be read.
    pub accepted: u64,
    /// Events that these yielded.
    pub events: u64,
    /// Records that could be read but hold no outcome that the classifier recognizes.
    pub unrecognized: u64,
    /// The records that could not be read; at most `Limits::rejected_listed` are listed.
    pub rejected: Vec<RejectedRecord>,
    /// The total number of records that could not be read.
    pub rejected_count: u64,
    /// Data points of metrics that are not stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored: u64,
    /// The events by category.
    #[serde(default, skip_serializing_if = "CategoryCounts::is_empty")]
    pub categories: CategoryCounts,
}

impl IngestResponse {
    pub(super) fn with_counts(self, counts: &RequestCounts) -> Self {
        Self {
            accepted: counts.accepted,
            events: counts.events,
            unrecognized: counts.unrecognized,
            categories: counts.categories,
            ignored: counts.ignored,
            ..self
        }
    }

    /// Returns the JSON in which the response is stored in the WAL.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the approximate size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let listed = self.rejected.iter().map(|rejected| size_of::<RejectedRecord>() + rejected.reason.len());
        size_of::<Self>() + listed.sum::<usize>()
    }

    /// Reports whether the response may be returned again for the same key. It may not if nothing could be read, so
    /// that a corrected request can use the same key.
    pub(super) fn is_replayable(&self) -> bool {
        self.accepted > 0 || self.rejected_count == 0
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRecord {
    /// The number of the record in the request, from 1.
    pub line: u64,
    /// The reason why it could not be read.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use classifier::Category;

    /// A stored response is read as it was given, also without the counts that are left out when they are zero.
    #[test]
    fn stored_responses_are_read_back() {
        let json = r#"{"accepted":3,"events":2,"unrecognized":0,"rejected":[],"rejected_count":0}"#;
        let mut response = IngestResponse::from_json(json).unwrap();
        assert_eq!((response.accepted, response.events, response.categories.is_empty()), (3, 2, true));
        assert_eq!(response.to_json(), json);
        response.categories.add(Category::Token, 2);
        response.rejected.push(RejectedRecord { line: 4, reason: "r".to_owned() });
        assert_eq!(IngestResponse::from_json(&response.to_json()), Some(response));
    }
}
