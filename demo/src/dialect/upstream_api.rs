//! Tools in front of a web API: the text of the tool's result is the response of the API, errors included, and nothing
//! marks the errors as such. The gateway here responds with JSON-RPC errors that carry the HTTP status.

use super::{Dialect, Fault, failure, fault, success};

const TEXT: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}}"#;
const FLAGGED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":true}}"#;
const API_ERROR: &str = r#"{"message":"<message>","documentation_url":"https://docs.codeforge.example/rest","status":"<status>"}"#;

/// A server for repositories, issues and reviews.
pub(crate) static CODE_FORGE: Dialect = Dialect {
    successes: &[success(1, TEXT).with_inner("<payload>")],
    failures: &[
        failure(7, TEXT, FORGE_FAULTS).with_inner(API_ERROR),
        failure(2, FLAGGED, FORGE_FAULTS).with_inner(API_ERROR),
    ],
    outage: failure(1, FLAGGED, FORGE_OUTAGE).with_inner(API_ERROR),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FORGE_FAULTS: &[Fault] = &[
    http(8, "404", "Not Found"),
    http(4, "403", "API rate limit exceeded for installation <serial>"),
    http(3, "401", "Bad credentials"),
    http(3, "422", "Validation Failed"),
    http(2, "409", "Merge conflict"),
    http(2, "403", "Resource not accessible by integration"),
    http(1, "502", "Server Error"),
];

const FORGE_OUTAGE: &[Fault] = &[http(1, "500", "Server Error")];

const RPC_ERROR: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"error":{"code":<rpc_code>,"message":"<message>","data":{"http_code":<status>}}}"#;

/// A gateway that uses JSON-RPC.
pub(crate) static RPC_GATEWAY: Dialect = Dialect {
    successes: &[
        success(1, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}}"#)
            .with_inner("<payload>"),
    ],
    failures: &[failure(1, RPC_ERROR, GATEWAY_FAULTS)],
    outage: failure(1, RPC_ERROR, GATEWAY_OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const GATEWAY_FAULTS: &[Fault] = &[
    rpc(5, "-32003", "429", "Rate limit exceeded"),
    rpc(3, "-32001", "403", "Access to tool '<operation>' denied by policy"),
    rpc(3, "-32001", "401", "Access token is missing or expired"),
    rpc(2, "-32000", "504", "Upstream request timed out").slow(),
    rpc(2, "-32000", "502", "Upstream connection closed"),
    rpc(2, "-32602", "404", "Unknown tool: <typo>"),
];

const GATEWAY_OUTAGE: &[Fault] = &[rpc(1, "-32603", "503", "Internal error: no healthy upstream")];

const fn http(weight: u32, status: &'static str, message: &'static str) -> Fault {
    Fault { status, ..fault(weight, "", message, "") }
}

pub(crate) const fn rpc(
    weight: u32,
    code: &'static str,
    status: &'static str,
    message: &'static str,
) -> Fault {
    Fault { status, rpc_code: code, ..fault(weight, "", message, "") }
}
