//! The findings of an envelope: a failure or a warning as stated, or a successful call.

use crate::code::Code;
use crate::details::{DetailKey, Details};
use crate::dialect::Dialect;
use crate::event::{EventKind, Outcome};
use crate::json::Json;

/// A failure or a warning, as an envelope states it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'t> {
    pub(crate) kind: EventKind,
    /// The dialect that the shape indicates.
    pub(crate) shape_dialect: Dialect,
    pub(crate) code: Code<'t>,
    pub(crate) message: Option<&'t str>,
    /// The error object; `None` if the error is a text.
    pub(crate) error: Option<Json<'t>>,
    /// The known fields of the error object.
    pub(crate) error_fields: Details<'t>,
    pub(crate) details: Option<Json<'t>>,
    /// The class of the exception that caused the failure.
    pub(crate) type_name: Option<&'t str>,
    /// The confirmation offered beside the error.
    pub(crate) confirmation: Option<Json<'t>>,
    /// True if the error is a text where the protocol requires an object.
    pub(crate) is_string_error: bool,
    /// True if telemetry reports the failure; the reply itself was not seen, so its form cannot be judged.
    pub(crate) is_from_telemetry: bool,
    /// The canonical code that a status of another protocol maps to.
    pub(crate) canonical: Option<&'static str>,
}

impl<'t> Failure<'t> {
    /// Creates a failure of which only the dialect is known.
    pub(crate) fn new(shape_dialect: Dialect) -> Self {
        Self {
            kind: EventKind::Error,
            shape_dialect,
            code: Code::Missing,
            message: None,
            error: None,
            error_fields: Details::EMPTY,
            details: None,
            type_name: None,
            confirmation: None,
            is_string_error: false,
            is_from_telemetry: false,
            canonical: None,
        }
    }

    /// Returns the same failure with another message.
    pub(crate) fn with_message<'u>(self, message: Option<&'u str>) -> Failure<'u>
    where
        't: 'u,
    {
        Failure { message, ..self }
    }

    /// Reads a failure from an object with `code`, `message` and `details` or `data`.
    pub(super) fn from_object(shape_dialect: Dialect, error: Json<'t>) -> Self {
        let error_fields = Details::read(Some(error));
        Self {
            error: Some(error),
            code: Code::read(error_code(&error_fields, error)),
            message: error_fields.text(DetailKey::Message),
            details: error_fields.get(DetailKey::Details).or(error_fields.get(DetailKey::Data)),
            type_name: error_fields.text(DetailKey::Type),
            error_fields,
            ..Self::new(shape_dialect)
        }
    }

    /// Reads a failure from an item of a list of errors or warnings, which is an object or a text.
    pub(super) fn from_item(shape_dialect: Dialect, item: Json<'t>) -> Self {
        item.as_str().map_or_else(
            || Self::from_object(shape_dialect, item),
            |text| Self::from_text(shape_dialect, text),
        )
    }

    /// Creates a failure that consists only of a text.
    pub(super) fn from_text(shape_dialect: Dialect, message: &'t str) -> Self {
        Self { message: Some(message), is_string_error: true, ..Self::new(shape_dialect) }
    }
}

/// Returns the code. A code that is present but `null` differs from a missing one.
fn error_code<'t>(error_fields: &Details<'t>, error: Json<'t>) -> Option<Json<'t>> {
    error_fields.get(DetailKey::Code).or_else(|| error.get("code"))
}

/// One successful call, or several of the same kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Success {
    pub(crate) dialect: Dialect,
    pub(crate) outcome: Outcome,
    pub(crate) count: u64,
}

impl Success {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, outcome: Outcome::Ok, count: 1 }
    }
}
