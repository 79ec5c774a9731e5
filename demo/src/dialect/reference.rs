//! The numeric model: domain failures are in `result.error`, validation failures are JSON-RPC errors, and other
//! failures of the reference server are plain text with `isError`.

use super::{Dialect, Fault, failure, fault, success};

const DOMAIN: &str = r#""response":{"jsonrpc":"2.0","result":{"error":{"code":<code>,"message":"<message>","retryable":<retryable>,"details":<details>}},"id":<rpc>}"#;
const TEXT: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<message>"}],"isError":true}}"#;
const PROTOCOL: &str = r#""response":{"jsonrpc":"2.0","error":{"code":<code>,"message":"<message>","data":<details>},"id":<rpc>}"#;

/// A server with the numeric model.
pub(crate) static NUMERIC: Dialect = Dialect {
    successes: &[
        success(6, r#""response":{"jsonrpc":"2.0","result":<payload>,"id":<rpc>}"#),
        success(3, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}}"#)
            .with_inner("<payload>"),
    ],
    failures: &[
        failure(60, DOMAIN, DOMAIN_FAULTS),
        failure(25, TEXT, TEXT_FAULTS),
        failure(15, PROTOCOL, PROTOCOL_FAULTS),
    ],
    outage: failure(1, DOMAIN, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const DOMAIN_FAULTS: &[Fault] = &[
    fault(12, "2002", "Required field '<field>' is missing", r#"{"field":"<field>","reason":"missing","suggestion":"Send '<field>' with the order"}"#),
    fault(8, "2003", "Field '<field>' has the wrong format", r#"{"field":"<field>","reason":"format","suggestion":"See the schema of <operation>"}"#),
    fault(6, "2001", "Parameters failed validation", r#"{"field":"<field>","reason":"schema","context":{"operation":"<operation>"}}"#),
    fault(10, "3001", "Too many requests", r#"{"reason":"throttled","retryAfter":<milliseconds>,"context":{"limit":<limit>}}"#).retryable(),
    fault(6, "3002", "Operation exceeded its time limit", r#"{"reason":"timeout","context":{"operation":"<operation>","limitMs":20000}}"#).retryable().slow(),
    fault(14, "4001", "Adapter error", r#"{"originalError":"ORDER_NOT_FOUND","context":{"orderId":"<resource_id>"}}"#),
    fault(6, "4001", "Adapter error", r#"{"originalError":"INVALID_ORDER_STATE","context":{"orderId":"<resource_id>","state":"<state>"}}"#),
    fault(5, "4002", "Backend '<host>' is unavailable", r#"{"reason":"unavailable","context":{"host":"<host>"}}"#).retryable(),
    fault(4, "5001", "Tool '<operation>' is not supported by this adapter", r#"{"reason":"not_implemented"}"#),
    // This code has no entry; only its range has a meaning.
    fault(2, "2417", "Promised date lies before the order date", r#"{"field":"promisedDate","reason":"order"}"#),
    // It claims to be retryable although a retry does not help.
    fault(1, "2002", "Required field '<field>' is missing", r#"{"field":"<field>","reason":"missing"}"#).retryable(),
];

#[rustfmt::skip] // one row, one line
const TEXT_FAULTS: &[Fault] = &[
    fault(5, "", "Order <resource_id> not found", ""),
    fault(3, "", "Inventory of <sku> could not be reserved: only <count> left", ""),
    fault(2, "", "Backend timed out after 20000 ms while handling <operation>", "").slow(),
    fault(2, "", "Invalid value for <field>", ""),
    fault(1, "", "Carrier login failed, user=svc-orders password=<password>", ""),
];

#[rustfmt::skip] // one row, one line
const PROTOCOL_FAULTS: &[Fault] = &[
    fault(5, "2001", "Validation failed", r#"{"retryable":false,"field":"<field>","reason":"required"}"#),
    fault(3, "-32602", "Invalid params", r#"{"field":"<field>"}"#),
    fault(1, "-32601", "Method not found", r#"{"method":"tools/<typo>"}"#),
    fault(1, "\"-32603\"", "Internal error", r#"{"requestId":"<uuid>"}"#),
];

#[rustfmt::skip] // one row, one line
const OUTAGE: &[Fault] = &[
    fault(5, "4002", "Backend '<host>' is unavailable", r#"{"reason":"unavailable","context":{"host":"<host>","attempts":3}}"#).retryable(),
    fault(2, "3002", "Operation exceeded its time limit", r#"{"reason":"timeout","context":{"operation":"<operation>","limitMs":20000}}"#).retryable().slow(),
];
