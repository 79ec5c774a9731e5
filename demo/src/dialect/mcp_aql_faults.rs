//! The faults of MCP-AQL adapters: the registered codes with their message templates, and typical mistakes of real
//! adapters.

use super::{Fault, fault};

/// Everyday failures.
#[rustfmt::skip] // one row, one line
pub(crate) const FAULTS: &[Fault] = &[
    fault(130, "VALIDATION_MISSING_PARAM", "Missing required parameter '<param>'", r#"{"param_name":"<param>","operation":"<operation>"}"#),
    fault(80, "VALIDATION_INVALID_TYPE", "Parameter '<param>' expected 'integer', got 'string'", r#"{"param_name":"<param>","expected_type":"integer","actual_type":"string","value":"<word>"}"#),
    fault(50, "VALIDATION_UNKNOWN_PARAM", "Unknown parameter(s) for operation '<operation>': <param>", r#"{"operation":"<operation>","unknown_params":["<param>"],"valid_params":["id","fields","order"]}"#),
    fault(20, "VALIDATION_UNKNOWN_FIELD", "Unknown field '<key>' in input of '<operation>'", r#"{"operation":"<operation>","field":"<key>"}"#),
    fault(25, "VALIDATION_INVALID_ENUM", "Parameter '<param>' must be one of 'low', 'normal', 'urgent'", r#"{"param_name":"<param>","value":"<word>","allowed":["low","normal","urgent"]}"#),
    fault(25, "VALIDATION_OUT_OF_RANGE", "Parameter '<param>' must be between '1' and '<limit>'", r#"{"param_name":"<param>","minimum":1,"maximum":<limit>,"value":<rows>}"#),
    fault(15, "VALIDATION_PATTERN_MISMATCH", "Parameter '<param>' does not match '^[A-Z]{3}-[0-9]+$'", r#"{"param_name":"<param>","pattern":"^[A-Z]{3}-[0-9]+$","value":"<word>"}"#),
    fault(8, "VALIDATION_INVALID_ENCODING", "Invalid character encoding in request", r#"{"location":"params.<key>","byte_offset":<offset>}"#),
    fault(12, "VALIDATION_PAYLOAD_TOO_LARGE", "Payload exceeds request_size limit of 1048576", r#"{"limit_type":"request_size","limit_value":1048576,"actual_value":2<serial>00,"unit":"bytes"}"#),
    fault(45, "NOT_FOUND_OPERATION", "Unknown operation: '<typo>'", r#"{"operation":"<typo>","available":["<operation>","introspect"]}"#),
    fault(120, "NOT_FOUND_RESOURCE", "Resource '<resource>' not found: '<resource_id>'", r#"{"resource_type":"<resource>","resource_id":"<resource_id>","http_status":404}"#),
    fault(60, "PERMISSION_DENIED", "Permission denied: '<reason>'", r#"{"reason":"<reason>","http_status":403,"required_scope":"<scope>"}"#),
    fault(35, "PERMISSION_TRUST_LEVEL_INSUFFICIENT", "Operation '<operation>' requires trust level '<required_trust>', adapter has '<actual_trust>'", r#"{"operation":"<operation>","required_trust":"<required_trust>","actual_trust":"<actual_trust>","danger_level":<danger_number>}"#),
    fault(30, "PERMISSION_DANGER_LEVEL_DENIED", "Operation '<operation>' (danger: <danger_word>) denied for adapter trust level '<actual_trust>'", r#"{"operation":"<operation>","danger_level":"<danger_word>","adapter_trust":"<actual_trust>","minimum_trust_required":"<required_trust>","reasons":["Touches many records at once"]}"#),
    fault(30, "CONFLICT_ALREADY_EXISTS", "Resource '<resource>' already exists: '<resource_id>'", r#"{"resource_type":"<resource>","resource_id":"<resource_id>","http_status":409}"#),
    fault(30, "CONFLICT_VERSION_MISMATCH", "Version of '<resource_id>' is '<count>', request was made against an older one", r#"{"resource_id":"<resource_id>","current_version":<count>}"#),
    fault(60, "RATE_LIMIT_EXCEEDED", "API rate limit exceeded", r#"{"limit":<limit>,"remaining":0,"window":"minute","resets_at":"<soon>","retry_after_seconds":<seconds>}"#),
    fault(40, "INTERNAL_ERROR", "Internal error: 'upstream at <host> is unavailable'", r#"{"http_status":<http_5xx>,"upstream_error":"Service temporarily unavailable"}"#),
    fault(14, "TRANSPORT_TIMEOUT", "No answer from '<host>' within '20' seconds", r#"{"host":"<host>","timeout_ms":20000}"#).slow(),
    fault(10, "TRANSPORT_CONNECTION_REFUSED", "Connection refused by '<host>'", r#"{"host":"<host>","port":5432}"#),
    fault(8, "AUTH_CREDENTIAL_MISSING", "No credential configured for '<host>'", r#"{"host":"<host>","expected":"LEDGER_UPSTREAM_KEY"}"#),
    fault(5, "PLUGIN_NOT_FOUND", "Plugin 'csv-export' is not installed", r#"{"plugin":"csv-export","searched":["adapters","extras"]}"#),
    // The published mapping assigns every other 4xx to this code, so these two are a rate limit and a conflict.
    fault(6, "VALIDATION_INVALID_TYPE", "Target API answered: too many calls for '<tenant>'", r#"{"http_status":429,"retry_after_seconds":<seconds>}"#),
    fault(6, "VALIDATION_INVALID_TYPE", "Target API answered: '<resource_id>' was changed meanwhile", r#"{"http_status":409,"resource_id":"<resource_id>"}"#),
    // An internal error code for a mistake of the caller, and a message that reveals internals.
    fault(6, "INTERNAL_ERROR", "Internal error: '<resource> <resource_id> does not exist'", r#"{"request_id":"<request>"}"#),
    fault(5, "INTERNAL_ERROR", "TypeError: cannot read property 'id' of undefined at <file>", r#"{"request_id":"<request>"}"#),
    // These codes are in no registry.
    fault(3, "LEDGER_SEALED", "The books of '<tenant>' are closed for this period", r#"{"tenant":"<tenant>","reopens_at":"<soon>"}"#),
    fault(2, "TIDE_WINDOW_MISSED", "Slot '<count>' has passed", r#"{"slot":<count>}"#),
    // Fictitious secrets, which redaction must remove.
    fault(5, "INTERNAL_ERROR", "Internal error: 'sign-in failed for <email> with password=<password>'", r#"{"http_status":500,"account":"<email>"}"#),
    fault(5, "PERMISSION_DENIED", "Permission denied: 'upstream refused Bearer <bearer>'", r#"{"http_status":401,"headers":{"authorization":"Bearer <bearer>"}}"#),
    fault(4, "PERMISSION_DENIED", "Permission denied: 'push with ghp_<github_key> rejected'", r#"{"http_status":403,"required_scope":"repo"}"#),
    fault(4, "VALIDATION_INVALID_VALUE", "Card 4111 1111 1111 1111 was declined", r#"{"param_name":"card","holder":"<name>","contact":"<email>"}"#),
    fault(3, "AUTH_CONFIG_INVALID", "Credentials for '<host>' were rejected", r#"{"host":"<host>","user":"svc-ledger","password":"<password>"}"#),
];

/// Denials because of insufficient trust, for the flows that begin with one.
#[rustfmt::skip] // one row, one line
pub(crate) static TRUST_DENIALS: [&Fault; 2] = [
    &fault(1, "PERMISSION_TRUST_LEVEL_INSUFFICIENT", "Operation '<operation>' requires trust level '<required_trust>', adapter has '<actual_trust>'", r#"{"operation":"<operation>","required_trust":"<required_trust>","actual_trust":"<actual_trust>","danger_level":<danger_number>}"#),
    &fault(1, "PERMISSION_DANGER_LEVEL_DENIED", "Operation '<operation>' (danger: <danger_word>) denied for adapter trust level '<actual_trust>'", r#"{"operation":"<operation>","danger_level":"<danger_word>","adapter_trust":"<actual_trust>","minimum_trust_required":"<required_trust>","reasons":["Touches many records at once"]}"#),
];

/// Mistakes in a request, for the flows in which the caller corrects it.
#[rustfmt::skip] // one row, one line
pub(crate) static MISTAKES: [&Fault; 3] = [
    &fault(1, "VALIDATION_MISSING_PARAM", "Missing required parameter '<param>'", r#"{"param_name":"<param>","operation":"<operation>"}"#),
    &fault(1, "VALIDATION_INVALID_ENUM", "Parameter '<param>' must be one of 'low', 'normal', 'urgent'", r#"{"param_name":"<param>","value":"<word>","allowed":["low","normal","urgent"]}"#),
    &fault(1, "NOT_FOUND_OPERATION", "Unknown operation: '<typo>'", r#"{"operation":"<typo>","available":["<operation>","introspect"]}"#),
];

/// Failures that consist only of a message.
#[rustfmt::skip] // one row, one line
pub(crate) const TEXT_FAULTS: &[Fault] = &[
    fault(5, "", "Unknown operation: <typo>", ""),
    fault(3, "", "Missing required parameter: <param>", ""),
    fault(3, "", "<resource> <resource_id> not found", ""),
    fault(2, "", "Request to <host> timed out after 20000 ms", "").slow(),
    fault(1, "", "Could not notify <email>: mailbox full", ""),
];

/// Failures during an outage.
#[rustfmt::skip] // one row, one line
pub(crate) const OUTAGE: &[Fault] = &[
    fault(6, "INTERNAL_ERROR", "Internal error: 'connection pool of <host> is exhausted'", r#"{"http_status":503,"upstream_error":"remaining connection slots are reserved"}"#),
    fault(3, "INTERNAL_ERROR", "Internal error: 'upstream at <host> is unavailable'", r#"{"http_status":<http_5xx>,"upstream_error":"Bad gateway"}"#),
    fault(2, "TRANSPORT_TIMEOUT", "No answer from '<host>' within '20' seconds", r#"{"host":"<host>","timeout_ms":20000}"#).slow(),
];

/// Warnings, with their `severity`.
#[rustfmt::skip] // one row, one line
pub(crate) const WARNINGS: &[Fault] = &[
    warning(5, "low", "DEPRECATION_WARNING", "Operation '<operation>' will be removed in version '4'", r#"{"operation":"<operation>","removed_in":"4.0.0"}"#),
    warning(4, "medium", "PERFORMANCE_SLOW_QUERY_WARNING", "Query took '<milliseconds>' ms", r#"{"duration_ms":<milliseconds>,"rows_scanned":<rows>}"#),
    warning(3, "medium", "VALIDATION_TRUNCATED_WARNING", "Field '<key>' was cut to '<limit>' characters", r#"{"field":"<key>","max_length":<limit>}"#),
];

pub(crate) const fn warning(
    weight: u32,
    severity: &'static str,
    code: &'static str,
    message: &'static str,
    details: &'static str,
) -> Fault {
    Fault { kind: severity, ..fault(weight, code, message, details) }
}
