//! A connection's view of the engine: statements are prepared, and run within limits.

use super::Shared;
use super::memory::OneQuery;
use super::moment::Moment;
use super::rows::{Rows, too_slow};
use super::stats::{End, Running, Via};
use crate::error::{Kind, QueryError};
use crate::{guard, types};
use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ParamValues;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Sender};

/// Batches that wait for a slow client.
const WAITING_BATCHES: usize = 2;

/// A connection's view of the engine.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
    via: Via,
    /// How long each of its statements may run.
    time: Duration,
}

/// A statement that was read, judged and planned, and can be run as often as one likes.
#[derive(Debug, Clone)]
pub struct Prepared {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl Prepared {
    /// The columns of the answer.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The parameters, `$1` first, with their types as far as they can be known.
    ///
    /// # Errors
    /// When a parameter would have to be of two types.
    pub fn parameters(&self) -> Result<Vec<Option<DataType>>, QueryError> {
        let types: HashMap<String, Option<DataType>> = self.plan.get_parameter_types()?;
        let number = |name: &str| name.trim_start_matches('$').parse::<usize>().ok();
        let count = types.keys().filter_map(|name| number(name)).max().unwrap_or(0);
        let of = |number| types.get(&format!("${number}")).cloned().flatten().map(|known| plain_type(&known));
        Ok((1..=count).map(of).collect())
    }
}

impl Prepared {
    /// Values as the types that are wanted: a text where a time is, is read as one, to the microsecond.
    fn fitted(&self, values: ParamValues) -> Result<ParamValues, QueryError> {
        let ParamValues::List(mut values) = values else { return Ok(values) };
        let wanted = self.parameters()?;
        if wanted.len() > values.len() {
            let message = format!("parameter ${} has no value", values.len() + 1);
            return Err(QueryError::new(Kind::Invalid, message));
        }
        for (place, (value, wanted)) in values.iter_mut().zip(wanted).enumerate() {
            // Beside nothing but other parameters, any type will do.
            let is_other =
                |wanted: &DataType| *wanted != DataType::Null && *wanted != value.value.data_type();
            let Some(wanted) = wanted.filter(is_other) else { continue };
            value.value = value.value.cast_to(&wanted).map_err(|error| {
                let message =
                    format!("parameter ${} is no {}: {}", place + 1, types::name_of(&wanted), error);
                QueryError::new(Kind::Invalid, message)
            })?;
        }
        Ok(ParamValues::List(values))
    }
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, via: Via) -> Self {
        let time = shared.limits.time;
        Self { shared, via, time }
    }

    /// How long statements may run from now on: at most what the engine allows, which zero also means.
    pub fn set_time(&mut self, time: Duration) {
        let limit = self.shared.limits.time;
        self.time = if time.is_zero() { limit } else { time.min(limit) };
    }

    /// How long a statement may run.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Reads, judges and plans one statement.
    ///
    /// # Errors
    /// When it is no SQL, not allowed, or does not fit the tables.
    pub async fn prepare(&self, sql: &str) -> Result<Prepared, QueryError> {
        let began = Instant::now();
        let statement = self.counted(began, guard::statement(sql, &self.shared.limits))?;
        self.prepare_statement(statement).await
    }

