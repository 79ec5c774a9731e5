//! Servers that are instrumented with OpenTelemetry. A shape's body is the reply that a span carries as an attribute;
//! it is empty if the instrumentation does not record replies.
//!
//! A fault with a `kind` or an `rpc_code` is visible in the span: they become `error.type` and the status code. A fault
//! with neither is visible only in the reply.

use super::{Dialect, Fault, failure, fault, success};

/// A server whose SDK records the outcome and never the reply.
pub(crate) static WITHOUT_REPLIES: Dialect = Dialect {
    successes: &[success(1, "")],
    failures: &[failure(1, "", OPAQUE_FAULTS)],
    outage: failure(1, "", OPAQUE_OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const OPAQUE_FAULTS: &[Fault] = &[
    Fault { kind: "tool_error", ..fault(6, "", "", "") },
    Fault { rpc_code: "-32602", ..fault(3, "", "Invalid request parameters", "") },
    Fault { rpc_code: "-32601", ..fault(1, "", "Method not found", "") },
];

const OPAQUE_OUTAGE: &[Fault] = &[Fault { rpc_code: "-32603", ..fault(1, "", "Internal error", "") }];

const REPLY: &str = r#"{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}"#;
const FLAGGED: &str = r#"{"content":[{"type":"text","text":"<message>"}],"isError":true}"#;

/// A server with a middleware that adds the reply to its spans.
pub(crate) static WITH_REPLIES: Dialect = Dialect {
    successes: &[success(1, REPLY).with_inner("<payload>")],
    failures: &[
        failure(5, FLAGGED, FLAGGED_FAULTS),
        failure(4, REPLY, CODED_FAULTS).with_inner(r#"{"error":"<message>","code":"<code>"}"#),
        failure(2, REPLY, SLUG_FAULTS).with_inner(r#"{"ok":false,"error":"<code>"}"#),
    ],
    outage: failure(1, FLAGGED, FLAGGED_OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FLAGGED_FAULTS: &[Fault] = &[
    tool_error(4, "Error calling tool '<operation>': event <resource_id> not found"),
    tool_error(3, "Error calling tool '<operation>': start must be before end"),
    tool_error(2, "Error calling tool '<operation>': the calendar of <name> is read-only"),
    tool_error(1, "Error calling tool '<operation>': request to <host> timed out").slow(),
];

#[rustfmt::skip] // one row, one line
const CODED_FAULTS: &[Fault] = &[
    fault(4, "not_found", "NotFoundError: no event <resource_id>", ""),
    fault(3, "invalid_request", "InputError: '<param>' is required", ""),
    fault(2, "rate_limited", "RateLimitError: retry after <seconds> seconds", ""),
    fault(1, "upstream_failure", "UpstreamError: '<host>' answered '<http_5xx>'", ""),
];

#[rustfmt::skip] // one row, one line
const SLUG_FAULTS: &[Fault] = &[
    fault(3, "invalid_auth", "", ""),
    fault(2, "channel_not_found", "", ""),
    fault(1, "ratelimited", "", ""),
];

const FLAGGED_OUTAGE: &[Fault] = &[tool_error(1, "Internal error: the calendar store is unreachable")];

const OUTPUT: &str = r#"[{"type":"text","content":"<inner_as_text>"}]"#;
const FAILED_OUTPUT: &str = r#"[{"type":"text","content":"<message>"}]"#;

/// A workflow whose tools are traced by a separate library.
pub(crate) static TRACED_TOOLS: Dialect = Dialect {
    successes: &[success(1, OUTPUT).with_inner("<payload>")],
    failures: &[
        failure(3, FAILED_OUTPUT, TRACED_FAULTS),
        failure(3, OUTPUT, CODED_FAULTS).with_inner(r#"{"error":"<message>","code":"<code>"}"#),
    ],
    outage: failure(1, FAILED_OUTPUT, TRACED_OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const TRACED_FAULTS: &[Fault] = &[
    tool_error(3, "Error executing tool <operation>: <host> answered status code 404"),
    tool_error(2, "Error executing tool <operation>: context length exceeded, <rows> tokens"),
    tool_error(1, "Error executing tool <operation>"),
];

const TRACED_OUTAGE: &[Fault] = &[tool_error(1, "Error executing tool <operation>: 503 Service Unavailable")];

const fn tool_error(weight: u32, message: &'static str) -> Fault {
    Fault { kind: "tool_error", ..fault(weight, "", message, "") }
}
