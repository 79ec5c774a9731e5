//! The engine session of one connection. It plans statements and runs them within limits.

use super::Shared;
use super::deep_stack;
use super::memory::QueryMemory;
use super::rows::{Rows, time_limit_error};
use super::statement_snapshot::StatementSnapshot;
use crate::error::{QueryError, QueryErrorKind};
use crate::guard::ReadOnlyStatement;
use crate::limits::Limits;
use crate::serve::postgres;
use crate::statement::{Description, ParameterType, StatementOrigin, StatementText};
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
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::snapshot::Horizon;
use tokio::sync::mpsc::{self, Sender};

/// The number of batches that are buffered for a slow client.
const WAITING_BATCHES: usize = 2;

/// The engine session of one connection.
#[derive(Debug, Clone)]
pub struct EngineSession {
    shared: Arc<Shared>,
    /// The time limit of each statement.
    time: Duration,
    /// The data that its statements may see.
    horizon: Horizon,
}

/// A statement that was parsed, checked and planned. It can be run any number of times.
#[derive(Debug, Clone)]
pub struct PreparedStatement {
    plan: LogicalPlan,
    schema: SchemaRef,
}

/// A planned statement with the description that an endpoint sends to its client.
#[derive(Debug, Clone)]
pub struct DescribedStatement {
    /// The planned statement.
    pub prepared: PreparedStatement,
    /// Its columns and parameters.
    pub description: Description,
}

impl PreparedStatement {
    /// Returns the columns of the result.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the types of the parameters, `$1` first; `None` for a type that cannot be inferred.
    ///
    /// # Errors
    /// Fails when a parameter would need two different types.
    pub fn parameters(&self) -> Result<Vec<Option<DataType>>, QueryError> {
        let types: HashMap<String, Option<DataType>> = self.plan.get_parameter_types()?;
        let number = |name: &str| name.trim_start_matches('$').parse::<usize>().ok();
        let count = types.keys().filter_map(|name| number(name)).max().unwrap_or(0);
        let inferred = |number| types.get(&format!("${number}")).cloned().flatten();
        Ok((1..=count).map(|number| inferred(number).map(|inferred| client_type(&inferred))).collect())
    }

