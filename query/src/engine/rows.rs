//! The rows of an answer, as they come.

use crate::error::{Kind, Limit, QueryError};
use crate::stats::{End, Running};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures_util::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Sleep;

/// The rows of an answer, in batches. Whoever drops it stops the query, and frees what it took.
pub struct Rows {
    schema: SchemaRef,
    /// Ends with `None`; a query that ends without it has died.
    batches: mpsc::Receiver<Result<Option<RecordBatch>, QueryError>>,
    query: AbortHandle,
    /// When time is up. The query has the same limit, but may be too busy to notice.
    deadline: Pin<Box<Sleep>>,
    time: Duration,
    /// Rows that may still come.
    rows_left: usize,
    rows: usize,
    ended: bool,
    /// Counts how it ended, where that is counted.
    running: Option<Running>,
}

impl Rows {
    /// Rows of a query that may take so long in all, and has so much of that left.
    pub(crate) fn new(
        schema: SchemaRef,
        batches: mpsc::Receiver<Result<Option<RecordBatch>, QueryError>>,
        query: AbortHandle,
        (time, left): (Duration, Duration),
        rows: usize,
    ) -> Self {
        let deadline = Box::pin(tokio::time::sleep(left));
        let (rows_left, ended, running) = (rows, false, None);
        Self { schema, batches, query, deadline, time, rows_left, rows, ended, running }
    }

    /// Counts how it ends.
    pub(crate) fn counted(mut self, running: Running) -> Self {
        self.running = Some(running);
        self
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, QueryError>> {
        futures_util::StreamExt::next(self).await
    }

    fn count(&mut self, end: End) {
        if let Some(running) = &mut self.running {
            running.end(end);
        }
    }

    fn end(&mut self, error: QueryError) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        self.ended = true;
        self.count(End::Failed);
        self.query.abort();
        Poll::Ready(Some(Err(error)))
    }

    fn checked(&mut self, batch: RecordBatch) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        match self.rows_left.checked_sub(batch.num_rows()) {
            Some(left) => {
                self.rows_left = left;
                Poll::Ready(Some(Ok(batch)))
            }
            None => self.end(too_many_rows(self.rows)),
        }
    }
}

/// The error for an answer that is too long.
pub(crate) fn too_many_rows(limit: usize) -> QueryError {
    QueryError::new(Kind::Limit(Limit::Rows), format!("the answer has more than {limit} rows"))
        .hint("add LIMIT, a narrower time range, or group the rows")
}

/// The error for a query that takes too long.
pub(crate) fn too_slow(time: Duration) -> QueryError {
    QueryError::new(Kind::Limit(Limit::Time), format!("the query took longer than {time:?}"))
        .hint("narrow it: a shorter time range, one service, fewer columns")
}

fn died() -> QueryError {
    QueryError::new(Kind::Internal, "the query ended unexpectedly; please report the statement")
}

impl Stream for Rows {
    type Item = Result<RecordBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.batches.poll_recv(context) {
            Poll::Ready(Some(Ok(Some(batch)))) => return self.checked(batch),
            Poll::Ready(Some(Ok(None))) => {
                self.ended = true;
                self.count(End::Answered);
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(error))) => return self.end(error),
            Poll::Ready(None) => return self.end(died()),
            Poll::Pending => {}
        }
        if self.deadline.as_mut().poll(context).is_ready() {
            let time = self.time;
            return self.end(too_slow(time));
        }
        Poll::Pending
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.query.abort();
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("schema", &self.schema)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
