//! Failures that attributes state, for calls without a reply to search.
//!
//! The evidence is used in this order: a code attribute, `error.type`, an exception, an HTTP status. The
//! first one that is present decides that the call failed; the others provide missing details.

use super::Attribute;
use super::attributes::{AttributeKey, IndexedAttributes, parse_code};
use super::grpc;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::envelope::{Failure, error_shapes};
use crate::registry::Registry;

/// A failure, with the attribute that holds its code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TelemetryFailure<'a> {
    pub(crate) failure: Failure<'a>,
    /// The attribute that was read as the code.
    pub(crate) code: Option<&'a Attribute<'a>>,
    /// The HTTP status that `error.type` states, if any.
    pub(crate) http_status: Option<u16>,
}

/// The meaning of `error.type`.
#[derive(Debug, Clone, Copy)]
enum ErrorType<'a> {
    /// The attribute only states that the call failed.
    Failed,
    Code(Code<'a>),
    HttpStatus(u16),
    /// The class of an exception, or another short word.
    ClassName(&'a str),
}

/// Returns the failure that the attributes state; `None` if they state none.
pub(crate) fn from_attributes<'a>(
    attributes: &IndexedAttributes<'a>,
    registry: &Registry,
) -> Option<TelemetryFailure<'a>> {
    let error_type =
        attributes.get(AttributeKey::ErrorType).map(|attribute| parse_error_type(attribute, registry));
    let is_exception =
        [AttributeKey::ExceptionType, AttributeKey::ExceptionMessage, AttributeKey::Stacktrace]
            .into_iter()
            .any(|key| attributes.get(key).is_some());
    let is_http_error = attributes.http_status().is_some_and(|status| status >= 400);
    let code = attributes.code();
    let is_tool_error = attributes.is_tool_error();
    (code != Code::Missing || error_type.is_some() || is_tool_error || is_exception || is_http_error)
        .then(|| build(attributes, registry, code, error_type.unwrap_or(ErrorType::Failed)))
}

/// Creates the failure of a tool call that a host reports, with the error type that it states.
pub(crate) fn from_host<'a>(
    error_type: Option<&'a Attribute<'a>>,
    registry: &Registry,
) -> TelemetryFailure<'a> {
    let mut failure =
        Failure { code: Code::ToolError, is_from_telemetry: true, ..Failure::new(Dialect::Jsonrpc) };
    let mut http_status = None;
    match error_type.map(|attribute| parse_error_type(attribute, registry)) {
        Some(ErrorType::Code(code)) => failure.code = code,
        Some(ErrorType::HttpStatus(status)) => http_status = Some(status),
        Some(ErrorType::ClassName(class_name)) => failure.type_name = Some(strip_module(class_name)),
        Some(ErrorType::Failed) | None => {}
    }
    TelemetryFailure { failure, code: None, http_status }
}

/// Creates a failure of which only the status or the severity is known.
pub(crate) fn without_cause<'a>(attributes: &IndexedAttributes<'a>) -> TelemetryFailure<'a> {
    let failure = Failure { is_from_telemetry: true, ..Failure::new(protocol_dialect(attributes)) };
    TelemetryFailure { failure, code: None, http_status: None }
}

fn build<'a>(
    attributes: &IndexedAttributes<'a>,
    registry: &Registry,
    code: Code<'a>,
    error_type: ErrorType<'a>,
) -> TelemetryFailure<'a> {
    let canonical = attributes.may_be_grpc().then(|| grpc::canonical_code(code)).flatten();
    let (code, attribute) = match error_type {
        ErrorType::Code(other) if code == Code::Missing => (other, attributes.get(AttributeKey::ErrorType)),
        _ if code == Code::Missing && attributes.is_tool_error() => {
            (Code::ToolError, attributes.get(AttributeKey::ToolFailed))
        }
        _ => (code, attributes.get(AttributeKey::Code)),
    };
    let http_status = match error_type {
        ErrorType::HttpStatus(status) => Some(status),
        _ => None,
    };
    let class_name = match error_type {
        ErrorType::ClassName(class_name) => Some(class_name),
        _ => attributes.text(AttributeKey::ExceptionType),
    };
    let is_http_error = http_status.or(attributes.http_status()).is_some_and(|status| status >= 400);
    let shape_dialect = match code {
        _ if canonical.is_some() => Dialect::Unknown,
        Code::Missing if is_http_error => Dialect::Http,
        Code::ToolError => Dialect::Jsonrpc,
        code => Some(error_shapes::dialect_of_code(registry, code))
            .filter(|&dialect| dialect != Dialect::Unknown)
            .unwrap_or_else(|| protocol_dialect(attributes)),
    };
    let type_name = class_name.map(strip_module);
    let failure =
        Failure { code, type_name, canonical, is_from_telemetry: true, ..Failure::new(shape_dialect) };
    TelemetryFailure { failure, code: attribute, http_status }
}

/// Returns the error model of the protocol, as far as the attributes show it.
pub(crate) fn protocol_dialect(attributes: &IndexedAttributes<'_>) -> Dialect {
    if attributes.uses_jsonrpc() {
        Dialect::Jsonrpc
    } else if attributes.http_status().is_some() {
        Dialect::Http
    } else {
        Dialect::Unknown
    }
}

fn parse_error_type<'a>(attribute: &'a Attribute<'a>, registry: &Registry) -> ErrorType<'a> {
    match parse_code(&attribute.value) {
        Code::Text("_OTHER") => ErrorType::Failed,
        Code::Text("tool_error") => ErrorType::Code(Code::ToolError),
        Code::Text(text) if is_code(registry, text) => ErrorType::Code(Code::Text(text)),
        Code::Text(text) => ErrorType::ClassName(text),
        Code::Number { value: status @ 400..=599, .. } => {
            u16::try_from(status).map_or(ErrorType::Failed, ErrorType::HttpStatus)
        }
        code @ Code::Number { .. } => ErrorType::Code(code),
        _ => ErrorType::Failed,
    }
}

/// Reports whether a text is a code of some error model, or has the prefix of one.
fn is_code(registry: &Registry, text: &str) -> bool {
    registry.find(text).next().is_some() || registry.prefix(text).is_some()
}

/// Returns a class name without its module: `asyncio.TimeoutError`, `app::Error`, `App\Error`.
fn strip_module(class_name: &str) -> &str {
    let name = class_name.rsplit(['.', ':', '\\', '/', '$']).next().unwrap_or(class_name);
    if name.is_empty() { class_name } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_without_its_module() {
        for (class_name, expected) in [
            ("TimeoutError", "TimeoutError"),
            ("asyncio.TimeoutError", "TimeoutError"),
            ("app::store::Error", "Error"),
            ("Some\\Php\\Fault", "Fault"),
            ("ends.", "ends."),
        ] {
            assert_eq!(strip_module(class_name), expected);
        }
    }
}
