//! A worker process: reads statements from its standard input, one at a time, and writes rows to its standard output.
//!
//! What always holds: the thread that reads the input never runs a statement, so that a worker hears that it is to stop,
//! or that its server has gone, whatever its statement does.

use super::protocol::{Frame, LONGEST, Request, Response, Setup, Task, decoded_values};
use crate::engine::{Engine, Resolved, Rows};
use crate::error::{Kind, Limit, QueryError};
use crate::limits::Limits;
use crate::source::Source;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Read, Stdout};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use store::DataDirectory;
use store::disk::RealDisk;
use taxonomy::{HashKey, Registry, Rules};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Rows are sent in stretches of about this size.
const STRETCH: usize = 1 << 20;

/// How long a statement that goes on is left alone.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Why a worker cannot go on. Its server sees that it has ended, and reads this from its standard error.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It was not told what it needs to know.
    #[error(
        "this command is started by `faultline serve` and `faultline sql`, and is of no use to anybody else"
    )]
    NotSetUp,
    /// The server cannot be reached.
    #[error("the pipe to the server failed: {0}")]
    Pipe(#[from] io::Error),
    /// The server cannot be understood.
    #[error("the server's message cannot be read: {0}")]
    Message(#[from] serde_json::Error),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Directory(#[from] store::DirectoryError),
    /// The registry does not load.
    #[error("the registry cannot be used: {0}")]
    Registry(String),
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] QueryError),
}

