//! A SQL function as a value: its name, its types, its documentation, and the Rust function that computes it.
//!
//! Functions that wrap another one, or that the optimizer looks into, implement the engine's trait themselves.

use arrow::datatypes::DataType;
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

/// Computes the results of a function from its state and its arguments.
type Compute<S> = fn(&S, ScalarFunctionArgs) -> Result<ColumnarValue>;
/// Returns the types that arguments of a function are cast to.
type Coerce = fn(&str, &[DataType]) -> Result<Vec<DataType>>;

/// A SQL function with a constant return type. Functions with the same name and state are equal.
pub(crate) struct Udf<S> {
    name: &'static str,
    signature: Signature,
    return_type: DataType,
    state: S,
    compute: Compute<S>,
    coerce: Option<Coerce>,
    is_strict: bool,
    documentation: Option<&'static LazyLock<Documentation>>,
}

impl<S: fmt::Debug + Eq + Hash + Send + Sync + 'static> Udf<S> {
    /// Creates a function. Its state is passed to `compute` at each call.
    pub(crate) fn new(
        name: &'static str,
        signature: Signature,
        return_type: DataType,
        state: S,
        compute: Compute<S>,
    ) -> Self {
        let (coerce, is_strict, documentation) = (None, false, None);
        Self { name, signature, return_type, state, compute, coerce, is_strict, documentation }
    }

    /// Casts the arguments to types that a function chooses; the signature must be user-defined.
    pub(super) fn coerced(self, coerce: Coerce) -> Self {
        Self { coerce: Some(coerce), ..self }
    }

    /// Declares that the result is NULL if an argument is NULL.
    pub(super) fn strict(self) -> Self {
        Self { is_strict: true, ..self }
    }

    /// Adds documentation, which `information_schema.routines` shows.
    pub(super) fn documented(self, documentation: &'static LazyLock<Documentation>) -> Self {
        Self { documentation: Some(documentation), ..self }
    }

    /// Returns the function as the engine registers it.
    pub(crate) fn build(self) -> ScalarUDF {
        ScalarUDF::new_from_impl(self)
    }
}

impl<S: PartialEq> PartialEq for Udf<S> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.state == other.state
    }
}

impl<S: Eq> Eq for Udf<S> {}

impl<S: Hash> Hash for Udf<S> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.name.hash(hasher);
        self.state.hash(hasher);
    }
}

impl<S: fmt::Debug> fmt::Debug for Udf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udf").field("name", &self.name).field("state", &self.state).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug + Eq + Hash + Send + Sync + 'static> ScalarUDFImpl for Udf<S> {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        match self.coerce {
            Some(coerce) => coerce(self.name, argument_types),
            None => not_impl_err!("{} casts no arguments", self.name),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.return_type.clone())
    }

    fn is_strict(&self) -> bool {
        self.is_strict
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.compute)(&self.state, args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.documentation.map(|documentation| &**documentation)
    }
}
