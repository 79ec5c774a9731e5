//! `template(message)`: the part of a message that it shares with other messages of its kind.

use super::{documentation, text};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::utils::take_function_args;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::LazyLock;

/// The function `template`, which replaces the dynamic values of a message.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Template {
    signature: Signature,
}

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The message without its dynamic values, which is the same for every event of a group",
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

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        text::coerce_to_text(self.name(), argument_types, 1)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(text::TEXT)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [message] = take_function_args(self.name(), args.args)?;
        text::map_texts(&message, |message| Ok(Some(classifier::template::from_message(message))))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}
