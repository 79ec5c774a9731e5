//! The main loop of a worker process. It reads statements from standard input, one at a time, and writes rows to standard
//! output.
//!
//! Invariant: the thread that reads the input never runs a statement. So a worker notices a cancellation, or the end of
//! its server, whatever its statement is doing.

use super::protocol::{Frame, MAX_FRAME_BYTES, Request, Response, Setup, Task, decode_values};
use crate::engine::{DescribedStatement, Engine, Rows};
use crate::error::{Limit, QueryError, QueryErrorKind};
use crate::limits::Limits;
use crate::source::DataSource;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use classifier::{HashKey, Registry, Rules};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Read, Stdout};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use store::DataDirectory;
use store::disk::RealDisk;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The approximate size of the chunks in which rows are sent.
const CHUNK_BYTES: usize = 1 << 20;

/// The interval at which a worker checks whether a statement has stopped running.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// An error that ends a worker. The server sees that the process ended, and reads the message from its standard error.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The first request was not the setup, because the command was not started by a server.
    #[error("query-worker is an internal command: only `faultline serve` and `faultline sql` can start it")]
    MissingSetup,
    /// Reading from or writing to the server failed.
    #[error("the pipe to the server failed: {0}")]
    Pipe(#[from] io::Error),
    /// A request is not valid JSON.
    #[error("cannot parse a request of the server: {0}")]
    Message(#[from] serde_json::Error),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Directory(#[from] store::DirectoryError),
    /// The registry cannot be loaded.
    #[error("cannot load the registry: {0}")]
    Registry(String),
    /// The engine cannot be started.
    #[error(transparent)]
    Engine(#[from] QueryError),
}

/// Runs statements until the server closes our standard input.
///
/// # Errors
/// Fails when the worker cannot be set up, or when a request cannot be read.
pub fn run() -> Result<(), WorkerError> {
    let mut input = io::stdin().lock();
    let Ok(Some(Request::Setup(setup))) = next(&mut input) else { return Err(WorkerError::MissingSetup) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _ignored = ignored_signals(&runtime)?;
    limit_damage();
    let engine = engine(&setup)?;
    limit_memory(&setup.limits)?;
    let (tasks, queue) = mpsc::channel();
    let (cancel, cancelled) = watch::channel(0);
    let mut runner = StatementRunner { engine, output: io::stdout(), cancelled };
    runner.send(&Response::Ready)?;
    let thread = std::thread::Builder::new().name("statements".to_owned());
    thread.spawn(move || runner.run_all(&runtime, &queue))?;
    while let Some(request) = next(&mut input)? {
        match request {
            Request::Cancel(number) => drop(cancel.send(number)),
            task => tasks.send(task).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?,
        }
    }
    Ok(())
}

/// Reads the next request; none when the server has closed the pipe.
fn next(input: &mut impl Read) -> Result<Option<Request>, WorkerError> {
    match Frame::read(input)? {
        Some(frame) => Ok(Some(serde_json::from_slice(frame.content())?)),
        None => Ok(None),
    }
}

/// Ignores signals that a terminal or a service manager sends to all processes of a service. The server ends its workers
/// itself, by closing the pipe.
fn ignored_signals(runtime: &Runtime) -> io::Result<[Signal; 3]> {
    runtime.block_on(async {
        Ok([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ])
    })
}

/// Makes the kernel kill a query before the server when memory runs out, and disables core dumps, which would contain
/// stored data.
fn limit_damage() {
    // Failures are ignored, because the worker functions without these settings.
    std::fs::write("/proc/self/oom_score_adj", "1000").ok();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
}

fn engine(setup: &Setup) -> Result<Engine, WorkerError> {
    let directory = DataDirectory::existing(&setup.data_dir)?;
    let registry = match &setup.registry {
        Some(file) => Registry::with_operator_file(&file.name, &file.text),
        None => Registry::builtin(),
    };
    let registry = registry.map_err(|error| WorkerError::Registry(error.to_string()))?;
    let rules = Arc::new(Rules::new(registry, HashKey::new(setup.hash_key), classifier::Limits::default()));
    Ok(Engine::new(DataSource::new(Arc::new(RealDisk), directory), &rules, setup.limits)?)
}

/// Sets the memory limit of this process. An allocation beyond it aborts the process, whatever the statement does.
fn limit_memory(limits: &Limits) -> io::Result<()> {
    let Some(used) = parse_vm_data(&std::fs::read_to_string("/proc/self/status")?) else { return Ok(()) };
    let limit = used + (limits.process_memory() + Engine::stack_reserve()) as u64;
    let limit = getrlimit(Resource::Data).maximum.map_or(limit, |maximum| maximum.min(limit));
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

/// Parses the memory that counts towards the limit from `/proc/self/status`.
fn parse_vm_data(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Runs statements one after the other.
struct StatementRunner {
    engine: Engine,
    output: Stdout,
    /// The number of the newest task that was cancelled.
    cancelled: watch::Receiver<u64>,
}

impl StatementRunner {
    fn run_all(mut self, runtime: &Runtime, tasks: &Receiver<Request>) {
        for request in tasks {
            // A server that has ended closes our input too.
            if self.handle(runtime, request).is_err() {
                return;
            }
        }
    }

    fn handle(&mut self, runtime: &Runtime, request: Request) -> io::Result<()> {
        let (task, is_run) = match request {
            Request::Describe(task) => (task, false),
            Request::Run(task) => (task, true),
            Request::Setup(_) | Request::Cancel(_) => return Ok(()),
        };
        let (number, mut cancelled) = (task.number, self.cancelled.clone());
        let result = runtime.block_on(async {
            tokio::select! {
                biased;
                // Waiting fails when the server has ended; then the branch is disabled.
                Ok(_) = cancelled.wait_for(|cancelled| *cancelled >= number) => Err(cancelled_error()),
                result = self.run_task(task, is_run) => result,
            }
        });
        match result {
            Ok(()) => {
                self.wait_until_idle();
                self.send(&Response::Finished)
            }
            Err(StatementFailure::Failed(error)) => {
                // The client gets the error at once, without waiting for the parts that are still running.
                self.send(&Response::Failed(error))?;
                self.wait_until_idle();
                self.send(&Response::Idle)
            }
            Err(StatementFailure::Pipe(error)) => Err(error),
        }
    }

    /// Waits until no part of the statement is running, so that the next statement has the memory of this process to
    /// itself. The server kills a process that does not get there.
    fn wait_until_idle(&self) {
        while !self.engine.is_idle() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    async fn run_task(&mut self, task: Task, is_run: bool) -> Result<(), StatementFailure> {
        let session = self.engine.session(task.horizon()).with_time_limit(task.time);
        let values =
            task.values.as_deref().map(decode_values).transpose().map_err(|error| internal(&error))?;
        let DescribedStatement { prepared, description } = session.prepare(task.text, values).await?;
        if !is_run {
            return Ok(self.send(&Response::Described(description.encode()?))?);
        }
        let rows = session.run(prepared).await?;
        self.send(&Response::Described(description.encode()?))?;
        self.send_rows(rows).await
    }

    async fn send_rows(&mut self, mut rows: Rows) -> Result<(), StatementFailure> {
        let mut writer =
            StreamWriter::try_new(Vec::new(), rows.schema()).map_err(|error| internal(&error))?;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            for chunk in split_batch(&batch) {
                writer.write(&chunk).map_err(|error| internal(&error))?;
                let bytes = std::mem::take(writer.get_mut());
                if bytes.len() > MAX_FRAME_BYTES {
                    return Err(row_too_large_error(bytes.len()).into());
                }
                Frame::Rows(bytes).write(&mut self.output)?;
            }
        }
        writer.finish().map_err(|error| internal(&error))?;
        Ok(Frame::Rows(std::mem::take(writer.get_mut())).write(&mut self.output)?)
    }

    fn send(&mut self, response: &Response) -> io::Result<()> {
        Frame::message(response)?.write(&mut self.output)
    }
}

/// Splits a batch into chunks that fit into a frame. Only a single row can be too large.
fn split_batch(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let each = (rows * CHUNK_BYTES / batch.get_array_memory_size().max(1)).clamp(1, rows.max(1));
    (0..rows).step_by(each).map(move |first| batch.slice(first, each.min(rows - first)))
}

/// The reason why a statement failed.
enum StatementFailure {
    /// The query failed. The server learns why.
    Failed(QueryError),
    /// The pipe to the server failed.
    Pipe(io::Error),
}

impl From<QueryError> for StatementFailure {
    fn from(error: QueryError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for StatementFailure {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

fn cancelled_error() -> StatementFailure {
    StatementFailure::Failed(QueryError::new(QueryErrorKind::Cancelled, "the query was cancelled"))
}

fn row_too_large_error(bytes: usize) -> QueryError {
    let message = format!("a row of the result has {bytes} bytes; the limit is {MAX_FRAME_BYTES}");
    QueryError::new(QueryErrorKind::Limit(Limit::Memory), message)
        .hint("select parts of long texts with left() or substr()")
}

fn internal(error: &ArrowError) -> QueryError {
    QueryError::new(QueryErrorKind::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;

    #[test]
    fn the_data_size_is_parsed_from_the_process_status() {
        assert_eq!(parse_vm_data("VmPeak:\t  10 kB\nVmData:\t  2048 kB\nVmStk: 1 kB\n"), Some(2 << 20));
        assert_eq!(parse_vm_data("VmPeak: 10 kB"), None);
    }

    #[test]
    fn large_batches_are_split_into_chunks() {
        let texts = StringArray::from_iter_values((0..100).map(|_| "x".repeat(100 << 10)));
        let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as _)]).expect("a batch");
        let chunks: Vec<_> = split_batch(&batch).collect();
        assert!(chunks.len() >= 10, "{}", chunks.len());
        assert_eq!(chunks.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
        assert_eq!(split_batch(&batch.slice(0, 0)).count(), 0);
    }
}
