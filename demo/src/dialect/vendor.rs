//! A vendor with its own code prefixes: no known dialect has these codes, but most of them come with a `category`.

use super::{Dialect, Fault, failure, fault, success};

const WITH_CATEGORY: &str = r#""response":{"error":{"code":"<code>","category":"<kind>","message":"<message>","reference":"<uuid>"}}"#;
const WITHOUT_CATEGORY: &str =
    r#""response":{"error":{"code":"<code>","message":"<message>","reference":"<uuid>"}}"#;

/// A relay to the vendor's service.
pub(crate) static RELAY: Dialect = Dialect {
    successes: &[success(1, r#""http_status":200,"data":<payload>"#)],
    failures: &[failure(6, WITH_CATEGORY, FAULTS), failure(1, WITHOUT_CATEGORY, FAULTS)],
    outage: failure(1, WITH_CATEGORY, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FAULTS: &[Fault] = &[
    vendor(6, "validation", "ACME_MCP_VALIDATION_BAD_POSTCODE", "Postcode '<serial>' is not served"),
    vendor(4, "not_found", "ACME_MCP_UNKNOWN_PARCEL", "Parcel '<resource_id>' is not known here"),
    vendor(3, "permission", "ACME_MCP_DEPOT_LOCKED", "Depot '<city>' is closed to '<tenant>'"),
    vendor(3, "rate_limit", "ACME_MCP_SLOW_DOWN", "Wait '<seconds>' seconds between label prints"),
    vendor(2, "conflict", "ACME_MCP_ALREADY_SHIPPED", "Parcel '<resource_id>' has left the depot"),
    vendor(1, "weather", "ACME_MCP_FERRY_CANCELLED", "No ferry from '<city>' before '<soon>'"),
];

const OUTAGE: &[Fault] =
    &[vendor(1, "internal", "ACME_MCP_CORE_OFFLINE", "Sorting core '<count>' does not answer")];

const fn vendor(weight: u32, category: &'static str, code: &'static str, message: &'static str) -> Fault {
    Fault { kind: category, ..fault(weight, code, message, "") }
}
