//! A worker process, seen from the server.

use super::protocol::{Frame, HEAD, Request, Response};
use crate::error::{Kind, Limit, QueryError};
use bytes::{Buf, Bytes, BytesMut};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// The subcommand that makes a process of this program a worker.
pub(super) const SUBCOMMAND: &str = "query-worker";

/// How long a worker may take to be ready; a machine can be very busy.
const STARTUP: Duration = Duration::from_secs(30);
/// How much of what a worker says on its standard error is kept, to tell why it died.
const LAST_WORDS: usize = 2 << 10;
/// How long the last words of a dead worker may take to arrive.
const MOURNING: Duration = Duration::from_secs(1);

/// A worker process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// What has arrived of the next frames. It is kept here, so that whoever stops waiting loses nothing.
    arrived: BytesMut,
    last_words: LastWords,
    pub(super) pid: u32,
    /// What it takes when it has nothing to do.
    pub(super) idle_bytes: u64,
}

/// What a worker has said last on its standard error, and whether it can say more.
#[derive(Debug, Clone, Default)]
struct LastWords(Arc<Mutex<String>>);

/// What a worker has sent.
#[derive(Debug)]
pub(super) enum Received {
    Response(Response),
    /// A stretch of an Arrow stream.
    Rows(Bytes),
}

impl Worker {
    /// Starts a process and waits until it is ready.
    pub(super) async fn start(setup: &Request) -> Result<Self, QueryError> {
        let started = tokio::time::timeout(STARTUP, Self::start_now(setup)).await;
        let waited = || io::Error::new(ErrorKind::TimedOut, format!("it was not ready within {STARTUP:?}"));
        started.unwrap_or_else(|_| Err(unstartable(&waited())))
    }

    async fn start_now(setup: &Request) -> Result<Self, QueryError> {
        let mut worker = Self::spawned().map_err(|error| unstartable(&error))?;
        worker.send(setup).await.map_err(|error| unstartable(&error))?;
        match worker.receive().await {
            Ok(Received::Response(Response::Ready)) => {
                worker.idle_bytes = memory(worker.pid).unwrap_or_default();
                Ok(worker)
            }
            Ok(other) => {
                let message = format!("a query worker began with {other:?}");
                Err(QueryError::new(Kind::Internal, message))
            }
            Err(_) => Err(unstartable(&worker.cause_of_death().await)),
        }
    }

    fn spawned() -> io::Result<Self> {
        let mut child = Command::new(program()?)
            .arg0("faultline")
            .arg(SUBCOMMAND)
            // What it says last is to be short, and its memory in few pieces.
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
        let last_words = LastWords::default();
        tokio::spawn(last_words.clone().listen(child.stderr.take().ok_or_else(missing)?));
        let pid = child.id().ok_or_else(missing)?;
        Ok(Self { child, input, output, arrived: BytesMut::new(), last_words, pid, idle_bytes: 0 })
    }

    /// Whether it can be given a task.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) async fn send(&mut self, request: &Request) -> io::Result<()> {
        let frame = Frame::message(request)?;
        self.input.write_all(&frame.head()?).await?;
        self.input.write_all(frame.content()).await?;
        self.input.flush().await
    }

    /// The next thing that it has sent.
    pub(super) async fn receive(&mut self) -> io::Result<Received> {
        loop {
            if let Some((is_rows, content)) = self.arrived_frame()? {
                return match is_rows {
                    true => Ok(Received::Rows(content)),
                    false => Ok(Received::Response(serde_json::from_slice(&content)?)),
                };
            }
            if self.output.read_buf(&mut self.arrived).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next frame, if it has arrived whole.
    fn arrived_frame(&mut self) -> io::Result<Option<(bool, Bytes)>> {
        let Some(head) = self.arrived.first_chunk::<HEAD>() else { return Ok(None) };
        let (is_rows, length) = Frame::opened(*head)?;
        if self.arrived.len() < HEAD + length {
            self.arrived.reserve(HEAD + length - self.arrived.len());
            return Ok(None);
        }
        self.arrived.advance(HEAD);
        Ok(Some((is_rows, self.arrived.split_to(length).freeze())))
    }

    /// Why it has died, in its own words.
    async fn cause_of_death(&mut self) -> String {
        let status = tokio::time::timeout(MOURNING, self.child.wait()).await;
        let status = match status {
            Ok(Ok(status)) => status.to_string(),
            _ => "it does not answer".to_owned(),
        };
        let words = self.last_words.complete().await;
        if words.is_empty() { status } else { format!("{status}: {words}") }
    }

    /// The error for the query that it was running when it died.
    pub(super) async fn obituary(&mut self, most: usize) -> QueryError {
        let cause = self.cause_of_death().await;
        if cause.contains("memory allocation of") || cause.contains("Cannot allocate memory") {
            let message = format!("the query needs more memory than the {} MiB that it may take", most >> 20);
            return QueryError::new(Kind::Limit(Limit::Memory), message)
                .hint("narrow the time range, group by fewer columns, or sort fewer rows with LIMIT");
        }
        tracing::error!(pid = self.pid, "a query worker died: {cause}");
        if cause.contains("overflowed its stack") {
            return QueryError::new(
                Kind::Limit(Limit::Statement),
                "the statement nests too deeply to be planned",
            )
            .hint("ask in several statements");
        }
        QueryError::new(Kind::Internal, "the process of the query died; please report the statement")
    }
}

/// This very program, even when another one has taken its place on the disk since.
fn program() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

fn unstartable(cause: &dyn std::fmt::Display) -> QueryError {
    QueryError::new(Kind::Internal, format!("no process can be started for the query: {cause}"))
        .hint("see whether this user may start another process, and how much memory the machine has left")
}

/// What a process takes of the machine's memory for itself alone; none when that cannot be known.
pub(super) fn memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

impl LastWords {
    /// Passes on what a worker says, and keeps the end of it.
    async fn listen(self, stderr: ChildStderr) {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            tracing::debug!("a query worker says: {line}");
            let mut words = self.words();
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(line.trim());
            if words.len() > LAST_WORDS {
                let cut = words.len() - LAST_WORDS;
                let cut = (cut..words.len()).find(|cut| words.is_char_boundary(*cut)).unwrap_or(0);
                words.drain(..cut);
            }
        }
    }

    /// All of them, once nobody listens any more.
    async fn complete(&self) -> String {
        let complete = async {
            while Arc::strong_count(&self.0) > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // A process that it had started itself could hold the pipe open; it starts none.
        drop(tokio::time::timeout(MOURNING, complete).await);
        self.words().clone()
    }

    fn words(&self) -> std::sync::MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
