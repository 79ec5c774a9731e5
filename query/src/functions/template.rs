//! `template(message)`: what a message has in common with others of its kind.

use super::{documentation, text};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::utils::take_function_args;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::LazyLock;

/// What a message has in common with others of its kind.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Template {
    signature: Signature,
}

static ABOUT: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The message without its dynamic values: what the same failure says every time. It is how events are grouped",
        "template(message)",
        &[("message", "Any text, such as a pasted error message")],
    )
});

impl Template {
    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Template {
    fn name(&self) -> &str {
        "template"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        text::coerced(self.name(), given, 1)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(text::TEXT)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [message] = take_function_args(self.name(), args.args)?;
        text::each(&message, |message| Ok(Some(taxonomy::template::of(message))))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&ABOUT)
    }
}
