//! The result rows of a query, as a stream of batches.

use crate::error::{Limit, QueryError, QueryErrorKind};
use crate::stats::{Outcome, StatementTimer};
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

/// The result rows of a query, in batches. Dropping it cancels the query and frees its resources.
pub struct Rows {
    schema: SchemaRef,
    /// The batches, ended by `None`. A channel that closes without `None` means that the query died.
    batches: mpsc::Receiver<Result<Option<RecordBatch>, QueryError>>,
    query: AbortHandle,
    /// The end of the query's time. The query checks the same limit itself, but may be too busy to notice.
    deadline: Pin<Box<Sleep>>,
    /// The time limit, for the error message.
    time: Duration,
    /// The number of rows that may still come.
    rows_left: usize,
    /// The row limit, for the error message.
    rows: usize,
    ended: bool,
    /// Records the outcome of the query; none where queries are not counted.
    timer: Option<StatementTimer>,
}

impl Rows {
    /// Wraps the batches of a running query. `(time, left)` is its whole time limit and the part that remains.
    pub(crate) fn new(
        schema: SchemaRef,
        batches: mpsc::Receiver<Result<Option<RecordBatch>, QueryError>>,
        query: AbortHandle,
        (time, left): (Duration, Duration),
        rows: usize,
    ) -> Self {
        let deadline = Box::pin(tokio::time::sleep(left));
        let (rows_left, ended, timer) = (rows, false, None);
        Self { schema, batches, query, deadline, time, rows_left, rows, ended, timer }
    }

    /// Records the outcome in the statistics when the query ends.
    pub(crate) fn with_stats(mut self, timer: StatementTimer) -> Self {
        self.timer = Some(timer);
        self
    }

    /// Returns the columns of the result.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the next batch, or `None` at the end of the result.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, QueryError>> {
        futures_util::StreamExt::next(self).await
    }

    fn record(&mut self, outcome: Outcome) {
        if let Some(timer) = &mut self.timer {
            timer.finish(outcome);
        }
    }

    fn fail(&mut self, error: QueryError) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        self.ended = true;
        self.record(Outcome::Failed);
        self.query.abort();
        Poll::Ready(Some(Err(error)))
    }

    fn check_row_limit(&mut self, batch: RecordBatch) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        match self.rows_left.checked_sub(batch.num_rows()) {
            Some(left) => {
                self.rows_left = left;
                Poll::Ready(Some(Ok(batch)))
            }
            None => self.fail(row_limit_error(self.rows)),
        }
    }
}

/// Returns the error for a result with too many rows.
pub(crate) fn row_limit_error(limit: usize) -> QueryError {
    QueryError::new(QueryErrorKind::Limit(Limit::Rows), format!("the result has more than {limit} rows"))
        .hint("add LIMIT, use a shorter time range, or group the rows")
}

/// Returns the error for a query that takes too long.
pub(crate) fn time_limit_error(time: Duration) -> QueryError {
    QueryError::new(QueryErrorKind::Limit(Limit::Time), format!("the query took longer than {time:?}"))
        .hint("use a shorter time range, one service, or fewer columns")
}

fn unexpected_end_error() -> QueryError {
    QueryError::new(QueryErrorKind::Internal, "the query ended unexpectedly; please report the statement")
}

impl Stream for Rows {
    type Item = Result<RecordBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.batches.poll_recv(context) {
            Poll::Ready(Some(Ok(Some(batch)))) => return self.check_row_limit(batch),
            Poll::Ready(Some(Ok(None))) => {
                self.ended = true;
                self.record(Outcome::Succeeded);
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(error))) => return self.fail(error),
            Poll::Ready(None) => return self.fail(unexpected_end_error()),
            Poll::Pending => {}
        }
        if self.deadline.as_mut().poll(context).is_ready() {
            let time = self.time;
            return self.fail(time_limit_error(time));
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
