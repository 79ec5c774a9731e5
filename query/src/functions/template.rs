//! `template(message)`: the part of a message that it shares with other messages of its kind.

use super::udf::Udf;
use super::{documentation, text};
use datafusion::common::utils::take_function_args;
use datafusion::logical_expr::{Documentation, ScalarUDF, Signature, Volatility};
use std::sync::LazyLock;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The message without its dynamic values, which is the same for every event of a group",
        "template(message)",
        &[("message", "Any text, such as a pasted error message")],
    )
});

/// Returns the function, which replaces the dynamic values of a message.
pub(super) fn function() -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    Udf::new("template", signature, text::TEXT, (), |(), args| {
        let [message] = take_function_args("template", args.args)?;
        text::map_texts(&message, |message| Ok(Some(classifier::template::from_message(message))))
    })
    .coerced(|name, types| text::coerce_to_text(name, types, 1))
    .strict()
    .documented(&DOCUMENTATION)
    .build()
}
