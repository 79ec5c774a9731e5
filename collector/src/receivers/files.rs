//! Tails log files: reads the files that match the patterns, while they grow, are rotated and are compressed.
//!
//! A file is identified by its content, not by its name: by a hash of everything that was read from it
//! (`rolling_hash`), which is stored in the same WAL record as the rows that were read. So each line is stored once,
//! even after a crash; and whatever happens to the file (it is renamed, copied and truncated, compressed or deleted),
//! the part that was read is recognized under the new name, and the rest is read.
//!
//! | file | |
//! |---|---|
//! | `tailer` | the polling rounds: discover, read, deliver, record the result |
//! | `tailed_file` | one open file and its unread part |
//! | `record_boundaries` | complete records in bytes; JSON over several lines |
//! | `content_match`, `rotation` | recognize content that was read from another file |
//! | `rolling_hash`, `file_content` | the identity of content, and the offset it was read to |
//! | `content_index` | all known contents; `files.json` |
//! | `file_reader`, `discovery` | read files and archives; find the files that match the patterns |
//! | `timeouts` | poll intervals and timeouts |
//!
//! Invariants:
//! - The position in a content and the rows that were read up to it are in one WAL record.
//! - A batch that was rejected is read again; nothing is released before it is durable.
//! - Open files, bytes in memory and known contents are bounded; whatever exceeds a bound waits, and is counted.

mod content_index;
mod content_match;
mod discovery;
mod file_content;
mod file_reader;
mod record_boundaries;
mod rolling_hash;
mod rotation;
mod tailed_file;
mod tailer;
mod timeouts;

use crate::counters::FileCounters;
use crate::pipeline::{IngestResponse, Pipeline, Request};
use crate::{Rejection, RejectionReason};
use content_index::ContentIndex;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
pub(super) use record_boundaries::{InputState, find_complete_records};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tailer::{DeliveryTarget, PollOutcome, Tailer};
use timeouts::Timeouts;
use tokio::runtime::Handle;

/// A pattern of files to be read: `GLOB`, or `SERVICE=GLOB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePattern {
    /// The glob pattern of the file paths.
    pub pattern: String,
    /// The service of lines that do not name one; if absent, the name of the file is used.
    pub service: Option<String>,
}

impl FromStr for FilePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '*', '?', '[', '.']);
        let (service, pattern) = match text.split_once('=') {
            Some((service, pattern)) if is_name(service) => (Some(service.to_owned()), pattern),
            _ => (None, text),
        };
        if pattern.is_empty() {
            return Err("a pattern is missing; give one as in '/var/log/app/*.log*'".to_owned());
        }
        match glob::Pattern::new(pattern) {
            Ok(_) => Ok(Self { pattern: pattern.to_owned(), service }),
            Err(error) => Err(format!("no pattern of files: {error}")),
        }
    }
}

/// The thread that reads files.
pub struct FileReceiver {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl FileReceiver {
    /// Starts to read files. The positions of earlier runs come from the WAL and from `files.json` in this directory.
    ///
    /// # Errors
    /// Returns an error if `files.json` cannot be read or the thread cannot be started.
    pub fn start(
        watches: Vec<FilePattern>,
        directory: &Path,
        pipeline: Pipeline,
        runtime: Handle,
    ) -> io::Result<Self> {
        let known = open_known(directory.join("files.json"), &pipeline)?;
        let (stop, stopped) = crossbeam_channel::bounded(1);
        let to = PipelineTarget { pipeline, runtime };
        let tailer = Tailer::new(watches, Timeouts::default(), known, to);
        let thread =
            std::thread::Builder::new().name("files".to_owned()).spawn(move || run(tailer, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Finishes the current round and saves the positions of all files. This blocks, and must be called before the
    /// pipeline is closed.
    pub fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("reading files ended with a defect; please report it");
        }
    }
}

/// Opens the index of known contents. A `files.json` that cannot be parsed is renamed and ignored: the WAL still has
/// the positions of the last day.
fn open_known(file: PathBuf, pipeline: &Pipeline) -> io::Result<ContentIndex> {
    let positions = pipeline.take_positions();
    match ContentIndex::open(file.clone(), &positions) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
            let aside = file.with_extension("json.bad");
            tracing::warn!(%error, "files.json cannot be understood and is now {}; files that were read more than \
                a day ago may be read again", aside.display());
            std::fs::rename(&file, aside)?;
            ContentIndex::open(file, &positions)
        }
        opened => opened,
    }
}

fn run(mut tailer: Tailer<PipelineTarget>, stopped: &Receiver<()>) {
    let poll = Timeouts::default().poll_interval;
    loop {
        let pause = match tailer.round(Instant::now()) {
            PollOutcome::Busy => Duration::ZERO,
            PollOutcome::Idle => poll,
            PollOutcome::RejectionBody(pause) => pause,
        };
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return tailer.save();
        }
    }
}

/// Delivers requests to the pipeline concurrently, and waits for all results.
struct PipelineTarget {
    pipeline: Pipeline,
    runtime: Handle,
}

impl DeliveryTarget for PipelineTarget {
    fn deliver(&mut self, requests: Vec<Request>) -> Vec<Result<IngestResponse, Rejection>> {
        let on_their_way: Vec<_> = requests
            .into_iter()
            .map(|request| self.runtime.spawn(submit(self.pipeline.clone(), request)))
            .collect();
        let settled = on_their_way.into_iter().map(|task| self.runtime.block_on(task));
        settled.map(|response| response.unwrap_or_else(|_| Err(stopping()))).collect()
    }

    fn counters(&self) -> &FileCounters {
        &self.pipeline.counters().files
    }

    fn now(&self) -> i64 {
        self.pipeline.now()
    }

    fn longest_line(&self) -> usize {
        self.pipeline.max_line_bytes()
    }
}

/// Waits for memory permits, then submits the request.
pub(super) async fn submit(pipeline: Pipeline, mut request: Request) -> Result<IngestResponse, Rejection> {
    let permits = u32::try_from(request.body.len().div_ceil(1 << 10)).unwrap_or(u32::MAX);
    match Arc::clone(pipeline.body_permits()).acquire_many_owned(permits).await {
        Ok(permit) => request.permits.push(permit),
        Err(_) => return Err(stopping()),
    }
    pipeline.submit(request).await
}

fn stopping() -> Rejection {
    Rejection::retryable(RejectionReason::ShuttingDown, "the collector is stopping", Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
