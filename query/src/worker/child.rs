//! The server's handle of a worker process: it starts the child, talks to it, and explains why it died.

use super::protocol::{Frame, HEADER_BYTES, Request, Response};
use crate::error::{Limit, QueryError, QueryErrorKind};
use bytes::{Buf, Bytes, BytesMut};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// The subcommand that starts this program as a worker.
pub(super) const SUBCOMMAND: &str = "query-worker";

/// The time that a worker may take to become ready. It is long because a machine can be very busy.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of bytes kept from the end of a worker's standard error, to explain why it died.
const STDERR_TAIL_BYTES: usize = 2 << 10;
/// The time to wait for the exit status and the remaining standard error of a dead worker.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A worker process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Bytes received but not parsed yet. They are kept here so that cancelling `receive` loses nothing.
    buffer: BytesMut,
    stderr_tail: StderrTail,
    pub(super) pid: u32,
    /// The memory of the worker before its first statement.
    pub(super) idle_bytes: u64,
}

/// The end of a worker's standard error. The reading task holds a clone until the stream ends.
#[derive(Debug, Clone, Default)]
struct StderrTail(Arc<Mutex<String>>);

/// A message or a chunk of rows from a worker.
#[derive(Debug)]
pub(super) enum WorkerOutput {
    Response(Response),
    /// A chunk of an Arrow stream.
    Rows(Bytes),
}

impl Worker {
    /// Starts a worker process and waits until it is ready.
    pub(super) async fn start(setup: &Request) -> Result<Self, QueryError> {
        let started = tokio::time::timeout(STARTUP_TIMEOUT, Self::spawn_and_set_up(setup)).await;
        let timed_out =
            || io::Error::new(ErrorKind::TimedOut, format!("it was not ready within {STARTUP_TIMEOUT:?}"));
        started.unwrap_or_else(|_| Err(start_error(&timed_out())))
    }

    async fn spawn_and_set_up(setup: &Request) -> Result<Self, QueryError> {
        let mut worker = Self::spawn_process().map_err(|error| start_error(&error))?;
        worker.send(setup).await.map_err(|error| start_error(&error))?;
        match worker.receive().await {
            Ok(WorkerOutput::Response(Response::Ready)) => {
                worker.idle_bytes = anonymous_memory(worker.pid).unwrap_or_default();
                Ok(worker)
            }
            Ok(other) => {
                let message = format!("a query worker sent {other:?} instead of Ready");
                Err(QueryError::new(QueryErrorKind::Internal, message))
            }
            Err(_) => Err(start_error(&worker.exit_reason().await)),
        }
    }

    fn spawn_process() -> io::Result<Self> {
        let mut child = Command::new(program()?)
            .arg0("faultline")
            .arg(SUBCOMMAND)
            // Panic messages stay short, and few malloc arenas keep the address space small.
            .env("RUST_BACKTRACE", "0")
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::new(ErrorKind::BrokenPipe, "it has no pipes");
        let (input, output) =
            (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let stderr_tail = StderrTail::default();
        tokio::spawn(stderr_tail.clone().read(child.stderr.take().ok_or_else(missing)?));
        let pid = child.id().ok_or_else(missing)?;
        Ok(Self { child, input, output, buffer: BytesMut::new(), stderr_tail, pid, idle_bytes: 0 })
    }

    /// Returns true while the process is running.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) async fn send(&mut self, request: &Request) -> io::Result<()> {
        let frame = Frame::message(request)?;
        self.input.write_all(&frame.header()?).await?;
        self.input.write_all(frame.content()).await?;
        self.input.flush().await
    }

    /// Receives the next message or chunk of rows.
    pub(super) async fn receive(&mut self) -> io::Result<WorkerOutput> {
        loop {
            if let Some((is_rows, content)) = self.take_frame()? {
                return match is_rows {
                    true => Ok(WorkerOutput::Rows(content)),
                    false => Ok(WorkerOutput::Response(serde_json::from_slice(&content)?)),
                };
            }
            if self.output.read_buf(&mut self.buffer).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Takes the next frame out of the buffer, if it is complete.
    fn take_frame(&mut self) -> io::Result<Option<(bool, Bytes)>> {
        let Some(header) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let (is_rows, length) = Frame::parse_header(*header)?;
        if self.buffer.len() < HEADER_BYTES + length {
            self.buffer.reserve(HEADER_BYTES + length - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        Ok(Some((is_rows, self.buffer.split_to(length).freeze())))
    }

    /// Returns the exit status of a worker that died and the end of its standard error.
    async fn exit_reason(&mut self) -> String {
        let status = tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await;
        let status = match status {
            Ok(Ok(status)) => status.to_string(),
            _ => "it does not respond".to_owned(),
        };
        let stderr = self.stderr_tail.complete().await;
        if stderr.is_empty() { status } else { format!("{status}: {stderr}") }
    }

    /// Returns the error for the query that was running when the worker died.
    pub(super) async fn exit_error(&mut self, limit: usize) -> QueryError {
        let cause = self.exit_reason().await;
        if cause.contains("memory allocation of") || cause.contains("Cannot allocate memory") {
            let message = format!("the query exceeds its memory limit of {} MiB", limit >> 20);
            return QueryError::new(QueryErrorKind::Limit(Limit::Memory), message)
                .hint("use a shorter time range, group by fewer columns, or sort fewer rows with LIMIT");
        }
        tracing::error!(pid = self.pid, "a query worker died: {cause}");
        if cause.contains("overflowed its stack") {
            return QueryError::new(
                QueryErrorKind::Limit(Limit::Statement),
                "the statement is nested too deeply to be planned",
            )
            .hint("split it into several statements");
        }
        QueryError::new(
            QueryErrorKind::Internal,
            "the worker process of the query died; please report the statement",
        )
    }
}

/// Returns the path of the running program, even if the file was replaced on disk since it was started.
fn program() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

fn start_error(cause: &dyn std::fmt::Display) -> QueryError {
    QueryError::new(QueryErrorKind::Internal, format!("cannot start a worker process for the query: {cause}"))
        .hint("check the process limit of this user and the free memory of the machine")
}

/// Returns the anonymous memory of a process, which it shares with no other; none when it cannot be determined.
pub(super) fn anonymous_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

impl StderrTail {
    /// Logs the standard error of a worker and keeps the end of it.
    async fn read(self, stderr: ChildStderr) {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            tracing::debug!("query worker: {line}");
            let mut text = self.text();
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(line.trim());
            if text.len() > STDERR_TAIL_BYTES {
                let cut = text.len() - STDERR_TAIL_BYTES;
                let cut = (cut..text.len()).find(|cut| text.is_char_boundary(*cut)).unwrap_or(0);
                text.drain(..cut);
            }
        }
    }

    /// Waits until the reading task has ended, and returns the text.
    async fn complete(&self) -> String {
        let complete = async {
            while Arc::strong_count(&self.0) > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // The timeout only matters if a grandchild keeps the pipe open; workers start no processes.
        drop(tokio::time::timeout(EXIT_TIMEOUT, complete).await);
        self.text().clone()
    }

    fn text(&self) -> std::sync::MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
