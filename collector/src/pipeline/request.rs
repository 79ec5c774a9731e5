//! What goes into the pipeline, and what comes out.

use super::RecordSink;
use crate::counters::{CategoryCounts, RequestCounts};
use crate::rejection::Rejection;
use crate::source::Source;
use bytes::Bytes;
use classifier::{Dialect, Redactor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tokio::sync::OwnedSemaphorePermit;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Not at all.
    #[default]
    Identity,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// A request that was read whole, and is within the limits on what arrives.
#[derive(Debug)]
pub struct Request {
    /// The receiver.
    pub source: Source,
    /// The body as it came.
    pub body: Bytes,
    /// How it is compressed; a worker decompresses it, within the limits.
    pub encoding: Encoding,
    /// Reads the decompressed body into rows; runs on a worker thread.
    pub read: BodyReader,
    /// What holds for records that do not say.
    pub defaults: Defaults,
    /// The sender's `Idempotency-Key`.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Where what it was read from goes on; durable together with its rows, or not at all.
    pub position: Option<Position>,
    /// The room that the body takes; given back when the request is answered.
    pub permits: Vec<OwnedSemaphorePermit>,
}

/// An `Idempotency-Key`: the same request under the same key is stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The name of the token that the key belongs to; none when nobody needs one.
    pub token: Option<String>,
    /// What the sender calls the request.
    pub key: String,
    /// How the body is read, in a word that does not change: the same body, read in another way, is another request.
    pub form: &'static str,
}

/// How far a text has been read. It stands in the log beside the rows that were read up to there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The number of the text, which no other has.
    pub text: u64,
    /// The bytes before it.
    pub offset: u64,
    /// What else whoever reads the text wants to know after a restart.
    pub note: serde_json::Value,
}

impl Position {
    /// As it is kept in the log.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// None for the answers that are kept in the same place.
    pub(super) fn from_json(text: &str) -> Option<Self> {
        text.starts_with("{\"text\":").then(|| serde_json::from_str(text).ok()).flatten()
    }
}

/// What holds for records that do not say.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The service.
    pub service: Option<String>,
    /// The environment.
    pub environment: Option<String>,
    /// The dialect.
    pub dialect: Option<Dialect>,
}

impl Defaults {
    /// Takes the secrets out: these go into rows beside what the classifier has redacted.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        for name in [&mut self.service, &mut self.environment].into_iter().flatten() {
            if let Cow::Owned(clean) = redactor.text(name) {
                *name = clean;
            }
        }
    }
}

/// Turns a decompressed body into rows. A rejection means that nothing of the body is stored.
pub type BodyReader = fn(&[u8], &mut RecordSink<'_>) -> Result<(), Rejection>;

/// What became of a request. It is durable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IngestResponse {
    /// Lines, spans or log records that were read.
    pub accepted: u64,
    /// Events that they yielded.
    pub events: u64,
    /// Records that held nothing of ours.
    pub unrecognized: u64,
    /// Records that could not be read; at most `Limits::rejected_listed` are listed.
    pub rejected: Vec<RejectedRecord>,
    /// How many could not be read in all.
    pub rejected_count: u64,
    /// Data points of metrics that are not stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored: u64,
    /// The events by category. Answers that were kept before there was this count do not have it.
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

    /// What it weighs in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        let listed = self.rejected.iter().map(|rejected| size_of::<RejectedRecord>() + rejected.reason.len());
        size_of::<Self>() + listed.sum::<usize>()
    }

    /// False when nothing could be read: a corrected request may come under the same key.
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
    /// Its place, from 1.
    pub line: u64,
    /// Why, and what to do.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::super::idempotency::StoredResponse;
    use super::*;
    use classifier::Category;

    /// What an earlier version kept in the log is still an response.
    #[test]
    fn kept_answers_of_every_version_are_read() {
        let old = r#"{"accepted":3,"events":2,"unrecognized":0,"rejected":[],"rejected_count":0}"#;
        let mut kept = StoredResponse::from_json(old).unwrap();
        let response = &mut kept.response;
        assert_eq!((response.accepted, response.events, response.categories.is_empty()), (3, 2, true));
        assert_eq!(serde_json::to_string(response).unwrap(), old);
        response.categories.add(Category::Token, 2);
        let rejected = RejectedRecord { line: 4, reason: "r".to_owned() };
        kept.response.rejected.push(rejected);
        assert_eq!(StoredResponse::from_json(&kept.to_json()), Some(kept.clone()));
        let newer = StoredResponse::new(kept.response, u128::MAX - 1);
        assert_eq!(StoredResponse::from_json(&newer.to_json()), Some(newer));
    }
}
