//! A worker while it works on one statement: from the request to the last row, or to whoever has enough.

use super::child::{Received, Worker};
use super::protocol::{Request, Response, Task};
use super::service::Shared;
use super::watch::Watch;
use crate::error::{Kind, Limit, QueryError};
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

/// How long a worker may take to stop when nobody wants its rows any more; then it is ended.
const STOPPING: Duration = Duration::from_secs(1);

/// A worker that works on one statement. Dropping it stops the statement.
pub(super) struct Lease {
    shared: Arc<Shared>,
    /// None once it is given back.
    held: Option<Held>,
    number: u64,
}

struct Held {
    worker: Worker,
    watch: Watch,
    turn: OwnedSemaphorePermit,
    phase: Phase,
}

/// How far a worker is with its statement.
#[derive(PartialEq, Eq)]
enum Phase {
    /// Nothing of it goes on.
    Quiet,
    /// It has been told of it.
    Working,
    /// It has said that it failed, and not yet that nothing of it goes on.
    Failed,
}

impl Lease {
    pub(super) fn new(shared: Arc<Shared>, worker: Worker, turn: OwnedSemaphorePermit, number: u64) -> Self {
        let watch = shared.watched.begin(worker.pid, worker.idle_bytes);
        Self { shared, held: Some(Held { worker, watch, turn, phase: Phase::Quiet }), number }
    }

    /// The number of the statement.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Gives the worker a statement, and waits for what it says of it.
    pub(super) async fn begin(
        &mut self,
        task: Task,
        request: fn(Task) -> Request,
    ) -> Result<Description, QueryError> {
        let held = self.held.as_mut().ok_or_else(ended)?;
        held.phase = Phase::Working;
        if held.worker.send(&request(task)).await.is_err() {
            return Err(self.died().await);
        }
        match self.receive().await? {
            Received::Response(Response::Described(description)) => description.decoded(),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until a statement that was only described has ended.
    pub(super) async fn end(mut self) -> Result<(), QueryError> {
        match self.receive().await? {
            Received::Response(Response::Ended) => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Passes the rows on until there are no more, or nobody wants them.
    pub(super) async fn pass_on(mut self, sender: &Sender<Result<Option<RecordBatch>, QueryError>>) {
        let mut decoder = StreamDecoder::new();
        let last = loop {
            match self.receive().await {
                Ok(Received::Rows(bytes)) => {
                    if let Err(error) = decoded(&mut decoder, bytes, sender).await {
                        break error.map(Err);
                    }
                }
                Ok(Received::Response(Response::Ended)) => break Some(Ok(None)),
                Ok(other) => break Some(Err(unexpected(&other))),
                Err(error) => break Some(Err(error)),
            }
        };
        if let Some(last) = last {
            // Nobody may be there to hear it.
            drop(sender.send(last).await);
        }
    }

    async fn receive(&mut self) -> Result<Received, QueryError> {
        let held = self.held.as_mut().ok_or_else(ended)?;
        match held.worker.receive().await {
            Ok(Received::Response(Response::Failed(error))) => {
                held.phase = Phase::Failed;
                Err(error)
            }
            Ok(received) => {
                if matches!(received, Received::Response(Response::Ended)) {
                    held.phase = Phase::Quiet;
                }
                Ok(received)
            }
            Err(_) => Err(self.died().await),
        }
    }

    /// Why the worker is gone.
    async fn died(&mut self) -> QueryError {
        let Some(Held { mut worker, watch, .. }) = self.held.take() else { return ended() };
        let limits = &self.shared.limits;
        let was_ended = watch.was_ended();
        drop(watch);
        if was_ended {
            let message = format!(
                "all queries together took more than {} MiB, and this one took the most",
                limits.memory >> 20
            );
            return QueryError::new(Kind::Limit(Limit::Memory), message)
                .hint("narrow the time range or group by fewer columns, or try again in a moment");
        }
        worker.obituary(limits.process_memory()).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        let (shared, number) = (Arc::clone(&self.shared), self.number);
        if held.phase == Phase::Quiet {
            Some(held).give_back(&shared);
        } else {
            // The turn is held until the worker has stopped: there are never more busy workers than turns.
            self.shared.spawn(async move { held.stopped(number).await.give_back(&shared) });
        }
    }
}

impl Held {
    /// The worker once nothing of the statement goes on; none when it does not get there.
    async fn stopped(mut self, number: u64) -> Option<Self> {
        let stop = async {
            if self.phase == Phase::Working {
                self.worker.send(&Request::Cancel(number)).await?;
            }
            loop {
                // It may have ended well before it has read that it is to stop.
                if let Received::Response(Response::Ended | Response::Quiet) = self.worker.receive().await? {
                    return std::io::Result::Ok(());
                }
            }
        };
        let stopped = tokio::time::timeout(STOPPING, stop).await;
        matches!(stopped, Ok(Ok(()))).then_some(self)
    }
}

trait GiveBack {
    fn give_back(self, shared: &Arc<Shared>);
}

impl GiveBack for Option<Held> {
    fn give_back(self, shared: &Arc<Shared>) {
        let Some(Held { worker, watch, turn, .. }) = self else { return };
        drop(watch);
        shared.keep(worker);
        drop(turn);
    }
}

/// Hands out the batches of a stretch. The error is none when nobody wants them.
async fn decoded(
    decoder: &mut StreamDecoder,
    bytes: Bytes,
    sender: &Sender<Result<Option<RecordBatch>, QueryError>>,
) -> Result<(), Option<QueryError>> {
    let mut bytes = Buffer::from(bytes);
    let unreadable = |error: ArrowError| QueryError::new(Kind::Internal, error.to_string());
    while !bytes.is_empty() {
        let Some(batch) = decoder.decode(&mut bytes).map_err(unreadable)? else { break };
        sender.send(Ok(Some(batch))).await.map_err(|_| None)?;
    }
    Ok(())
}

fn unexpected(received: &Received) -> QueryError {
    let message = match received {
        Received::Response(response) => format!("a query worker said {response:?}"),
        Received::Rows(_) => "a query worker sent rows that nobody asked for".to_owned(),
    };
    QueryError::new(Kind::Internal, message)
}

fn ended() -> QueryError {
    QueryError::new(Kind::Internal, "the query has ended already")
}
