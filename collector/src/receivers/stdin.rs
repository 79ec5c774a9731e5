//! Reads lines of standard input: `app | faultline serve --stdin`. With `--tee` it also copies them unchanged to
//! standard output.
//!
//! A pipe has no offset to resume from: input that was read but not stored is lost when the process is killed. So input
//! is stored as soon as it arrives, not collected into larger batches.
//!
//! Invariants:
//! - With `--tee`, bytes are written to the output before anything else happens to them.
//! - Without `--tee`, a full pipeline blocks the writer of the pipe, and nothing is lost. With `--tee`, the reader of
//!   the output must not be blocked: lines that cannot be stored within five seconds are dropped, counted and logged.

use crate::pipeline::{Defaults, Encoding, IngestResponse, Pipeline, Request, StreamState};
use crate::receivers::envelopes::read_lines;
use crate::receivers::files::{InputState, find_complete_records, submit};
use crate::{Rejection, Source};
use bytes::Bytes;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// With `--tee`, lines are dropped if they cannot be stored within this time.
const DROP_AFTER: Duration = Duration::from_secs(5);
/// The same timeout after lines were dropped: it is short, so that the reader of the output is not delayed repeatedly.
const DROP_AFTER_DROPPING: Duration = Duration::from_millis(20);
/// The number of bytes that one read may return.
const STEP: usize = 64 << 10;

/// Reads standard input and submits its lines to the pipeline.
pub struct StdinReceiver {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The service of lines that do not name one.
    pub service: Option<String>,
    /// True if all input is copied to the output.
    pub tee: bool,
    /// The runtime on which requests to the pipeline run.
    pub runtime: Handle,
}

/// Lines that are not stored yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// The calls that await their reply.
    calls: StreamState,
    /// True while the rest of a line that was too long is skipped.
    in_long_line: bool,
    /// True if the previous lines were dropped.
    is_dropping: bool,
}

impl StdinReceiver {
    /// Reads and stores the input until it ends. This blocks.
    pub fn run(&self, mut input: impl Read, mut output: impl Write) {
        let mut pending = Pending::default();
        let mut tee = self.tee;
        let mut step = vec![0; STEP];
        loop {
            let count = match input.read(&mut step) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read on");
                    break;
                }
            };
            let came = &step[..count];
            if tee && let Err(error) = pass_on(&mut output, came) {
                tracing::warn!(%error, "standard output is closed: nothing more is passed on to it");
                tee = false;
            }
            self.pipeline.counters().stdin.bytes.add(count as u64);
            pending.bytes.extend_from_slice(came);
            self.store(&mut pending, InputState::MayGrow);
        }
        self.store(&mut pending, InputState::Ended);
        tracing::info!("standard input has ended");
    }

    /// Stores the complete records and keeps the rest.
    fn store(&self, pending: &mut Pending, after: InputState) {
        let longest = self.pipeline.max_line_bytes() + 1;
        if pending.in_long_line {
            let end = memchr::memchr(b'\n', &pending.bytes);
            pending.in_long_line = end.is_none();
            pending.bytes.drain(..end.map_or(pending.bytes.len(), |at| at + 1));
        }
        let found = find_complete_records(&pending.bytes, after, usize::MAX);
        let mut length = found.length;
        if length == 0 && pending.bytes.len() > longest {
            length = pending.bytes.len();
            pending.in_long_line = true;
        }
        found.join(&mut pending.bytes);
        let rest = pending.bytes.split_off(length);
        let body = std::mem::replace(&mut pending.bytes, rest);
        if !body.is_empty() {
            let timeout = if pending.is_dropping { DROP_AFTER_DROPPING } else { DROP_AFTER };
            pending.is_dropping = !self.deliver(&body.into(), &pending.calls, timeout);
        }
    }

    /// Stores lines and retries while the rejection is temporary. Returns false if they were dropped.
    fn deliver(&self, body: &Bytes, calls: &StreamState, timeout: Duration) -> bool {
        let counters = &self.pipeline.counters().stdin;
        let began = Instant::now();
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            match self.runtime.block_on(self.try_once(body.clone(), calls, left)) {
                Some(Ok(response)) => {
                    calls.commit();
                    counters.lines.add(response.accepted + response.rejected_count);
                    return true;
                }
                Some(Err(Rejection { retry_after: Some(pause), .. })) if !self.tee || pause < left => {
                    std::thread::sleep(pause);
                }
                _ => break,
            }
        }
        let lines = (memchr::memchr_iter(b'\n', body).count() as u64).max(1);
        counters.dropped.add(lines);
        tracing::warn!(lines, "lines of standard input could not be stored");
        false
    }

    /// Submits lines once. Returns `None` on timeout; the lines may have been stored all the same.
    async fn try_once(
        &self,
        body: Bytes,
        calls: &StreamState,
        left: Duration,
    ) -> Option<Result<IngestResponse, Rejection>> {
        let delivery = submit(self.pipeline.clone(), self.request(body, calls));
        if self.tee { tokio::time::timeout(left, delivery).await.ok() } else { Some(delivery.await) }
    }

    fn request(&self, body: Bytes, calls: &StreamState) -> Request {
        Request {
            source: Source::Stdin,
            body,
            encoding: Encoding::Identity,
            read: read_lines,
            defaults: Defaults { service: self.service.clone(), ..Defaults::default() },
            idempotency_key: None,
            position: None,
            stream: Some(calls.clone()),
            permits: Vec::new(),
        }
    }
}

fn pass_on(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.flush()
}
