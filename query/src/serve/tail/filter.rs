//! Filters the events of a batch with the conditions of a request, as SQL would.
//!
//! Conditions are evaluated in the server itself and not in a worker process. Therefore a list restricts what they may
//! contain: they compare, and build no value that is larger than their input.

use super::request::TailRequest;
use crate::engine::deep_stack;
use crate::error::{QueryError, QueryErrorKind};
use crate::tables::{self, ColumnProjection};
use crate::{functions, guard, types};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::prep_null_mask_filter;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use classifier::Rules;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, utils::conjunction};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::SessionContext;
use std::sync::Arc;
use store::Table;
use tokio::runtime::Handle;

/// The functions that conditions may call. None of them builds a result that is larger than its arguments.
const FUNCTIONS: [&str; 46] = [
    "abs",
    "btrim",
    "canonical",
    "category",
    "ceil",
    "character_length",
    "coalesce",
    "contains",
    "current_date",
    "current_time",
    "date_part",
    "date_trunc",
    "ends_with",
    "floor",
    "greatest",
    "json_as_text",
    "json_contains",
    "json_get",
    "json_get_bool",
    "json_get_float",
    "json_get_int",
    "json_get_json",
    "json_get_str",
    "json_length",
    "least",
    "left",
    "length",
    "lower",
    "ltrim",
    "now",
    "nullif",
    "octet_length",
    "regexp_like",
    "right",
    "round",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "substr",
    "template",
    "time_bucket",
    "to_date",
    "to_timestamp",
    "trunc",
    "upper",
];

/// Plans conditions.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    /// The engine state, which has functions and no tables.
    state: Arc<SessionState>,
}

/// The conditions that events must match.
#[derive(Debug)]
pub(super) struct Filter {
    /// The condition; `None` when every event matches.
    wanted: Option<Wanted>,
}

#[derive(Debug)]
struct Wanted {
    is_true: Arc<dyn PhysicalExpr>,
    /// The columns that the condition reads.
    columns: ColumnProjection,
}

impl Conditions {
    pub(super) fn new(rules: &Arc<Rules>) -> Result<Self, QueryError> {
        let context = SessionContext::new_with_config(crate::engine::config());
        functions::register(&context, rules)?;
        Ok(Self { state: Arc::new(context.state()) })
    }

    /// Plans the conditions of a request.
    pub(super) async fn filter(&self, request: TailRequest) -> Result<(TailRequest, Filter), QueryError> {
        let state = Arc::clone(&self.state);
        deep_stack::run(Handle::current(), async move {
            let filter = Filter::new(&request, &state)?;
            Ok((request, filter))
        })
        .await
    }
}

impl Filter {
    /// Plans the conditions. It needs a deep stack.
    fn new(request: &TailRequest, state: &SessionState) -> Result<Self, QueryError> {
        let schema = tables::table_schema(Table::Events);
        let named = DFSchema::try_from_qualified_schema(Table::Events.name(), &schema)?;
        let mut conditions = Vec::new();
        if let Some(simple) = request.simple() {
            conditions.push(state.create_logical_expr(&simple, &named)?);
        }
        if let Some(condition) = &request.condition {
            conditions.push(planned(condition, state, &named)?);
        }
        let Some(expression) = conjunction(conditions) else { return Ok(Self { wanted: None }) };
        let used = expression.column_refs();
        let indices: Vec<usize> = (0..schema.fields().len())
            .filter(|position| used.iter().any(|it| it.name == *schema.field(*position).name()))
            .collect();
        let columns = ColumnProjection::new(Table::Events, &schema, &indices)?;
        let projected = schema.project(&indices).map_err(|error| internal(&error))?;
        let projected = DFSchema::try_from_qualified_schema(Table::Events.name(), &projected)?;
        let is_true = state.create_physical_expr(simplified(expression, &projected)?, &projected)?;
        Ok(Self { wanted: Some(Wanted { is_true, columns }) })
    }