    /// Judges and plans a statement that a door has read by itself.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub async fn prepare_statement(&self, statement: Statement) -> Result<Prepared, QueryError> {
        let began = Instant::now();
        self.counted(began, self.plan(statement).await)
    }

    async fn plan(&self, statement: Statement) -> Result<Prepared, QueryError> {
        guard::allow(&statement, &self.shared.limits)?;
        let shared = Arc::clone(&self.shared);
        let planned = self.shared.handle()?.spawn(async move {
            let plan = shared.state.statement_to_plan(statement).await?;
            guard::plan(&plan, &shared.limits)?;
            let schema = plain(plan.schema().as_arrow());
            Ok(Prepared { plan, schema })
        });
        let stop_when_dropped = StopWhenDropped(planned.abort_handle());
        let planned = tokio::time::timeout(self.time, planned).await.map_err(|_| too_slow(self.time))?;
        drop(stop_when_dropped);
        planned.map_err(|error| gone(&error))?
    }

    /// Puts values in the places of the parameters, which can change the types of the columns.
    ///
    /// # Errors
    /// When a parameter is missing or does not fit.
    pub fn bind(&self, prepared: &Prepared, parameters: ParamValues) -> Result<Prepared, QueryError> {
        let parameters = prepared.fitted(parameters)?;
        let plan = prepared.plan.clone().with_param_values(parameters)?;
        if let Some(missing) = plan.get_parameter_names()?.into_iter().min() {
            return Err(QueryError::new(Kind::Invalid, format!("parameter {missing} has no value")));
        }
        // Values can make a plan what its text did not look like.
        guard::plan(&plan, &self.shared.limits)?;
        let schema = with_types_of_values(&prepared.schema, plan.schema().as_arrow());
        Ok(Prepared { plan, schema })
    }

    /// Runs a prepared statement.
    ///
    /// # Errors
    /// When a parameter is missing or does not fit, or too many others are running.
    pub async fn run(&self, prepared: &Prepared, parameters: ParamValues) -> Result<Rows, QueryError> {
        let began = Instant::now();
        self.counted(began, self.start(prepared, parameters, began).await)
    }

    async fn start(
        &self,
        prepared: &Prepared,
        parameters: ParamValues,
        began: Instant,
    ) -> Result<Rows, QueryError> {
        let Prepared { plan, schema } = self.bind(prepared, parameters)?;
        let turn = self.turn().await?;
        let (sender, batches) = mpsc::channel(WAITING_BATCHES);
        let (state, columns, time) = (self.state()?, Arc::clone(&schema), self.time);
        let query = self.shared.handle()?.spawn(async move {
            let run = send_all(state, plan, columns, &sender, turn);
            let error = match tokio::time::timeout(time, run).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => too_slow(time),
            };
            // Nobody may be there to hear it.
            drop(sender.send(Err(error)).await);
        });
        let running = Running::new(Arc::clone(&self.shared), self.via, began);
        Ok(Rows::new(schema, batches, query.abort_handle(), time, &self.shared.limits, running))
    }

    /// Prepares and runs a statement without parameters.
    ///
    /// # Errors
    /// As [`Self::prepare`] and [`Self::run`].
    pub async fn query(&self, sql: &str) -> Result<Rows, QueryError> {
        let prepared = self.prepare(sql).await?;
        self.run(&prepared, ParamValues::List(Vec::new())).await
    }

    /// Counts a statement that failed before it ran.
    fn counted<T>(&self, began: Instant, outcome: Result<T, QueryError>) -> Result<T, QueryError> {
        outcome.inspect_err(|_| self.shared.stats.count(self.via, End::Failed, began.elapsed()))
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        let limits = &self.shared.limits;
        let turn = Arc::clone(&self.shared.turns).acquire_owned();
        match tokio::time::timeout(limits.wait, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(QueryError::new(
                Kind::Busy,
                format!("{} queries are running, and none ended within {:?}", limits.concurrent, limits.wait),
            )
            .hint("try again in a moment")),
        }
    }

    /// The engine's state, with memory and tables of this statement's own.
    fn state(&self) -> Result<SessionState, QueryError> {
        let shared = &self.shared;
        let pool = OneQuery::new(Arc::clone(&shared.pool), shared.limits.query_memory);
        let environment =
            RuntimeEnv { memory_pool: Arc::new(pool), ..shared.state.runtime_env().as_ref().clone() };
        let mut state = SessionStateBuilder::new_from_existing(shared.state.clone())
            .with_runtime_env(Arc::new(environment))
            .build();
        // now() is when the statement began to run, not when the engine was made.
        state.mark_start_execution();
        state.config_mut().set_extension(Arc::new(Moment::new(shared.source.clone())));
        Ok(state)
    }
}

/// Runs a plan, and hands its batches out until nobody wants them.
async fn send_all(
    state: SessionState,
    plan: LogicalPlan,
    schema: SchemaRef,
    sender: &Sender<Result<Option<RecordBatch>, QueryError>>,
    turn: OwnedSemaphorePermit,
) -> Result<(), QueryError> {
    let plan = state.create_physical_plan(&plan).await?;
    let mut stream = execute_stream(plan, state.task_ctx())?;
    while let Some(batch) = stream.next().await {
        let batch = with_plain_columns(&batch?, &schema)?;
        if batch.num_rows() > 0 && sender.send(Ok(Some(batch))).await.is_err() {
            return Ok(());
        }
    }
    drop(turn);
    // Nobody may be there to hear it.
    drop(sender.send(Ok(None)).await);
    Ok(())
}

/// The schema as every client understands it: text is text, however it lies in memory.
fn plain(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| Field::new(field.name(), plain_type(field.data_type()), true);
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// A column that is a parameter, as in `SELECT $1`, has no type until there is a value; the others stay as they were told.
fn with_types_of_values(prepared: &SchemaRef, bound: &Schema) -> SchemaRef {
    let is_open = |field: &Arc<Field>| *field.data_type() == DataType::Null;
    if !prepared.fields().iter().any(is_open) {
        return Arc::clone(prepared);
    }
    let bound = plain(bound);
    let fields = prepared.fields().iter().zip(bound.fields());
    Arc::new(Schema::new(
        fields.map(|(told, bound)| Arc::clone(if is_open(told) { bound } else { told })).collect::<Vec<_>>(),
    ))
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) => {
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(plain_type(item.data_type()))))
        }
        other => other.clone(),
    }
}

fn with_plain_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns =
        columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options))
        .map_err(|error| QueryError::new(Kind::Internal, error.to_string()))
}

/// A task that ended without an answer.
fn gone(error: &tokio::task::JoinError) -> QueryError {
    if error.is_cancelled() {
        QueryError::new(Kind::Cancelled, "the query was stopped")
    } else {
        QueryError::new(Kind::Internal, "planning the query failed; please report the statement")
    }
}

struct StopWhenDropped(tokio::task::AbortHandle);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.abort();
    }
}
