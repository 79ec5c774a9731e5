//! The statuses of gRPC, and the canonical code of each.

use crate::code::Code;

/// The number, name and canonical code of each status; `None` where the status itself means unknown.
const STATUSES: [(i64, &str, Option<&str>); 16] = [
    (1, "CANCELLED", Some("PROTOCOL_CANCELLED")),
    (2, "UNKNOWN", None),
    (3, "INVALID_ARGUMENT", Some("VALIDATION_INVALID_PARAMS")),
    (4, "DEADLINE_EXCEEDED", Some("INTERNAL_TIMEOUT")),
    (5, "NOT_FOUND", Some("NOT_FOUND_RESOURCE")),
    (6, "ALREADY_EXISTS", Some("CONFLICT_ALREADY_EXISTS")),
    (7, "PERMISSION_DENIED", Some("PERMISSION_DENIED")),
    (8, "RESOURCE_EXHAUSTED", Some("RATE_LIMIT_EXCEEDED")),
    (9, "FAILED_PRECONDITION", Some("CONFLICT_STATE")),
    (10, "ABORTED", Some("CONFLICT_STATE")),
    (11, "OUT_OF_RANGE", Some("VALIDATION_OUT_OF_RANGE")),
    (12, "UNIMPLEMENTED", Some("NOT_FOUND_OPERATION")),
    (13, "INTERNAL", Some("INTERNAL_ERROR")),
    (14, "UNAVAILABLE", Some("INTERNAL_UPSTREAM_UNAVAILABLE")),
    (15, "DATA_LOSS", Some("INTERNAL_ERROR")),
    (16, "UNAUTHENTICATED", Some("PERMISSION_CREDENTIALS_INVALID")),
];

/// The code for a status without a meaning: the message decides.
pub(crate) const UNKNOWN_CODE: &str = "UNKNOWN_ERROR";

/// Returns the canonical code of a status, which is sent as its number or its name. Connect writes names in
/// lower case.
pub(crate) fn canonical_code(code: Code<'_>) -> Option<&'static str> {
    let is = |number: i64, name: &str| match code {
        Code::Number { value, .. } => value == number,
        Code::Text(text) => text.eq_ignore_ascii_case(name),
        _ => false,
    };
    let status = STATUSES.iter().find(|(number, name, _)| is(*number, name));
    status.map(|(_, _, canonical)| canonical.unwrap_or(UNKNOWN_CODE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn every_status_stands_for_a_code_we_know() {
        let registry = Registry::builtin().expect("the registry");
        for (number, name, expected) in STATUSES {
            let expected = expected.unwrap_or(UNKNOWN_CODE);
            assert_eq!(canonical_code(Code::Number { value: number, quoted: false }), Some(expected));
            assert_eq!(canonical_code(Code::Text(name)), Some(expected));
            let is_registered = registry.entries().iter().any(|entry| entry.canonical == expected);
            assert!(is_registered || expected == UNKNOWN_CODE, "{expected}");
        }
        assert_eq!(canonical_code(Code::Number { value: 0, quoted: false }), None);
        assert_eq!(canonical_code(Code::Text("VALIDATION_ERROR")), None);
    }
}