    /// Returns the rows of a stored batch that match.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<BooleanArray, QueryError> {
        let Some(wanted) = &self.wanted else { return Ok(BooleanArray::from(vec![true; batch.num_rows()])) };
        let columns = wanted.columns.of(batch).map_err(|error| internal(&error))?;
        let matches = wanted.is_true.evaluate(&columns)?.into_array(batch.num_rows())?;
        let matches = matches.as_boolean_opt().cloned();
        let matches = matches.ok_or_else(|| {
            QueryError::new(QueryErrorKind::Internal, "the condition is neither true nor false")
        })?;
        // NULL counts as false.
        Ok(if matches.null_count() > 0 { prep_null_mask_filter(&matches) } else { matches })
    }
}

/// Plans a condition of a client.
fn planned(condition: &str, state: &SessionState, schema: &DFSchema) -> Result<Expr, QueryError> {
    let parsed = guard::parse_condition(condition)?;
    let expression = state.create_logical_expr_from_sql_expr(parsed, schema)?;
    let gathers = |part: &Expr| Ok(matches!(part, Expr::AggregateFunction(_) | Expr::WindowFunction(_)));
    if expression.exists(gathers)? {
        let error = QueryError::new(
            QueryErrorKind::Invalid,
            "a condition looks at one event at a time: it cannot count or add up",
        );
        return Err(error.hint("ask such a question with faultline sql"));
    }
    if expression.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))? {
        return Err(QueryError::new(QueryErrorKind::Invalid, "a condition has no parameters")
            .hint("write the value itself"));
    }
    let mut problem = None;
    let is_refused = |part: &Expr| {
        problem = unsupported(part);
        Ok(problem.is_some())
    };
    if expression.exists(is_refused)? {
        let what = problem.unwrap_or_default();
        let message = format!("{what} is not allowed in a condition, which compares and builds nothing");
        return Err(
            QueryError::new(QueryErrorKind::Refused, message).hint("ask such a question with faultline sql")
        );
    }
    match expression.get_type(schema)? {
        DataType::Boolean => Ok(expression),
        other => {
            let message =
                format!("the condition is a {}, neither true nor false", types::postgres_name(&other));
            Err(QueryError::new(QueryErrorKind::Invalid, message)
                .hint("compare it, as in severity = 'critical'"))
        }
    }
}

/// Returns the part of a condition that is not allowed, if there is one.
fn unsupported(part: &Expr) -> Option<String> {
    match part {
        Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }) => Some("||".to_owned()),
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) if is_pattern(*op) && !is_literal(right) => {
            Some(format!("a pattern that is not written out, after {op},"))
        }
        Expr::Like(like) | Expr::SimilarTo(like) if !is_literal(&like.pattern) => {
            Some("a pattern that is not written out".to_owned())
        }
        Expr::ScalarFunction(call) if !FUNCTIONS.contains(&call.name()) => Some(format!("{}()", call.name())),
        Expr::ScalarFunction(call)
            if call.name() == "regexp_like" && !call.args.get(1).is_some_and(is_literal) =>
        {
            Some("a pattern that is not written out".to_owned())
        }
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Literal(..)
        | Expr::BinaryExpr(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::ScalarFunction(_)
        | Expr::InList(_) => None,
        other => Some(format!("{other}")),
    }
}

fn is_pattern(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
            | Operator::LikeMatch
            | Operator::ILikeMatch
            | Operator::NotLikeMatch
            | Operator::NotILikeMatch
    )
}

/// Returns true for a literal, possibly inside casts.
fn is_literal(part: &Expr) -> bool {
    match part {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => is_literal(&cast.expr),
        _ => false,
    }
}

/// Evaluates all parts of an expression that are the same for every event. `now()` is the time when the tail began.
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
    QueryError::new(QueryErrorKind::Internal, error.to_string())
}
