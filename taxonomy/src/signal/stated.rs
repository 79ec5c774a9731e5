//! Failures that attributes state, where no reply is there to look into.
//!
//! In this order: a code attribute, `error.type`, an exception, an HTTP status. The first that is there
//! decides that it failed; the others fill in what it leaves open.

use super::Attribute;
use super::clues::{Clue, Clues, code_of};
use super::grpc;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::envelope::{Failure, error_shapes};
use crate::registry::Registry;

/// A failure, and where its code stood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stated<'a> {
    pub(crate) failure: Failure<'a>,
    /// The attribute that is read as the code.
    pub(crate) code: Option<&'a Attribute<'a>>,
    /// The status that `error.type` gives, when it gives one.
    pub(crate) http_status: Option<u16>,
}

/// What `error.type` says.
#[derive(Debug, Clone, Copy)]
enum ErrorType<'a> {
    /// Only that it failed.
    Failed,
    Code(Code<'a>),
    HttpStatus(u16),
    /// The class of an exception, or another short word.
    Class(&'a str),
}

/// What the attributes state; none when they tell of no failure.
pub(crate) fn read<'a>(clues: &Clues<'a>, registry: &Registry) -> Option<Stated<'a>> {
    let error_type = clues.get(Clue::ErrorType).map(|attribute| error_type(attribute, registry));
    let is_exception = [Clue::ExceptionType, Clue::ExceptionMessage, Clue::Stacktrace]
        .into_iter()
        .any(|clue| clues.get(clue).is_some());
    let is_http_error = clues.http_status().is_some_and(|status| status >= 400);
    let code = clues.code();
    let is_tool_error = clues.is_tool_error();
    (code != Code::Missing || error_type.is_some() || is_tool_error || is_exception || is_http_error)
        .then(|| of(clues, registry, code, error_type.unwrap_or(ErrorType::Failed)))
}

/// A failure of which the status, or the severity, is all that is known.
pub(crate) fn unexplained<'a>(clues: &Clues<'a>) -> Stated<'a> {
    let failure = Failure { is_hearsay: true, ..Failure::of_shape(protocol(clues)) };
    Stated { failure, code: None, http_status: None }
}

fn of<'a>(clues: &Clues<'a>, registry: &Registry, code: Code<'a>, error_type: ErrorType<'a>) -> Stated<'a> {
    let canonical = clues.may_be_grpc().then(|| grpc::canonical(code)).flatten();
    let (code, attribute) = match error_type {
        ErrorType::Code(other) if code == Code::Missing => (other, clues.get(Clue::ErrorType)),
        _ if code == Code::Missing && clues.is_tool_error() => (Code::ToolError, clues.get(Clue::ToolFailed)),
        _ => (code, clues.get(Clue::Code)),
    };
    let http_status = match error_type {
        ErrorType::HttpStatus(status) => Some(status),
        _ => None,
    };
    let class = match error_type {
        ErrorType::Class(class) => Some(class),
        _ => clues.text(Clue::ExceptionType),
    };
    let is_http_error = http_status.or(clues.http_status()).is_some_and(|status| status >= 400);
    let shape = match code {
        _ if canonical.is_some() => Dialect::Unknown,
        Code::Missing if is_http_error => Dialect::Http,
        Code::ToolError => Dialect::Jsonrpc,
        code => Some(error_shapes::of_code(registry, code))
            .filter(|&dialect| dialect != Dialect::Unknown)
            .unwrap_or_else(|| protocol(clues)),
    };
    let type_name = class.map(class_name);
    let failure = Failure { code, type_name, canonical, is_hearsay: true, ..Failure::of_shape(shape) };
    Stated { failure, code: attribute, http_status }
}

/// The error model of what is spoken, as far as attributes show it.
pub(crate) fn protocol(clues: &Clues<'_>) -> Dialect {
    if clues.speaks_jsonrpc() {
        Dialect::Jsonrpc
    } else if clues.http_status().is_some() {
        Dialect::Http
    } else {
        Dialect::Unknown
    }
}

fn error_type<'a>(attribute: &'a Attribute<'a>, registry: &Registry) -> ErrorType<'a> {
    match code_of(&attribute.value) {
        Code::Text("_OTHER") => ErrorType::Failed,
        Code::Text("tool_error") => ErrorType::Code(Code::ToolError),
        Code::Text(text) if is_code(registry, text) => ErrorType::Code(Code::Text(text)),
        Code::Text(text) => ErrorType::Class(text),
        Code::Number { value: status @ 400..=599, .. } => {
            u16::try_from(status).map_or(ErrorType::Failed, ErrorType::HttpStatus)
        }
        code @ Code::Number { .. } => ErrorType::Code(code),
        _ => ErrorType::Failed,
    }
}

/// A text that some error model has as a code, or would read as one.
fn is_code(registry: &Registry, text: &str) -> bool {
    registry.find(text).next().is_some() || registry.prefix(text).is_some()
}

/// The class without its module: `asyncio.TimeoutError`, `app::Error`, `App\Error`.
fn class_name(class: &str) -> &str {
    let own = class.rsplit(['.', ':', '\\', '/', '$']).next().unwrap_or(class);
    if own.is_empty() { class } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_without_its_module() {
        for (class, expected) in [
            ("TimeoutError", "TimeoutError"),
            ("asyncio.TimeoutError", "TimeoutError"),
            ("app::store::Error", "Error"),
            ("Some\\Php\\Fault", "Fault"),
            ("ends.", "ends."),
        ] {
            assert_eq!(class_name(class), expected);
        }
    }
}
