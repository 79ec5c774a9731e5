//! An erlmcp node: JSON-RPC errors with its own numbers, and `data` with the tool, URI or task. It replaces
//! unknown codes with -32603, so that number is common here.

use super::{Dialect, Fault, failure, fault, success};

const ERROR: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"error":{"code":<code>,"message":"<message>","data":<details>}}"#;
const RESULT: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}}"#;

/// An erlmcp node.
pub(crate) static NODE: Dialect = Dialect {
    successes: &[success(1, RESULT).with_inner("<payload>")],
    failures: &[failure(1, ERROR, FAULTS)],
    outage: failure(1, ERROR, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FAULTS: &[Fault] = &[
    fault(10, "-32001", "Resource not found", r#"{"uri":"plant://<sensor>/<serial>"}"#),
    fault(10, "-32002", "Tool not found", r#"{"tool":"<typo>"}"#),
    fault(4, "-32003", "Prompt not found", r#"{"prompt":"<prompt>"}"#),
    fault(3, "-32004", "Capability not supported", r#"{"capability":"completions"}"#),
    fault(3, "-32005", "Server not initialized", r#"{"phase":"pre_initialization"}"#),
    fault(2, "-32006", "Subscription failed", r#"{"uri":"plant://<sensor>","reason":"already_subscribed"}"#),
    fault(6, "-32007", "Validation failed", r#"{"field":"<key>","constraint":"non_empty"}"#),
    fault(3, "-32008", "Transport error", r#"{"reason":"connection_reset"}"#),
    fault(6, "-32009", "Request timeout", r#"{"timeout_ms":20000,"elapsed_ms":<elapsed>}"#).slow(),
    fault(8, "-32010", "Rate limit exceeded", r#"{"limit":<limit>,"window":60,"retry_after":<seconds>}"#),
    fault(2, "-32012", "Message size exceeds maximum allowed", r#"{"actual_size":2<serial>000,"max_size":16777216,"unit":"bytes"}"#),
    fault(2, "-32015", "Invalid encoding", r#"{"encoding":"utf-8","position":<offset>}"#),
    fault(2, "-32022", "Invalid URI", r#"{"uri":"<sensor>","reason":"missing_scheme"}"#),
    fault(4, "-32025", "Resource access denied", r#"{"uri":"plant://<sensor>/keys","required_permission":"read:protected"}"#),
    fault(7, "-32031", "Tool execution failed", r#"{"tool":"<operation>","reason":"badmatch"}"#),
    fault(4, "-32032", "Tool execution timeout", r#"{"tool":"<operation>","timeout_ms":20000}"#).slow(),
    fault(3, "-32033", "Tool execution cancelled", r#"{"tool":"<operation>","reason":"user_requested"}"#),
    fault(8, "-32034", "Invalid tool arguments", r#"{"tool":"<operation>","details":"Missing required parameter: <param>"}"#),
    fault(2, "-32043", "Prompt argument missing", r#"{"prompt":"<prompt>","argument":"<key>"}"#),
    fault(3, "-32046", "Sampling failed", r#"{"reason":"model_unavailable"}"#),
    fault(3, "-32051", "Authentication failed", r#"{"reason":"invalid_token","authorization":"Bearer <bearer>"}"#),
    fault(4, "-32052", "Authorization failed", r#"{"operation":"tools/call:<operation>","required_role":"shift_lead"}"#),
    fault(4, "-32054", "Token expired", r#"{"expired_at":<lapsed>}"#),
    fault(2, "-32061", "Unsupported protocol version", r#"{"requested_version":"2024-11-05","supported_versions":["2025-11-25"]}"#),
    fault(2, "-32071", "Invalid cursor", r#"{"cursor":"<cursor>"}"#),
    fault(3, "-32081", "Task not found", r#"{"taskId":"task-<serial>"}"#),
    fault(3, "-32083", "Task failed", r#"{"taskId":"task-<serial>","reason":"dependency_failed"}"#),
    fault(1, "-32094", "Notification failed", r#"{"notification_type":"resources/updated","reason":"subscriber_not_found"}"#),
    fault(1, "1091", "Elicitation timed out", r#"{"timeout_ms":20000}"#).slow(),
    fault(1, "1003", "Refused: rate limit", r#"{"retry_after":<seconds>}"#),
    fault(9, "-32603", "Internal error", r#"{"reason":"unknown_code","tool":"<operation>"}"#),
    fault(2, "-32602", "Invalid params", r#"{"field":"<param>"}"#),
    fault(1, "-32700", "Parse error", r#""Unexpected token at position <offset>""#),
];

#[rustfmt::skip] // one row, one line
const OUTAGE: &[Fault] = &[
    fault(5, "-32603", "Internal error", r#"{"reason":"noproc","tool":"<operation>"}"#),
    fault(2, "-32031", "Tool execution failed", r#"{"tool":"<operation>","reason":"connection_timeout"}"#),
];
