//! Lines of standard input: `app | faultline serve --stdin`, and with `--tee` on to standard output unchanged.
//!
//! There is no position in a pipe: what was read and is not stored when the process is killed is lost. So what comes is
//! stored at once, and not gathered.
//!
//! What must always hold:
//! - With a tee, bytes are passed on before anything else happens to them.
//! - Without one, a pipe that is read slowly makes its writer wait, as pipes do, and nothing is lost. With one, somebody
//!   else waits for what we pass on: when there was no room for five seconds, lines are dropped, counted, and warned of.

use crate::pipeline::{Defaults, Encoding, IngestResponse, Pipeline, Request};
use crate::receivers::envelopes::read_lines;
use crate::receivers::files::{InputState, find_complete_records, submit};
use crate::{Rejection, Source};
use bytes::Bytes;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How long lines that were passed on may wait for room before they are dropped.
const DROP_AFTER: Duration = Duration::from_secs(5);
/// The same when the lines before were dropped: whoever waits for what we pass on must not wait again and again.
const DROP_AFTER_DROPPING: Duration = Duration::from_millis(20);
/// As much as is read at once.
const STEP: usize = 64 << 10;

/// Where lines of standard input go.
pub struct StdinReceiver {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The service of lines that name none.
    pub service: Option<String>,
    /// Pass everything on to the output.
    pub tee: bool,
    /// Where to wait for the pipeline.
    pub runtime: Handle,
}

/// Lines that are not stored yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// The rest of a line that was refused for its length is passed over.
    in_long_line: bool,
    /// The lines before were dropped.
    is_dropping: bool,
}

impl StdinReceiver {
    /// Reads to the end of the input. Blocks.
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

    /// Stores the whole records, and keeps the rest.
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
            let patience = if pending.is_dropping { DROP_AFTER_DROPPING } else { DROP_AFTER };
            pending.is_dropping = !self.deliver(&body.into(), patience);
        }
    }

    /// Stores lines; tries again while they are refused for now. False when they were dropped.
    fn deliver(&self, body: &Bytes, patience: Duration) -> bool {
        let counters = &self.pipeline.counters().stdin;
        let began = Instant::now();
        loop {
            let left = patience.saturating_sub(began.elapsed());
            match self.runtime.block_on(self.try_once(body.clone(), left)) {
                Some(Ok(answer)) => {
                    counters.lines.add(answer.accepted + answer.rejected_count);
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

    /// None when there was no answer in time; what was on its way may be stored all the same.
    async fn try_once(&self, body: Bytes, left: Duration) -> Option<Result<IngestResponse, Rejection>> {
        let delivery = submit(self.pipeline.clone(), self.request(body));
        if self.tee { tokio::time::timeout(left, delivery).await.ok() } else { Some(delivery.await) }
    }

    fn request(&self, body: Bytes) -> Request {
        Request {
            source: Source::Stdin,
            body,
            encoding: Encoding::Identity,
            read: read_lines,
            defaults: Defaults { service: self.service.clone(), ..Defaults::default() },
            idempotency_key: None,
            position: None,
            permits: Vec::new(),
        }
    }
}

fn pass_on(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.flush()
}
