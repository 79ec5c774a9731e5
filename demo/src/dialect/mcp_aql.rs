//! MCP-AQL adapters: `success` says how it went, and the envelope often travels as text inside an MCP result that
//! calls itself fine (`isError` false). Those are the hidden failures.

use super::mcp_aql_faults::{FAULTS, OUTAGE, TEXT_FAULTS, WARNINGS};
use super::{Dialect, Shape, failure, success};

const GOOD: &str = r#"{"success":true,"data":<payload>}"#;
const BAD: &str = r#"{"success":false,"error":{"code":"<code>","message":"<message>","details":<details>}}"#;
const BAD_BARE: &str = r#"{"success":false,"error":{"code":"<code>","message":"<message>"}}"#;

const WARNED: &str = r#"{"success":true,"data":<payload>,"warnings":[{"code":"<code>","severity":"<kind>","message":"<message>","details":<details>}]}"#;

const IN_RESPONSE: &str = r#""response":<inner>"#;

/// The envelope at the top of the line, among the logger's own fields.
const AT_THE_TOP: &str =
    r#""success":false,"error":{"code":"<code>","message":"<message>","details":<details>}"#;

/// A reference implementation's old habit: the error is a string.
const STRING_ERROR: &str = r#""response":{"success":false,"error":"<message>","_meta":{"requestId":"<uuid>","durationMs":<duration>,"timestamp":"<time>"}}"#;

/// Some serialisers make strings of everything.
const STRING_SUCCESS: &str =
    r#""response":{"success":"false","error":{"code":"<code>","message":"<message>","details":<details>}}"#;

const HIDDEN: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}}"#;
const UNFLAGGED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}}"#;
const FLAGGED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":true}}"#;
const STRUCTURED: &str = r#""result":{"content":[{"type":"text","text":"<inner_as_text>"}],"structuredContent":<inner>,"isError":false}"#;

/// Adapters whose logger writes the envelope as it is.
pub(crate) static BARE: Dialect = Dialect {
    successes: &[
        success(8, IN_RESPONSE).carrying(GOOD),
        success(
            2,
            r#""success":true,"data":<payload>,"_meta":{"requestId":"<uuid>","durationMs":<duration>}"#,
        ),
    ],
    failures: &[
        failure(70, IN_RESPONSE, FAULTS).carrying(BAD),
        failure(10, AT_THE_TOP, FAULTS),
        failure(8, IN_RESPONSE, FAULTS).carrying(BAD_BARE),
        failure(8, STRING_ERROR, TEXT_FAULTS),
        failure(2, STRING_SUCCESS, FAULTS),
    ],
    outage: failure(1, IN_RESPONSE, OUTAGE).carrying(BAD),
    warnings: &[failure(1, IN_RESPONSE, WARNINGS).carrying(WARNED)],
};

/// Adapters that answer over MCP.
pub(crate) static OVER_MCP: Dialect = Dialect {
    successes: &[success(8, HIDDEN).carrying(GOOD), success(1, STRUCTURED).carrying(GOOD)],
    failures: &[
        failure(60, HIDDEN, FAULTS).carrying(BAD),
        failure(12, UNFLAGGED, FAULTS).carrying(BAD),
        failure(20, FLAGGED, FAULTS).carrying(BAD),
        failure(4, STRUCTURED, FAULTS).carrying(BAD),
    ],
    outage: failure(1, FLAGGED, OUTAGE).carrying(BAD),
    warnings: &[failure(1, HIDDEN, WARNINGS).carrying(WARNED)],
};

/// Adapters that take many operations in one call.
pub(crate) static BATCHES: Dialect = Dialect {
    successes: &[
        success(6, IN_RESPONSE).carrying(GOOD),
        success(3, r#""response":{"success":true,"results":[<results>],"summary":{<summary>}}"#),
    ],
    failures: &[
        failure(4, IN_RESPONSE, FAULTS).carrying(BAD),
        failure(5, r#""response":{"success":true,"results":[<results>],"summary":{<summary>}}"#, FAULTS),
        failure(
            3,
            r#""response":{"success":false,"error":{"code":"BATCH_PARTIAL_FAILURE","message":"<failed> of <total> operations failed","details":{<summary>,"errors":[<errors>]}}}"#,
            FAULTS,
        ),
    ],
    outage: failure(1, IN_RESPONSE, OUTAGE).carrying(BAD),
    warnings: &[failure(1, IN_RESPONSE, WARNINGS).carrying(WARNED)],
};

/// A failure with the confirmation that would undo it beside the error.
pub(crate) static CONFIRMABLE: Shape = failure(
    1,
    r#""response":{"success":false,"error":{"code":"<code>","message":"<message>","details":<details>},"confirmation":{"token":"conf_<token>","expires_at":"<expires>","message":"<question>","reasons":["<danger_reason>"]}}"#,
    &[],
);
