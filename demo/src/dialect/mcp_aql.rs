//! MCP-AQL adapters: the field `success` has the outcome, and the envelope is often text inside an MCP result whose
//! `isError` is false. Those failures are the hidden ones.

use super::mcp_aql_faults::{FAULTS, OUTAGE, TEXT_FAULTS, WARNINGS};
use super::{Dialect, Shape, failure, success};

const SUCCESS: &str = r#"{"success":true,"data":<payload>}"#;
const FAILURE: &str =
    r#"{"success":false,"error":{"code":"<code>","message":"<message>","details":<details>}}"#;
const FAILURE_WITHOUT_DETAILS: &str = r#"{"success":false,"error":{"code":"<code>","message":"<message>"}}"#;

const SUCCESS_WITH_WARNING: &str = r#"{"success":true,"data":<payload>,"warnings":[{"code":"<code>","severity":"<kind>","message":"<message>","details":<details>}]}"#;

const IN_RESPONSE: &str = r#""response":<inner>"#;

/// The envelope at the top level of the line, among the logger's own fields.
const TOP_LEVEL: &str =
    r#""success":false,"error":{"code":"<code>","message":"<message>","details":<details>}"#;

/// An older reference implementation, whose error is a string.
const STRING_ERROR: &str = r#""response":{"success":false,"error":"<message>","_meta":{"requestId":"<uuid>","durationMs":<duration>,"timestamp":"<time>"}}"#;

/// A serialiser that turns every value into a string.
const STRING_SUCCESS: &str =
    r#""response":{"success":"false","error":{"code":"<code>","message":"<message>","details":<details>}}"#;

const HIDDEN: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}}"#;
const UNFLAGGED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}}"#;
const FLAGGED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":true}}"#;
const STRUCTURED: &str = r#""result":{"content":[{"type":"text","text":"<inner_as_text>"}],"structuredContent":<inner>,"isError":false}"#;

/// Adapters whose logger writes the envelope unchanged.
pub(crate) static BARE: Dialect = Dialect {
    successes: &[
        success(8, IN_RESPONSE).with_inner(SUCCESS),
        success(
            2,
            r#""success":true,"data":<payload>,"_meta":{"requestId":"<uuid>","durationMs":<duration>}"#,
        ),
    ],
    failures: &[
        failure(70, IN_RESPONSE, FAULTS).with_inner(FAILURE),
        failure(10, TOP_LEVEL, FAULTS),
        failure(8, IN_RESPONSE, FAULTS).with_inner(FAILURE_WITHOUT_DETAILS),
        failure(8, STRING_ERROR, TEXT_FAULTS),
        failure(2, STRING_SUCCESS, FAULTS),
    ],
    outage: failure(1, IN_RESPONSE, OUTAGE).with_inner(FAILURE),
    warnings: &[failure(1, IN_RESPONSE, WARNINGS).with_inner(SUCCESS_WITH_WARNING)],
};

/// Adapters that send their responses over MCP.
pub(crate) static OVER_MCP: Dialect = Dialect {
    successes: &[success(8, HIDDEN).with_inner(SUCCESS), success(1, STRUCTURED).with_inner(SUCCESS)],
    failures: &[
        failure(60, HIDDEN, FAULTS).with_inner(FAILURE),
        failure(12, UNFLAGGED, FAULTS).with_inner(FAILURE),
        failure(20, FLAGGED, FAULTS).with_inner(FAILURE),
        failure(4, STRUCTURED, FAULTS).with_inner(FAILURE),
    ],
    outage: failure(1, FLAGGED, OUTAGE).with_inner(FAILURE),
    warnings: &[failure(1, HIDDEN, WARNINGS).with_inner(SUCCESS_WITH_WARNING)],
};

/// Adapters that accept many operations in one call.
pub(crate) static BATCHES: Dialect = Dialect {
    successes: &[
        success(6, IN_RESPONSE).with_inner(SUCCESS),
        success(3, r#""response":{"success":true,"results":[<results>],"summary":{<summary>}}"#),
    ],
    failures: &[
        failure(4, IN_RESPONSE, FAULTS).with_inner(FAILURE),
        failure(5, r#""response":{"success":true,"results":[<results>],"summary":{<summary>}}"#, FAULTS),
        failure(
            3,
            r#""response":{"success":false,"error":{"code":"BATCH_PARTIAL_FAILURE","message":"<failed> of <total> operations failed","details":{<summary>,"errors":[<errors>]}}}"#,
            FAULTS,
        ),
    ],
    outage: failure(1, IN_RESPONSE, OUTAGE).with_inner(FAILURE),
    warnings: &[failure(1, IN_RESPONSE, WARNINGS).with_inner(SUCCESS_WITH_WARNING)],
};

/// A failure with a sibling of the error that describes the confirmation which would permit the operation.
pub(crate) static CONFIRMABLE: Shape = failure(
    1,
    r#""response":{"success":false,"error":{"code":"<code>","message":"<message>","details":<details>},"confirmation":{"token":"conf_<token>","expires_at":"<expires>","message":"<question>","reasons":["<danger_reason>"]}}"#,
    &[],
);