    /// Casts values to the types that the statement expects. A text where a time is expected is parsed as a time, with
    /// microsecond precision.
    fn cast_parameters(&self, values: ParamValues) -> Result<ParamValues, QueryError> {
        let ParamValues::List(mut values) = values else { return Ok(values) };
        let expected = self.parameters()?;
        if expected.len() > values.len() {
            let message = format!("parameter ${} has no value", values.len() + 1);
            return Err(QueryError::new(QueryErrorKind::Invalid, message));
        }
        for (index, (value, expected)) in values.iter_mut().zip(expected).enumerate() {
            // A parameter that is only compared with other parameters may have any type.
            let needs_cast =
                |expected: &DataType| *expected != DataType::Null && *expected != value.value.data_type();
            let Some(expected) = expected.filter(needs_cast) else { continue };
            value.value = value.value.cast_to(&expected).map_err(|error| {
                let (number, name) = (index + 1, types::postgres_name(&expected));
                QueryError::new(
                    QueryErrorKind::Invalid,
                    format!("parameter ${number} is not of type {name}: {error}"),
                )
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

    /// Sets the time limit of statements, at most the limit of the engine.
    #[must_use]
    pub fn with_time_limit(mut self, time: Duration) -> Self {
        self.time = time.min(self.shared.limits.time);
        self
    }

    /// Parses, checks and plans a statement of an endpoint. If values are given, they are bound to its parameters.
    ///
    /// # Errors
    /// Fails when the text is not SQL, the statement is not allowed or does not match the tables, or a value does not
    /// match its parameter.
    pub async fn prepare(
        &self,
        text: StatementText,
        values: Option<ParamValues>,
    ) -> Result<DescribedStatement, QueryError> {
        let session = self.clone();
        self.run_on_deep_stack(async move {
            let mut described = match text.origin {
                StatementOrigin::Plain => session.prepare_plain(&text.sql).await?,
                StatementOrigin::Postgres { user, index, types } => {
                    postgres::resolve(&session, &text.sql, &user, index, &types).await?
                }
            };
            if let Some(values) = values {
                described.prepared = session.bind(&described.prepared, values)?;
                described.description.schema = Arc::clone(described.prepared.schema());
            }
            Ok(described)
        })
        .await
    }

    async fn prepare_plain(&self, sql: &str) -> Result<DescribedStatement, QueryError> {
        let prepared = self.plan(guard::parse_statement(sql, &self.shared.limits)?).await?;
        let parameter = |inferred| ParameterType { declared: None, inferred };
        let description = Description {
            schema: Arc::clone(&prepared.schema),
            names: None,
            parameters: prepared.parameters()?.into_iter().map(parameter).collect(),
            is_explain: false,
        };
        Ok(DescribedStatement { prepared, description })
    }

    /// Plans a statement that the guard has accepted, and checks the plan. It needs a deep stack.
    pub(crate) async fn plan(&self, statement: ReadOnlyStatement) -> Result<PreparedStatement, QueryError> {
        let shared = &self.shared;
        let plan = shared.state.statement_to_plan(statement.into_inner()).await?;
        guard::check_plan(&plan, &shared.limits)?;
        let schema = client_schema(plan.schema().as_arrow());
        Ok(PreparedStatement { plan, schema })
    }

    /// Returns the parser for statements of PostgreSQL clients.
    pub(crate) fn parser(&self) -> &postgres::StatementParser {
        &self.shared.parser
    }

    /// Returns the limits of queries.
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Binds values to the parameters, which can change the types of the columns. It needs a deep stack.
    fn bind(
        &self,
        prepared: &PreparedStatement,
        parameters: ParamValues,
    ) -> Result<PreparedStatement, QueryError> {
        let parameters = prepared.cast_parameters(parameters)?;
        let plan = prepared.plan.clone().with_param_values(parameters)?;
        if let Some(missing) = plan.get_parameter_names()?.into_iter().min() {
            return Err(QueryError::new(
                QueryErrorKind::Invalid,
                format!("parameter {missing} has no value"),
            ));
        }
        // Bound values can change the plan, so it is checked again.
        guard::check_plan(&plan, &self.shared.limits)?;
        let schema = with_bound_types(&prepared.schema, plan.schema().as_arrow());
        Ok(PreparedStatement { plan, schema })
    }

    /// Runs a statement whose parameters are bound.
    ///
    /// # Errors
    /// Fails when no physical plan can be made for it.
    pub async fn run(&self, prepared: PreparedStatement) -> Result<Rows, QueryError> {
        let PreparedStatement { plan, schema } = prepared;
        let (state, context) = self.state();
        let plan =
            self.run_on_deep_stack(async move { Ok(state.create_physical_plan(&plan).await?) }).await?;
        let (sender, batches) = mpsc::channel(WAITING_BATCHES);
        let (columns, time) = (Arc::clone(&schema), self.time);
        let query = self.shared.handle()?.spawn(async move {
            let run = send_all(plan, context, columns, &sender);
            let error = match tokio::time::timeout(time, run).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => time_limit_error(time),
            };
            // The receiver may have been dropped.
            drop(sender.send(Err(error)).await);
        });
        Ok(Rows::new(schema, batches, query.abort_handle(), (time, time), self.shared.limits.rows))
    }

    /// Parses, plans and runs a statement without parameters.
    ///
    /// # Errors
    /// Fails like [`Self::prepare`] and [`Self::run`].
    pub async fn query(&self, sql: &str) -> Result<Rows, QueryError> {
        let no_values = ParamValues::List(Vec::new());
        let described = self.prepare(StatementText::plain(sql), Some(no_values)).await?;
        self.run(described.prepared).await
    }

    /// Runs work that recurses over a statement on a deep stack, within the time limit.
    async fn run_on_deep_stack<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        let work = deep_stack::run(self.shared.handle()?.clone(), work);
        tokio::time::timeout(self.time, work).await.map_err(|_| time_limit_error(self.time))?
    }

    /// Returns the engine's state with a memory pool and table snapshots for one statement.
    fn state(&self) -> (SessionState, Arc<TaskContext>) {
        let shared = &self.shared;
        let pool = QueryMemory::new(shared.limits.query_memory);
        let environment =
            RuntimeEnv { memory_pool: Arc::new(pool), ..shared.state.runtime_env().as_ref().clone() };
        let mut state = SessionStateBuilder::new_from_existing(shared.state.clone())
            .with_runtime_env(Arc::new(environment))
            .build();
        // now() is the time when the statement began to run, not the time when the engine was created.
        state.mark_start_execution();
        state
            .config_mut()
            .set_extension(Arc::new(StatementSnapshot::new(shared.source.clone(), self.horizon)));
        let context = state.task_ctx();
        (state, context)
    }
}

/// Runs a plan and sends its batches until it ends or the receiver is dropped.
async fn send_all(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    schema: SchemaRef,
    sender: &Sender<Result<Option<RecordBatch>, QueryError>>,
) -> Result<(), QueryError> {
    let mut stream = execute_stream(plan, context)?;
    while let Some(batch) = stream.next().await {
        let batch = cast_to_client_schema(&batch?, &schema)?;
        if batch.num_rows() > 0 && sender.send(Ok(Some(batch))).await.is_err() {
            return Ok(());
        }
    }
    // The receiver may have been dropped.
    drop(sender.send(Ok(None)).await);
    Ok(())
}

/// Returns the schema with types that every client understands, such as `Utf8` for every layout of text.
fn client_schema(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| Field::new(field.name(), client_type(field.data_type()), true);
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Fills in the types of columns that are parameters, as in `SELECT $1`, which have no type before a value is bound. All
/// other columns keep the types that the client was told.
fn with_bound_types(prepared: &SchemaRef, bound: &Schema) -> SchemaRef {
    let is_untyped = |field: &Arc<Field>| *field.data_type() == DataType::Null;
    if !prepared.fields().iter().any(is_untyped) {
        return Arc::clone(prepared);
    }
    let bound = client_schema(bound);
    let fields = prepared.fields().iter().zip(bound.fields());
    Arc::new(Schema::new(
        fields.map(|(old, bound)| Arc::clone(if is_untyped(old) { bound } else { old })).collect::<Vec<_>>(),
    ))
}

fn client_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => client_type(values),
        DataType::List(item) => {
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(client_type(item.data_type()))))
        }
        other => other.clone(),
    }
}

fn cast_to_client_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns =
        columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options))
        .map_err(|error| QueryError::new(QueryErrorKind::Internal, error.to_string()))
}
