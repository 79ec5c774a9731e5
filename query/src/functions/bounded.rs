//! Adds limits to the engine's functions that can build a result much larger than their arguments.
//!
//! No memory limit covers such results, and constants are folded while a statement is planned: a chain of fifteen `s ||
//! s || s || s` would take ten gigabytes before anyone could stop it. So every statement is rewritten before it is
//! optimized, and calls that would build too much fail instead. Operators between integers become [`checked`] at the
//! same time.

mod growth;

use super::checked;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Documentation, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use growth::Growth;
use std::sync::Arc;

/// The functions that are limited, each with the way in which its result grows.
const BOUNDED: [(&str, Growth); 20] = [
    ("repeat", Growth::RepeatedText),
    ("lpad", Growth::Characters),
    ("rpad", Growth::Characters),
    ("array_repeat", Growth::Elements(0)),
    ("array_resize", Growth::Elements(2)),
    ("range", Growth::Series),
    ("generate_series", Growth::Series),
    ("replace", Growth::Replacement),
    ("regexp_replace", Growth::PatternReplacement),
    ("array_to_string", Growth::JoinedList),
    ("concat", Growth::Concatenation),
    ("concat_ws", Growth::Concatenation),
    ("array_concat", Growth::Concatenation),
    ("array_append", Growth::Concatenation),
    ("array_prepend", Growth::Concatenation),
    ("make_array", Growth::Concatenation),
    ("struct", Growth::Concatenation),
    ("named_struct", Growth::Concatenation),
    ("map", Growth::Concatenation),
    ("make_map", Growth::Concatenation),
];

/// The name that plans show for the wrapper around an operand of `||`.
const OPERAND_FUNCTION: &str = "bounded";

/// Registers the rewrite that adds limits to every statement.
pub(super) fn register(context: &mut SessionContext) -> Result<()> {
    let operator = Arc::new(ScalarUDF::from(BoundedOperand::new()));
    context.register_function_rewrite(Arc::new(BoundsRewrite { operator }))
}

/// The rewrite that wraps every call that needs a limit.
#[derive(Debug)]
struct BoundsRewrite {
    operator: Arc<ScalarUDF>,
}

impl FunctionRewrite for BoundsRewrite {
    fn name(&self) -> &str {
        "bounds"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) => Ok(bound_function(func, args)),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
                Ok(self.bound_concatenation(*left, *right))
            }
            Expr::BinaryExpr(expr) => Ok(checked::rewrite_binary(expr, schema)),
            Expr::Negative(expr) => Ok(checked::rewrite_negation(*expr, schema)),
            other => Ok(Transformed::no(other)),
        }
    }
}

fn bound_function(func: Arc<ScalarUDF>, args: Vec<Expr>) -> Transformed<Expr> {
    let known = BOUNDED.iter().find(|(name, _)| *name == func.name());
    match known.filter(|_| !func.inner().is::<Bounded>()) {
        Some((_, growth)) => {
            let bounded = ScalarUDF::from(Bounded { inner: func, growth: *growth });
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(bounded), args)))
        }
        None => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
    }
}

impl BoundsRewrite {
    /// Rewrites `left || right` so that each side is checked before the two are concatenated.
    fn bound_concatenation(&self, left: Expr, right: Expr) -> Transformed<Expr> {
        let is_bounded = |side: &Expr| matches!(side, Expr::ScalarFunction(call) if call.func.inner().is::<BoundedOperand>());
        let is_new = !is_bounded(&left);
        let bounded = |side: Expr| match is_bounded(&side) {
            true => Box::new(side),
            false => {
                let operator = Arc::clone(&self.operator);
                Box::new(Expr::ScalarFunction(ScalarFunction::new_udf(operator, vec![side])))
            }
        };
        let (left, right) = (bounded(left), bounded(right));
        let concat = Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right });
        if is_new { Transformed::yes(concat) } else { Transformed::no(concat) }
    }
}

/// A function that fails instead of building a result that is too large.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(argument_types)
    }

    fn return_type(&self, argument_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(argument_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.growth.check(self.name(), &args.args, args.number_rows)?;
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// The function that passes on one side of `||`, or fails if it is too large.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedOperand {
    signature: Signature,
}

impl BoundedOperand {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for BoundedOperand {
    fn name(&self) -> &str {
        OPERAND_FUNCTION
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, argument_types: &[DataType]) -> Result<DataType> {
        Ok(argument_types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields.first() {
            Some(field) => Ok(Arc::clone(field)),
            None => datafusion::common::internal_err!("|| has sides"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Growth::Concatenation.check("||", &args.args, args.number_rows)?;
        match args.args.into_iter().next() {
            Some(side) => Ok(side),
            None => datafusion::common::internal_err!("|| has sides"),
        }
    }
}
