//! The rows of an answer, as they come.

use super::stats::{End, Running};
use crate::error::{Kind, Limit, QueryError};
use crate::limits::Limits;
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
    running: Running,
}

impl Rows {
    pub(super) fn new(
        schema: SchemaRef,
        batches: mpsc::Receiver<Result<Option<RecordBatch>, QueryError>>,
        query: AbortHandle,
        time: Duration,
        limits: &Limits,
        running: Running,
    ) -> Self {
        let deadline = Box::pin(tokio::time::sleep(time));
        Self {
            schema,
            batches,
            query,
            deadline,
            time,
            rows_left: limits.rows,
            rows: limits.rows,
            ended: false,
            running,
        }
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

    fn end(&mut self, error: QueryError) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        self.ended = true;
        self.running.end(End::Failed);
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
pub(super) fn too_slow(time: Duration) -> QueryError {
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
                self.running.end(End::Answered);
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
