//! An MCP server without an error model of its own: it uses the error codes of the protocol, tool results that contain
//! a sentence and `isError`, and responses that request input (`input_required`).

use super::{Dialect, Fault, failure, fault, success};

const ERROR: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"error":{"code":<code>,"message":"<message>","data":<details>}}"#;
const TOP_ERROR: &str = r#""jsonrpc":"2.0","id":<rpc>,"error":{"code":<code>,"message":"<message>"}"#;
const TOOL_ERROR: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"resultType":"complete","content":[{"type":"text","text":"<message>"}],"isError":true}}"#;
const BATCH: &str = r#""response":[{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}},{"jsonrpc":"2.0","id":1<rpc>,"error":{"code":<code>,"message":"<message>"}}]"#;
const INPUT_REQUIRED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"resultType":"input_required","inputRequests":[{"method":"elicitation/create","params":{"message":"Which <city> do you mean?"}}]}}"#;

/// A server that uses plain MCP.
pub(crate) static SERVER: Dialect = Dialect {
    successes: &[
        success(60, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"resultType":"complete","content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}}"#)
            .with_inner("<payload>"),
        success(20, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<city>: <items> results"}],"structuredContent":<payload>}}"#),
        success(6, INPUT_REQUIRED),
    ],
    failures: &[
        failure(45, TOOL_ERROR, SENTENCES),
        failure(35, ERROR, FAULTS),
        failure(10, TOP_ERROR, FAULTS),
        failure(6, BATCH, FAULTS).with_inner("<payload>"),
    ],
    outage: failure(1, TOOL_ERROR, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FAULTS: &[Fault] = &[
    fault(12, "-32602", "Unknown tool: <typo>", r#"{"requestId":"<uuid>"}"#),
    fault(10, "-32602", "Invalid params", r#"{"path":["<param>"],"expected":"number","received":"string"}"#),
    fault(9, "-32002", "Resource not found", r#"{"uri":"geo://maps/<city>/<serial>"}"#),
    fault(10, "-32001", "Request timed out", r#"{"timeout":20000}"#).slow(),
    fault(4, "-32000", "Connection closed", r#"{"requestId":"<uuid>"}"#),
    fault(3, "-32601", "Method not found", r#"{"method":"resources/<typo>"}"#),
    fault(3, "-32022", "Unsupported protocol version", r#"{"supported":["2026-07-28"],"requested":"2024-11-05"}"#),
    fault(2, "-32021", "Missing required client capability", r#"{"requiredCapabilities":{"elicitation":{}}}"#),
    fault(2, "-32020", "Header mismatch", r#"{"header":"Mcp-Method"}"#),
    fault(3, "-32042", "URL elicitation required", r#"{"elicitations":[{"mode":"url","url":"https://geo.example/consent/<serial>"}]}"#),
    fault(4, "-32603", "Internal error", r#"{"requestId":"<uuid>"}"#),
    fault(1, "-32603", "Internal error: map 'tile-<serial>' not found", r#"{"requestId":"<uuid>"}"#),
];

#[rustfmt::skip] // one row, one line
const SENTENCES: &[Fault] = &[
    fault(8, "", "Invalid departure date: must lie in the future.", ""),
    fault(6, "", "No such place: <city> <serial>", ""),
    fault(5, "", "Upstream map service timed out after 20 s", "").slow(),
    fault(4, "", "Too many requests, retry after <seconds> seconds", ""),
    fault(4, "", "Permission denied for layer 'seabed-<count>'", ""),
    fault(3, "", "Something went sideways while drawing the route", ""),
    fault(2, "", "Traceback (most recent call last): File \\\"<file>\\\", KeyError: '<key>'", ""),
    fault(1, "", "Could not share the route with <email>", ""),
    fault(1, "", "Tile server refused Authorization: Bearer <bearer>", ""),
];

#[rustfmt::skip] // one row, one line
const OUTAGE: &[Fault] = &[
    fault(4, "", "Internal error: tile store is unreachable", ""),
    fault(2, "", "Connection refused by <host>", ""),
];
