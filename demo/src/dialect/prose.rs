//! MCP servers whose errors are prose: sentences with `isError`, sentences without it, and the text that SDKs put
//! around the message of an exception.

use super::{Dialect, Fault, failure, fault, success};

const FLAGGED: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<message>"}],"isError":true}}"#;
const UNFLAGGED: &str =
    r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<message>"}]}}"#;

/// A server for notes.
pub(crate) static NOTES: Dialect = Dialect {
    successes: &[
        success(6, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}],"isError":false}}"#)
            .with_inner("<payload>"),
        // A successful result whose text is about errors, because the request was about errors.
        success(1, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"Error handling in the night import\n- retry three times\n- then tell <name>"}],"isError":false}}"#),
    ],
    failures: &[failure(5, FLAGGED, WRAPPED), failure(5, UNFLAGGED, SENTENCES)],
    outage: failure(1, FLAGGED, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const WRAPPED: &[Fault] = &[
    fault(5, "", "Error executing tool <operation>: Note <resource_id> does not exist", ""),
    fault(3, "", "Error executing tool <operation>: 1 validation error for Arguments\\n<param>\\n  Field required [type=missing]", ""),
    fault(2, "", "Error executing tool <operation>", ""),
    fault(2, "", "Tool '<operation>' execution failed: PermissionError: [Errno 13] Permission denied: '/srv/notes/<serial>.md'", ""),
    fault(1, "", "Error executing tool <operation>: HTTPSConnectionPool(host='<host>', port=443): Read timed out.", "").slow(),
];

#[rustfmt::skip] // one row, one line
const SENTENCES: &[Fault] = &[
    fault(5, "", "Error: note '<resource_id>' not found", ""),
    fault(3, "", "Failed to save note <resource_id>: the file is locked by another session", ""),
    fault(2, "", "Error: rate limit exceeded, retry after <seconds> seconds", ""),
    fault(2, "", "Failed to fetch https://<host>/export: status code 401", ""),
    fault(1, "", "Error: request to <host> timed out after 20000 ms", "").slow(),
];

#[rustfmt::skip] // one row, one line
const OUTAGE: &[Fault] = &[
    fault(1, "", "Internal error: the search index of <tenant> is corrupt", ""),
];
