//! Integer arithmetic that fails instead of wrapping around: `+`, `-` (binary and unary), `*` and `sum`.
//!
//! The engine itself returns -9223372036854775808 for 9223372036854775807 + 1, and a dashboard would show that value.

mod sum;

pub(super) use sum::function as sum;

use arrow::compute::kernels::numeric;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;
use std::fmt::Write as _;
use std::sync::Arc;

/// The operators that can overflow.
const OPERATORS: [Operator; 3] = [Operator::Plus, Operator::Minus, Operator::Multiply];

/// Replaces an operator between two integers with a function. A chain of any length becomes one function, because
/// computing the type of a nested call computes the types of all calls in it, again at each level.
pub(super) fn rewrite_binary(expr: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let is_integer = |side: &Expr| side.get_type(schema).is_ok_and(|data_type| data_type.is_integer());
    let is_checked = |side: &Expr| checked_operators(side).is_some() || is_integer(side);
    if !OPERATORS.contains(&expr.op) || !is_checked(&expr.left) || !is_integer(&expr.right) {
        return Transformed::no(Expr::BinaryExpr(expr));
    }
    let mut operators = checked_operators(&expr.left).map(<[Operator]>::to_vec).unwrap_or_default();
    let mut args = match *expr.left {
        Expr::ScalarFunction(call) if !operators.is_empty() => call.args,
        left => vec![left],
    };
    operators.push(expr.op);
    args.push(*expr.right);
    let function = Arc::new(ScalarUDF::from(CheckedArithmetic::new(operators)));
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

/// Returns the operators of a chain that was already rewritten.
fn checked_operators(expr: &Expr) -> Option<&[Operator]> {
    let Expr::ScalarFunction(call) = expr else { return None };
    call.func.inner().downcast_ref::<CheckedArithmetic>().map(|checked| checked.operators.as_slice())
}

/// Replaces the sign of a negated integer with the function: `-x` becomes `0 - x`, of the type of `x`.
pub(super) fn rewrite_negation(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let zero = expr.get_type(schema).ok().filter(DataType::is_signed_integer);
    match zero.and_then(|data_type| ScalarValue::new_zero(&data_type).ok()) {
        Some(zero) => {
            let left = Box::new(Expr::Literal(zero, None));
            let difference = BinaryExpr { left, op: Operator::Minus, right: Box::new(expr) };
            rewrite_binary(difference, schema)
        }
        None => Transformed::no(Expr::Negative(Box::new(expr))),
    }
}

/// A chain of operators between integers, evaluated from left to right. It fails when a result does not fit.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedArithmetic {
    operators: Vec<Operator>,
    signature: Signature,
}

/// One operator of a chain, with the types that its operands are cast to.
struct Step {
    operator: Operator,
    left: DataType,
    right: DataType,
    result: DataType,
}

impl CheckedArithmetic {
    fn new(operators: Vec<Operator>) -> Self {
        Self { operators, signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// Returns the steps of the chain for arguments of these types.
    fn steps(&self, argument_types: &[DataType]) -> Result<Vec<Step>> {
        let Some((first, rest)) =
            argument_types.split_first().filter(|(_, rest)| rest.len() == self.operators.len())
        else {
            return internal_err!("an operator has two sides");
        };
        let mut before = first.clone();
        let step = |(operator, right): (&Operator, &DataType)| {
            let (left, right) = BinaryTypeCoercer::new(&before, operator, right).get_input_types()?;
            let result = BinaryTypeCoercer::new(&left, operator, &right).get_result_type()?;
            before = result.clone();
            Ok(Step { operator: *operator, left, right, result })
        };
        self.operators.iter().zip(rest).map(step).collect()
    }

    /// Returns the chain as SQL would write it.
    fn display_name(&self, args: &[Expr]) -> String {
        let name = |arg: &Expr| match checked_operators(arg) {
            Some(_) => format!("({})", arg.schema_name()),
            None => arg.schema_name().to_string(),
        };
        let mut text = args.first().map(name).unwrap_or_default();
        for (operator, arg) in self.operators.iter().zip(args.iter().skip(1)) {
            let _ = write!(text, " {operator} {}", name(arg));
        }
        text
    }
}

impl ScalarUDFImpl for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked"
    }

    /// The schema name contains the operators, because otherwise `a + b` and `a - b` would have the same name.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.display_name(args))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        let steps = self.steps(argument_types)?;
        let first = steps.first().map(|step| step.left.clone());
        Ok(first.into_iter().chain(steps.into_iter().map(|step| step.right)).collect())
    }

    fn return_type(&self, argument_types: &[DataType]) -> Result<DataType> {
        match self.steps(argument_types)?.pop() {
            Some(last) => Ok(last.result),
            None => internal_err!("an operator has two sides"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let mut values = args.args.into_iter();
        let Some(mut result) = values.next() else { return internal_err!("an operator has two sides") };
        for (step, right) in self.steps(&types)?.iter().zip(values) {
            let left = result.cast_to(&step.left, None)?;
            let right = right.cast_to(&step.right, None)?;
            result = match step.operator {
                Operator::Plus => apply(&left, &right, numeric::add),
                Operator::Minus => apply(&left, &right, numeric::sub),
                _ => apply(&left, &right, numeric::mul),
            }?;
        }
        Ok(result)
    }
}
