//! The lease of a worker for one statement. It lasts from the request to the last row, or until it is dropped.

use super::child::{Worker, WorkerOutput};
use super::memory_monitor::MonitorGuard;
use super::protocol::{Request, Response, Task};
use super::service::Shared;
use crate::error::{Limit, QueryError, QueryErrorKind};
use crate::statement::Description;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;

/// The time that a worker may take to stop a cancelled statement. After that it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A worker that is reserved for one statement. Dropping the lease cancels the statement.
pub(super) struct Lease {
    shared: Arc<Shared>,
    /// The worker; none once it was returned or has died.
    leased: Option<LeasedWorker>,
    number: u64,
}

struct LeasedWorker {
    worker: Worker,
    guard: MonitorGuard,
    permit: OwnedSemaphorePermit,
    phase: Phase,
}

/// The state of the statement on the worker.
#[derive(PartialEq, Eq)]
enum Phase {
    /// No part of the statement is running.
    Idle,
    /// The request was sent, and the worker has not finished it.
    Running,
    /// The worker reported a failure, but parts of the statement may still be running.
    Failed,
}

impl Lease {
    pub(super) fn new(
        shared: Arc<Shared>,
        worker: Worker,
        permit: OwnedSemaphorePermit,
        number: u64,
    ) -> Self {
        let guard = shared.monitor.register(worker.pid, worker.idle_bytes);
        Self { shared, leased: Some(LeasedWorker { worker, guard, permit, phase: Phase::Idle }), number }
    }

    /// Returns the number of the statement.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Sends a statement to the worker and waits for its description.
    pub(super) async fn start(
        &mut self,
        task: Task,
        request: fn(Task) -> Request,
    ) -> Result<Description, QueryError> {
        let leased = self.leased.as_mut().ok_or_else(already_ended_error)?;
        leased.phase = Phase::Running;
        if leased.worker.send(&request(task)).await.is_err() {
            return Err(self.worker_exit_error().await);
        }
        match self.receive().await? {
            WorkerOutput::Response(Response::Described(description)) => description.decode(),
            other => Err(unexpected_output_error(&other)),
        }
    }

    /// Waits until a statement that was only described has finished.
    pub(super) async fn finish(mut self) -> Result<(), QueryError> {
        match self.receive().await? {
            WorkerOutput::Response(Response::Finished) => Ok(()),
            other => Err(unexpected_output_error(&other)),
        }
    }

    /// Forwards the rows to the receiver until there are no more or the receiver is dropped.
    pub(super) async fn forward_rows(mut self, sender: &Sender<Result<Option<RecordBatch>, QueryError>>) {
        let mut decoder = StreamDecoder::new();
        let last = loop {
            match self.receive().await {
                Ok(WorkerOutput::Rows(bytes)) => {
                    if let Err(error) = send_batches(&mut decoder, bytes, sender).await {
                        break error.map(Err);
                    }
                }
                Ok(WorkerOutput::Response(Response::Finished)) => break Some(Ok(None)),
                Ok(other) => break Some(Err(unexpected_output_error(&other))),
                Err(error) => break Some(Err(error)),
            }
        };
        if let Some(last) = last {
            // The receiver may have been dropped.
            drop(sender.send(last).await);
        }
    }

    async fn receive(&mut self) -> Result<WorkerOutput, QueryError> {
        let leased = self.leased.as_mut().ok_or_else(already_ended_error)?;
        match leased.worker.receive().await {
            Ok(WorkerOutput::Response(Response::Failed(error))) => {
                leased.phase = Phase::Failed;
                Err(error)
            }
            Ok(output) => {
                if matches!(output, WorkerOutput::Response(Response::Finished)) {
                    leased.phase = Phase::Idle;
                }
                Ok(output)
            }
            Err(_) => Err(self.worker_exit_error().await),
        }
    }

    /// Returns the error that says why the worker died.
    async fn worker_exit_error(&mut self) -> QueryError {
        let Some(LeasedWorker { mut worker, guard, .. }) = self.leased.take() else {
            return already_ended_error();
        };
        let limits = &self.shared.limits;
        let was_killed = guard.was_killed();
        drop(guard);
        if was_killed {
            let message = format!(
                "all queries together exceed their memory limit of {} MiB, and this query used the most",
                limits.memory >> 20
            );
            return QueryError::new(QueryErrorKind::Limit(Limit::Memory), message)
                .hint("use a shorter time range or group by fewer columns, or try again in a moment");
        }
        worker.exit_error(limits.process_memory()).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(leased) = self.leased.take() else { return };
        let (shared, number) = (Arc::clone(&self.shared), self.number);
        if leased.phase == Phase::Idle {
            leased.return_to(&shared);
        } else {
            // The permit is held until the worker has stopped, so that there are never more busy workers than permits.
            self.shared.spawn(async move {
                if let Some(leased) = leased.stop(number).await {
                    leased.return_to(&shared);
                }
            });
        }
    }
}

impl LeasedWorker {
    /// Cancels the statement and waits until no part of it is running. Returns none when the worker does not stop.
    async fn stop(mut self, number: u64) -> Option<Self> {
        let stop = async {
            if self.phase == Phase::Running {
                self.worker.send(&Request::Cancel(number)).await?;
            }
            loop {
                // The statement may have finished before the worker reads the cancellation.
                if let WorkerOutput::Response(Response::Finished | Response::Idle) =
                    self.worker.receive().await?
                {
                    return std::io::Result::Ok(());
                }
            }
        };
        let stopped = tokio::time::timeout(STOP_TIMEOUT, stop).await;
        matches!(stopped, Ok(Ok(()))).then_some(self)
    }

    /// Returns the worker to the pool, and only then releases the permit.
    fn return_to(self, shared: &Arc<Shared>) {
        let Self { worker, guard, permit, .. } = self;
        drop(guard);
        shared.return_worker(worker);
        drop(permit);
    }
}

/// Decodes a chunk of the stream and sends its batches. The error is none when the receiver was dropped.
async fn send_batches(
    decoder: &mut StreamDecoder,
    bytes: Bytes,
    sender: &Sender<Result<Option<RecordBatch>, QueryError>>,
) -> Result<(), Option<QueryError>> {
    let mut bytes = Buffer::from(bytes);
    let unreadable = |error: ArrowError| QueryError::new(QueryErrorKind::Internal, error.to_string());
    while !bytes.is_empty() {
        let Some(batch) = decoder.decode(&mut bytes).map_err(unreadable)? else { break };
        sender.send(Ok(Some(batch))).await.map_err(|_| None)?;
    }
    Ok(())
}

fn unexpected_output_error(output: &WorkerOutput) -> QueryError {
    let message = match output {
        WorkerOutput::Response(response) => format!("a query worker sent an unexpected {response:?}"),
        WorkerOutput::Rows(_) => "a query worker sent rows that were not requested".to_owned(),
    };
    QueryError::new(QueryErrorKind::Internal, message)
}

fn already_ended_error() -> QueryError {
    QueryError::new(QueryErrorKind::Internal, "the query has already ended")
}
