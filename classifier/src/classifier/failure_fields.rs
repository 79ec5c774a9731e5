//! What single fields of a failure say: its status, its word on retries, how long to wait, whose fault it is.
//!
//! The payload's own word comes before what the code stands for.

use crate::category::{Category, Severity};
use crate::context::{ContextField, http_status};
use crate::details::{DetailKey, Details};
use crate::envelope::Scope;
use crate::event::EventKind;
use crate::fault::Fault;
use crate::lookup::Classification;
use crate::retry_after;

/// Returns the HTTP status that the payload states, or else the one of the record.
pub(super) fn find_http_status(
    details: &Details<'_>,
    error_fields: &Details<'_>,
    scope: &Scope<'_>,
) -> Option<u16> {
    [
        details.get(DetailKey::HttpStatus),
        error_fields.get(DetailKey::Status),
        error_fields.get(DetailKey::HttpStatus),
    ]
    .into_iter()
    .chain([scope.fields[ContextField::HttpStatus as usize]])
    .flatten()
    .find_map(http_status)
}

/// Returns what the payload itself states about retries.
pub(super) fn payload_retryable(details: &Details<'_>, error_fields: &Details<'_>) -> Option<bool> {
    error_fields.get(DetailKey::Retryable).or(details.get(DetailKey::Retryable))?.as_bool()
}

/// Returns whose fault a failure is. Asking whether `server/discover` is there is no failure of anyone.
pub(super) fn fault(
    kind: EventKind,
    classification: &Classification<'_>,
    operation: Option<&str>,
) -> Option<Fault> {
    let is_probe = classification.canonical == "NOT_FOUND_OPERATION" && operation == Some("server/discover");
    let fault = if is_probe { Some(Fault::Probe) } else { classification.fault };
    fault.filter(|_| kind == EventKind::Error)
}

/// Caps the severity of a warning at `warning`, whatever its code means as an error.
pub(super) fn cap_severity(kind: EventKind, severity: Severity) -> Severity {
    if kind == EventKind::Warning { severity.max(Severity::Warning) } else { severity }
}

/// Finds the time to wait before a retry. Fields count for any failure; the message is searched only where
/// waiting can help.
pub(super) fn find_retry_after(
    details: &Details<'_>,
    error_fields: &Details<'_>,
    message: Option<&str>,
    classification: &Classification<'_>,
) -> Option<f64> {
    let may_wait = matches!(
        classification.meaning.category,
        Category::RateLimit | Category::Internal | Category::Unknown
    );
    retry_after::read([details, error_fields], message.filter(|_| may_wait), classification.dialect)
}
