//! Picks events out of stored batches, by the same conditions as SQL would.

use super::asked::Asked;
use crate::error::{Kind, QueryError};
use crate::tables::{self, Columns};
use crate::{guard, types};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::prep_null_mask_filter;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, utils::conjunction};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;
use store::Table;

/// What events must be like.
#[derive(Debug)]
pub(super) struct Filter {
    /// None when everything is wanted.
    wanted: Option<Wanted>,
}

#[derive(Debug)]
struct Wanted {
    is_true: Arc<dyn PhysicalExpr>,
    /// The columns that it looks at.
    columns: Columns,
}

impl Filter {
    /// Plans the conditions.
    pub(super) fn new(asked: &Asked, state: &SessionState) -> Result<Self, QueryError> {
        let schema = tables::schema_of(Table::Events);
        let named = DFSchema::try_from_qualified_schema(Table::Events.name(), &schema)?;
        let mut conditions = Vec::new();
        if let Some(simple) = asked.simple() {
            conditions.push(state.create_logical_expr(&simple, &named)?);
        }
        if let Some(condition) = &asked.condition {
            conditions.push(planned(condition, state, &named)?);
        }
        let Some(expression) = conjunction(conditions) else { return Ok(Self { wanted: None }) };
        let used = expression.column_refs();
        let places: Vec<usize> = (0..schema.fields().len())
            .filter(|place| used.iter().any(|it| it.name == *schema.field(*place).name()))
            .collect();
        let columns = Columns::new(Table::Events, &schema, &places)?;
        let projected = schema.project(&places).map_err(|error| internal(&error))?;
        let projected = DFSchema::try_from_qualified_schema(Table::Events.name(), &projected)?;
        let is_true = state.create_physical_expr(simplified(expression, &projected)?, &projected)?;
        Ok(Self { wanted: Some(Wanted { is_true, columns }) })
    }

    /// Which rows of a stored batch are wanted.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<BooleanArray, QueryError> {
        let Some(wanted) = &self.wanted else { return Ok(BooleanArray::from(vec![true; batch.num_rows()])) };
        let columns = wanted.columns.of(batch).map_err(|error| internal(&error))?;
        let answers = wanted.is_true.evaluate(&columns)?.into_array(batch.num_rows())?;
        let answers = answers.as_boolean_opt().cloned();
        let answers = answers
            .ok_or_else(|| QueryError::new(Kind::Internal, "the condition is neither true nor false"))?;
        // What is unknown is not true.
        Ok(if answers.null_count() > 0 { prep_null_mask_filter(&answers) } else { answers })
    }
}

/// A condition that somebody wrote.
fn planned(condition: &str, state: &SessionState, schema: &DFSchema) -> Result<Expr, QueryError> {
    let parsed = guard::condition(condition)?;
    let expression = state.create_logical_expr_from_sql_expr(parsed, schema)?;
    let gathers = |part: &Expr| Ok(matches!(part, Expr::AggregateFunction(_) | Expr::WindowFunction(_)));
    if expression.exists(gathers)? {
        let error = QueryError::new(
            Kind::Invalid,
            "a condition looks at one event at a time: it cannot count or add up",
        );
        return Err(error.hint("ask such a question with faultline sql"));
    }
    if expression.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))? {
        return Err(
            QueryError::new(Kind::Invalid, "a condition has no parameters").hint("write the value itself")
        );
    }
    match expression.get_type(schema)? {
        DataType::Boolean => Ok(expression),
        other => {
            let message = format!("the condition is a {}, neither true nor false", types::name_of(&other));
            Err(QueryError::new(Kind::Invalid, message).hint("compare it, as in severity = 'critical'"))
        }
    }
}

/// With everything worked out that is the same for all events; `now()` is when the tail began.
fn simplified(expression: Expr, schema: &DFSchema) -> Result<Expr, QueryError> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_query_execution_start_time(Some(chrono::Utc::now()))
        .build();
    let simplifier = ExprSimplifier::new(context);
    let coerced = simplifier.coerce(expression, schema)?;
    Ok(simplifier.simplify(coerced)?)
}

fn internal(error: &ArrowError) -> QueryError {
    QueryError::new(Kind::Internal, error.to_string())
}
