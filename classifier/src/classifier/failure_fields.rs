//! Single fields of a failure: its HTTP status, whether a retry helps, how long to wait and who is at fault.
//!
//! A value that the payload states takes precedence over the one that its code implies.

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

/// Returns true or false if the payload itself states whether a retry can help.
pub(super) fn payload_retryable(details: &Details<'_>, error_fields: &Details<'_>) -> Option<bool> {
    error_fields.get(DetailKey::Retryable).or(details.get(DetailKey::Retryable))?.as_bool()
}

/// Returns the party at fault. A request that only probes whether `server/discover` exists has [`Fault::Probe`].
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

/// Finds the time to wait before a retry. Fields are used for every failure; the message is searched only if waiting
/// can help.
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
