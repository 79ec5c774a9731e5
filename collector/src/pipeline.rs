//! From a request's bytes to durable rows.
//!
//! SKELETON of the interface; the implementation follows.

use crate::refusal::Refusal;
use crate::{Limits, Source};
use bytes::Bytes;
use std::sync::Arc;
use taxonomy::Dialect;
use taxonomy::signal::{LogRecord, Resource, Span};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    pub read: ReadBody,
    /// What holds for records that do not say.
    pub defaults: Defaults,
    /// The sender's `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// The room that the body takes; given back when the request is answered.
    pub room: Vec<OwnedSemaphorePermit>,
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

/// Turns a decompressed body into rows. A refusal means that nothing of the body is stored.
pub type ReadBody = fn(&[u8], &mut Reading<'_>) -> Result<(), Refusal>;

/// What became of a request. It is durable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Lines, spans or log records that were read.
    pub accepted: u64,
    /// Events that they yielded.
    pub events: u64,
    /// Records that held nothing of ours.
    pub unrecognized: u64,
    /// Records that could not be read; at most `Limits::rejected_listed` are listed.
    pub rejected: Vec<Rejected>,
    /// How many could not be read in all.
    pub rejected_count: u64,
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its place, from 1.
    pub line: u64,
    /// Why, and what to do.
    pub reason: String,
}

/// One request as a [`ReadBody`] sees it: takes records one by one.
pub struct Reading<'w> {
    limits: &'w Limits,
}

impl Reading<'_> {
    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.limits
    }

    /// A line of an envelope log.
    pub fn line(&mut self, line: &[u8]) {
        let _ = line;
    }

    /// A span.
    pub fn span(&mut self, span: &Span<'_>, resource: &Resource<'_>) {
        let _ = (span, resource);
    }

    /// A log record.
    pub fn log(&mut self, record: &LogRecord<'_>, resource: &Resource<'_>) {
        let _ = (record, resource);
    }

    /// A record that cannot be read: counted, sampled, listed in the answer. `sample` is what came.
    pub fn reject(&mut self, reason: &str, detail: String, sample: &[u8]) {
        let _ = (reason, detail, sample);
    }
}

/// The way in for receivers. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    limits: Limits,
    room: Arc<Semaphore>,
}

impl Pipeline {
    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Room for bodies, a permit a KiB. A receiver takes it as bytes arrive.
    #[must_use]
    pub fn room(&self) -> &Arc<Semaphore> {
        &self.room
    }

    /// Takes a request; when this returns `Ok`, what it held is durable.
    ///
    /// # Errors
    /// Refused: nothing of it is stored.
    #[allow(clippy::unused_async)]
    pub async fn submit(&self, request: Request) -> Result<Answer, Refusal> {
        drop(request);
        Ok(Answer::default())
    }

    /// Counts a request that a receiver refused before it came this far. The one place that does.
    pub fn refused(&self, source: Source, refusal: &Refusal) {
        let _ = (source, refusal);
    }
}
