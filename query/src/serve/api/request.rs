//! A request to an endpoint while it is handled: its values, its statements, and their rows.
//!
//! Invariants: statements run through the query service like those of any other client, with its guard, its limits and
//! its queue. A request runs no more statements at once than there are idle workers, so that it cannot fill the queue.

use super::parameters::Values;
use super::range::TimeRange;
use super::statement::Statement;
use crate::engine::Rows;
use crate::error::{Limit, QueryError, QueryErrorKind};
use crate::parameters::parameters;
use crate::statement::StatementText;
use crate::stats::Endpoint;
use crate::worker::QueryService;
use arrow::json::writer::{JsonArray, WriterBuilder};
use classifier::Rules;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The maximum number of statements of one request that run at once: the number of idle workers that are kept.
const CONCURRENT_STATEMENTS: usize = 2;

/// A row: its columns by name.
pub(super) type Row = Map<String, Value>;

/// Reports the state of the server. It is a function, since the counters are not in this crate.
pub type IngestReport = Arc<dyn Fn() -> Value + Send + Sync>;

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) service: QueryService,
    pub(super) rules: Arc<Rules>,
    pub(super) ingest: IngestReport,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("service", &self.service).finish_non_exhaustive()
    }
}

/// A request to one endpoint.
#[derive(Debug)]
pub(super) struct ApiRequest {
    pub(super) api: Api,
    /// The part of the path that identifies an object.
    pub(super) id: String,
    pub(super) values: Values,
    pub(super) range: TimeRange,
}

/// The reason why a request fails.
#[derive(Debug)]
pub(super) enum Problem {
    /// The requested object does not exist.
    NotFound { message: String, remedy: &'static str },
    /// A value is invalid, or a statement failed.
    Query(QueryError),
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl ApiRequest {
    /// Runs statements and returns the rows of each.
    pub(super) async fn rows<const N: usize>(
        &self,
        statements: [Statement; N],
    ) -> Result<[Vec<Row>; N], QueryError> {
        let results: Vec<Vec<Row>> = stream::iter(statements)
            .map(|statement| self.run(statement))
            .buffered(CONCURRENT_STATEMENTS)
            .try_collect()
            .await?;
        results.try_into().map_err(|_| QueryError::new(QueryErrorKind::Internal, "a statement has no result"))
    }

    async fn run(&self, statement: Statement) -> Result<Vec<Row>, QueryError> {
        let session = self.api.service.session(Endpoint::Http);
        let text = StatementText::plain(statement.sql);
        let running = session.run(&text, &parameters(&statement.values)?).await?;
        collect(running.rows, self.api.service.limits().answer_bytes).await
    }
}

/// Waits for all rows and returns them as JSON objects.
async fn collect(mut rows: Rows, most_bytes: usize) -> Result<Vec<Row>, QueryError> {
    let internal = |error: &dyn fmt::Display| QueryError::new(QueryErrorKind::Internal, error.to_string());
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(Vec::new());
    let mut bytes = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        bytes += batch.get_array_memory_size();
        if bytes > most_bytes {
            let message = format!("The response is larger than {most_bytes} bytes.");
            return Err(QueryError::new(QueryErrorKind::Limit(Limit::Rows), message)
                .hint("Use a shorter range, fewer buckets or more filters."));
        }
        writer.write(&batch).map_err(|error| internal(&error))?;
    }
    writer.finish().map_err(|error| internal(&error))?;
    let text = writer.into_inner();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&text).map_err(|error| internal(&error))
}

/// Returns the integer in a column, or 0 if it has none.
pub(super) fn whole(row: &Row, column: &str) -> i64 {
    row.get(column).and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the text in a column.
pub(super) fn text<'r>(row: &'r Row, column: &str) -> Option<&'r str> {
    row.get(column).and_then(Value::as_str)
}

/// Removes a column from a row and returns its value, or null.
pub(super) fn take(row: &mut Row, column: &str) -> Value {
    row.remove(column).unwrap_or(Value::Null)
}

/// Returns the rows as a JSON list.
pub(super) fn list(rows: Vec<Row>) -> Value {
    rows.into_iter().map(Value::Object).collect::<Vec<_>>().into()
}

/// Returns one number for each bucket: the sum of a column over the rows whose column `slot` names the bucket.
pub(super) fn series<'r>(
    range: &TimeRange,
    rows: impl IntoIterator<Item = &'r Row>,
    column: &str,
) -> Vec<i64> {
    let mut numbers = vec![0; range.buckets()];
    for row in rows {
        let slot = usize::try_from(whole(row, "slot")).ok();
        if let Some(number) = slot.and_then(|slot| numbers.get_mut(slot)) {
            *number += whole(row, column);
        }
    }
    numbers
}
