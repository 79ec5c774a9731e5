//! A connection's view of the engine: statements are planned, and run within limits.

use super::Shared;
use super::deep_stack;
use super::memory::QueryMemory;
use super::moment::Moment;
use super::rows::{Rows, too_slow};
use crate::error::{Kind, QueryError};
use crate::limits::Limits;
use crate::serve::postgres;
use crate::statement::{Description, Origin, ParameterType, StatementText};
use crate::{guard, types};
use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ParamValues;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::parser::Statement;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::snapshot::Horizon;
use tokio::sync::mpsc::{self, Sender};

/// Batches that wait for a slow client.
const WAITING_BATCHES: usize = 2;

/// A connection's view of the engine.
#[derive(Debug, Clone)]
pub struct EngineSession {
    shared: Arc<Shared>,
    /// How long each of its statements may run.
    time: Duration,
    /// What of the data its statements may see.
    horizon: Horizon,
}

/// A statement that was read, judged and planned, and can be run as often as one likes.
#[derive(Debug, Clone)]
pub struct Prepared {
    plan: LogicalPlan,
    schema: SchemaRef,
}

/// A statement of an endpoint, planned, with what that endpoint tells its client of it.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The plan.
    pub prepared: Prepared,
    /// What is told of it.
    pub description: Description,
}

impl Prepared {
    /// The columns of the result.
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

impl EngineSession {
    pub(super) fn new(shared: Arc<Shared>, horizon: Horizon) -> Self {
        let time = shared.limits.time;
        Self { shared, time, horizon }
    }

    /// How long statements may run from now on: at most what the engine allows.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.time = time.min(self.shared.limits.time);
        self
    }

    /// Reads, judges and plans a statement of an endpoint; with values, puts them in the places of its parameters.
    ///
    /// # Errors
    /// When it is no SQL, not allowed, or does not fit the tables; or when a value does not fit.
    pub async fn resolve(
        &self,
        text: StatementText,
        values: Option<ParamValues>,
    ) -> Result<Resolved, QueryError> {
        let session = self.clone();
        self.deeply(async move {
            let mut resolved = match text.origin {
                Origin::Plain => session.resolve_plain(&text.sql).await?,
                Origin::Postgres { user, index, types } => {
                    postgres::resolve(&session, &text.sql, &user, index, &types).await?
                }
            };
            if let Some(values) = values {
                resolved.prepared = session.bind(&resolved.prepared, values)?;
                resolved.description.schema = Arc::clone(resolved.prepared.schema());
            }
            Ok(resolved)
        })
        .await
    }

    async fn resolve_plain(&self, sql: &str) -> Result<Resolved, QueryError> {
        let prepared = self.plan(guard::statement(sql, &self.shared.limits)?).await?;
        let parameter = |inferred| ParameterType { declared: None, inferred };
        let description = Description {
            schema: Arc::clone(&prepared.schema),
            names: None,
            parameters: prepared.parameters()?.into_iter().map(parameter).collect(),
            is_explain: false,
        };
        Ok(Resolved { prepared, description })
    }

    /// Judges and plans a statement that was read already. Needs a deep stack.
    pub(crate) async fn plan(&self, statement: Statement) -> Result<Prepared, QueryError> {
        let shared = &self.shared;
        guard::allow(&statement, &shared.limits)?;
        let plan = shared.state.statement_to_plan(statement).await?;
        guard::plan(&plan, &shared.limits)?;
        let schema = plain(plan.schema().as_arrow());
        Ok(Prepared { plan, schema })
    }

    /// Reads the statements of PostgreSQL clients.
    pub(crate) fn reader(&self) -> &postgres::Reader {
        &self.shared.reader
    }

    /// What queries may take.
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Puts values in the places of the parameters, which can change the types of the columns. Needs a deep stack.
    fn bind(&self, prepared: &Prepared, parameters: ParamValues) -> Result<Prepared, QueryError> {
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

    /// Runs a statement whose parameters have their values.
    ///
    /// # Errors
    /// When no plan can be made for it.
    pub async fn run(&self, prepared: Prepared) -> Result<Rows, QueryError> {
        let Prepared { plan, schema } = prepared;
        let (state, context) = self.state();
        let plan = self.deeply(async move { Ok(state.create_physical_plan(&plan).await?) }).await?;
        let (sender, batches) = mpsc::channel(WAITING_BATCHES);
        let (columns, time) = (Arc::clone(&schema), self.time);
        let query = self.shared.handle()?.spawn(async move {
            let run = send_all(plan, context, columns, &sender);
            let error = match tokio::time::timeout(time, run).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => too_slow(time),
            };
            // Nobody may be there to hear it.
            drop(sender.send(Err(error)).await);
        });
        Ok(Rows::new(schema, batches, query.abort_handle(), (time, time), self.shared.limits.rows))
    }

    /// Reads, plans and runs a statement without parameters.
    ///
    /// # Errors
    /// As [`Self::resolve`] and [`Self::run`].
    pub async fn query(&self, sql: &str) -> Result<Rows, QueryError> {
        let no_values = ParamValues::List(Vec::new());
        let resolved = self.resolve(StatementText::plain(sql), Some(no_values)).await?;
        self.run(resolved.prepared).await
    }

    /// Does what recurses over a statement, within the time that it has.
    async fn deeply<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        let work = deep_stack::run(self.shared.handle()?.clone(), work);
        tokio::time::timeout(self.time, work).await.map_err(|_| too_slow(self.time))?
    }

    /// The engine's state, with memory and tables of this statement's own.
    fn state(&self) -> (SessionState, Arc<TaskContext>) {
        let shared = &self.shared;
        let pool = QueryMemory::new(shared.limits.query_memory);
        let environment =
            RuntimeEnv { memory_pool: Arc::new(pool), ..shared.state.runtime_env().as_ref().clone() };
        let mut state = SessionStateBuilder::new_from_existing(shared.state.clone())
            .with_runtime_env(Arc::new(environment))
            .build();
        // now() is when the statement began to run, not when the engine was made.
        state.mark_start_execution();
        state.config_mut().set_extension(Arc::new(Moment::new(shared.source.clone(), self.horizon)));
        let context = state.task_ctx();
        (state, context)
    }
}

/// Runs a plan, and hands its batches out until nobody wants them.
async fn send_all(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    schema: SchemaRef,
    sender: &Sender<Result<Option<RecordBatch>, QueryError>>,
) -> Result<(), QueryError> {
    let mut stream = execute_stream(plan, context)?;
    while let Some(batch) = stream.next().await {
        let batch = with_plain_columns(&batch?, &schema)?;
        if batch.num_rows() > 0 && sender.send(Ok(Some(batch))).await.is_err() {
            return Ok(());
        }
    }
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