/// Serves statements until the server closes our standard input.
///
/// # Errors
/// When the worker cannot be set up, or the server cannot be understood.
pub fn run() -> Result<(), WorkerError> {
    let mut input = io::stdin().lock();
    let Ok(Some(Request::Setup(setup))) = next(&mut input) else { return Err(WorkerError::NotSetUp) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _ignored = ignored_signals(&runtime)?;
    prefer_as_victim();
    let engine = engine(&setup)?;
    limit_memory(&setup.limits)?;
    let (tasks, waiting) = mpsc::channel();
    let (cancel, cancelled) = watch::channel(0);
    let mut responder = Responder { engine, output: io::stdout(), cancelled };
    responder.send(&Response::Ready)?;
    let thread = std::thread::Builder::new().name("responder".to_owned());
    thread.spawn(move || responder.work(&runtime, &waiting))?;
    while let Some(request) = next(&mut input)? {
        match request {
            Request::Cancel(number) => drop(cancel.send(number)),
            task => tasks.send(task).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?,
        }
    }
    Ok(())
}

/// The next request; none when the server has gone.
fn next(input: &mut impl Read) -> Result<Option<Request>, WorkerError> {
    match Frame::read(input)? {
        Some(frame) => Ok(Some(serde_json::from_slice(frame.content())?)),
        None => Ok(None),
    }
}

/// A terminal and a service manager send their signals to all processes of a service; our server tells us when to end.
fn ignored_signals(runtime: &Runtime) -> io::Result<[Signal; 3]> {
    runtime.block_on(async {
        Ok([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ])
    })
}

/// When the machine runs out of memory, a query is a better victim than the server. A core would hold what was stored.
fn prefer_as_victim() {
    // Where this is not possible, the worker is as good as without it.
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
    let rules = Arc::new(Rules::new(registry, HashKey::new(setup.hash_key), taxonomy::Limits::default()));
    Ok(Engine::new(Source::new(Arc::new(RealDisk), directory), &rules, setup.limits)?)
}

/// Takes no more memory from now on than the limits allow, whatever a statement does: an allocation past it ends the
/// process.
fn limit_memory(limits: &Limits) -> io::Result<()> {
    let Some(used) = data_bytes(&std::fs::read_to_string("/proc/self/status")?) else { return Ok(()) };
    let most = used + (limits.process_memory() + Engine::stack_reserve()) as u64;
    let most = getrlimit(Resource::Data).maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// The memory that counts towards the limit, out of what the kernel says of a process.
fn data_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Runs statements, one after the other.
struct Responder {
    engine: Engine,
    output: Stdout,
    /// The newest task that nobody wants any more.
    cancelled: watch::Receiver<u64>,
}

impl Responder {
    fn work(mut self, runtime: &Runtime, tasks: &Receiver<Request>) {
        for request in tasks {
            // A server that has gone closes our input too.
            if self.respond(runtime, request).is_err() {
                return;
            }
        }
    }

    fn respond(&mut self, runtime: &Runtime, request: Request) -> io::Result<()> {
        let (task, is_run) = match request {
            Request::Describe(task) => (task, false),
            Request::Run(task) => (task, true),
            Request::Setup(_) | Request::Cancel(_) => return Ok(()),
        };
        let (number, mut cancelled) = (task.number, self.cancelled.clone());
        let done = runtime.block_on(async {
            tokio::select! {
                biased;
                // The server may have gone, and then nobody waits for a word.
                Ok(_) = cancelled.wait_for(|cancelled| *cancelled >= number) => Err(stopped()),
                done = self.serve(task, is_run) => done,
            }
        });
        match done {
            Ok(()) => {
                self.wait_until_quiet();
                self.send(&Response::Ended)
            }
            Err(Stop::Failed(error)) => {
                // Whoever waits for it does not wait for what goes on in vain.
                self.send(&Response::Failed(error))?;
                self.wait_until_quiet();
                self.send(&Response::Quiet)
            }
            Err(Stop::Pipe(error)) => Err(error),
        }
    }

    /// Waits until nothing of the statement goes on: the next one is to have the memory of this process to itself. Our
    /// server ends a process that does not get there.
    fn wait_until_quiet(&self) {
        while !self.engine.is_quiet() {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    async fn serve(&mut self, task: Task, is_run: bool) -> Result<(), Stop> {
        let session = self.engine.session(task.horizon()).within(task.time);
        let values =
            task.values.as_deref().map(decoded_values).transpose().map_err(|error| internal(&error))?;
        let Resolved { prepared, description } = session.resolve(task.text, values).await?;
        if !is_run {
            return Ok(self.send(&Response::Described(description.encoded()?))?);
        }
        let rows = session.run(prepared).await?;
        self.send(&Response::Described(description.encoded()?))?;
        self.send_rows(rows).await
    }

    async fn send_rows(&mut self, mut rows: Rows) -> Result<(), Stop> {
        let mut writer =
            StreamWriter::try_new(Vec::new(), rows.schema()).map_err(|error| internal(&error))?;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            for stretch in stretches(&batch) {
                writer.write(&stretch).map_err(|error| internal(&error))?;
                let bytes = std::mem::take(writer.get_mut());
                if bytes.len() > LONGEST {
                    return Err(too_large(bytes.len()).into());
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

/// A batch in pieces of which each fits into a frame, unless a single row does not.
fn stretches(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let each = (rows * STRETCH / batch.get_array_memory_size().max(1)).clamp(1, rows.max(1));
    (0..rows).step_by(each).map(move |first| batch.slice(first, each.min(rows - first)))
}

/// Why a statement has not ended well.
enum Stop {
    /// The server is told.
    Failed(QueryError),
    /// The server has gone.
    Pipe(io::Error),
}

impl From<QueryError> for Stop {
    fn from(error: QueryError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

fn stopped() -> Stop {
    Stop::Failed(QueryError::new(Kind::Cancelled, "the query was stopped"))
}

fn too_large(bytes: usize) -> QueryError {
    let message = format!("a row of the result has {bytes} bytes; at most {LONGEST} are sent");
    QueryError::new(Kind::Limit(Limit::Memory), message)
        .hint("select parts of long texts with left() or substr()")
}

fn internal(error: &ArrowError) -> QueryError {
    QueryError::new(Kind::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;

    #[test]
    fn the_kernels_words_for_memory_are_read() {
        assert_eq!(data_bytes("VmPeak:\t  10 kB\nVmData:\t  2048 kB\nVmStk: 1 kB\n"), Some(2 << 20));
        assert_eq!(data_bytes("VmPeak: 10 kB"), None);
    }

    #[test]
    fn large_batches_go_out_in_pieces() {
        let texts = StringArray::from_iter_values((0..100).map(|_| "x".repeat(100 << 10)));
        let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as _)]).expect("a batch");
        let pieces: Vec<_> = stretches(&batch).collect();
        assert!(pieces.len() >= 10, "{}", pieces.len());
        assert_eq!(pieces.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
        assert_eq!(stretches(&batch.slice(0, 0)).count(), 0);
    }
}
