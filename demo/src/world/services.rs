//! The services that only the world has: plain MCP servers with prose, tools in front of a web API, a JSON-RPC gateway,
//! instrumented servers, and agent hosts.
//!
//! A service that reports over OTLP has the line template `<body>`: the reply alone, which becomes an attribute of its
//! span.

use crate::dialect::{agent_host, instrumented, prose, upstream_api};
use crate::services::Service;

/// A server of notes, with errors in prose.
pub(super) static NOTES: Service = Service {
    weight: 0,
    name: "notes-mcp",
    environment: "production",
    dialect: &prose::NOTES,
    usual_micros: 22_000,
    line: r#"{"timestamp":"<time>","service":"<service>","environment":"<environment>","tool":"<operation>","request_id":"<uuid>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        ("read_note", r#"{"id":"<resource_id>","title":"<title>","words":<items>}"#),
        ("append_note", r#"{"id":"<resource_id>","version":<count>}"#),
        ("search_notes", r#"{"matches":["<resource_id>"],"total":<items>}"#),
        ("export_notes", r#"{"file":"notes-<serial>.zip","bytes":<rows>}"#),
    ],
    resource: "note",
    resource_id: "note-<serial>",
};

/// A server of repositories, which returns the errors of a web API as text.
pub(super) static REPOSITORIES: Service = Service {
    weight: 0,
    name: "repo-tools",
    environment: "production",
    dialect: &upstream_api::CODE_FORGE,
    usual_micros: 180_000,
    line: r#"{"timestamp":"<time>","service":"<service>","environment":"<environment>","tool":"<operation>","request_id":"<uuid>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        ("get_file_contents", r#"{"path":"src/main.rs","size":<rows>,"encoding":"base64"}"#),
        ("list_issues", r#"[{"number":<count>,"title":"<title>","state":"<state>"}]"#),
        ("create_pull_request", r#"{"number":<count>,"draft":false,"mergeable":true}"#),
        ("search_code", r#"{"total_count":<items>,"incomplete_results":false}"#),
    ],
    resource: "repository",
    resource_id: "brightwater/repo-<count>",
};

/// A gateway with JSON-RPC errors that carry the HTTP status.
pub(super) static GATEWAY: Service = Service {
    weight: 0,
    name: "mcp-gateway",
    environment: "production",
    dialect: &upstream_api::RPC_GATEWAY,
    usual_micros: 31_000,
    line: r#"{"time":"<time>","service":"<service>","environment":"<environment>","tool":"<operation>","request_id":"<request>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        ("get_invoice", r#"{"id":"INV-<serial>","amount_cents":<amount>}"#),
        ("list_tickets", r#"{"tickets":[],"total":<items>}"#),
        ("geocode_address", r#"{"place":"<city>"}"#),
    ],
    resource: "route",
    resource_id: "<typo>",
};

/// A search in documentation, whose spans never carry a reply.
pub(super) static DOCUMENTS: Service = Service {
    weight: 0,
    name: "docs-search",
    environment: "production",
    dialect: &instrumented::WITHOUT_REPLIES,
    usual_micros: 70_000,
    line: "<body>",
    operations: &[("search_docs", ""), ("read_page", ""), ("list_sections", "")],
    resource: "page",
    resource_id: "page-<serial>",
};

/// A server of calendars, in which a middleware adds each reply to its span.
pub(super) static CALENDAR: Service = Service {
    weight: 0,
    name: "calendar-mcp",
    environment: "production",
    dialect: &instrumented::WITH_REPLIES,
    usual_micros: 45_000,
    line: "<body>",
    operations: &[
        ("list_events", r#"{"events":[{"id":"<resource_id>","title":"<title>"}],"total":<items>}"#),
        ("create_event", r#"{"id":"<resource_id>","starts_at":"<soon>"}"#),
        ("find_free_slot", r#"{"starts_at":"<soon>","minutes":<count>}"#),
    ],
    resource: "event",
    resource_id: "evt-<serial>",
};

/// A research workflow whose tools are traced.
pub(super) static RESEARCH: Service = Service {
    weight: 0,
    name: "research-flow",
    environment: "staging",
    dialect: &instrumented::TRACED_TOOLS,
    usual_micros: 600_000,
    line: "<body>",
    operations: &[
        ("fetch_source", r#"{"url":"https://<host>/<serial>","bytes":<rows>}"#),
        ("rank_passages", r#"{"passages":<items>,"best":0.<percent>}"#),
        ("write_summary", r#"{"summary":"<title>; <name> will look at it."}"#),
    ],
    resource: "source",
    resource_id: "src-<serial>",
};

/// A coding agent in a terminal.
pub(super) static CLAUDE_CODE: Service = host(
    "claude-code",
    &[("mcp__tracker__list_tickets", ""), ("mcp__repo__search_code", ""), ("Bash", ""), ("Edit", "")],
);

/// Another coding agent.
pub(super) static CODEX: Service =
    host("codex-cli", &[("tracker.get_ticket", ""), ("shell", ""), ("apply_patch", "")]);

/// A third coding agent.
pub(super) static GEMINI: Service =
    host("gemini-cli", &[("list_invoices", ""), ("read_file", ""), ("run_shell_command", "")]);

const fn host(name: &'static str, operations: &'static [(&'static str, &'static str)]) -> Service {
    Service {
        weight: 0,
        name,
        environment: "production",
        dialect: &agent_host::HOST,
        usual_micros: 240_000,
        line: "<body>",
        operations,
        resource: "tool",
        resource_id: "<typo>",
    }
}
