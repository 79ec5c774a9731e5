//! Encodes calls as OTLP: as the span of an instrumented server, or as the log record of an agent host.
//!
//! Each is written as one `ResourceSpans` or `ResourceLogs` with its field number, so that several of them concatenated
//! are a valid request.

use super::actor::Actor;
use super::protobuf::Message;
use super::releases::Release;
use crate::json_writer::JsonWriter;
use crate::random::mix;
use crate::record::Record;

/// The instrumentation whose conventions a span follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Convention {
    /// A server span as MCP SDKs send it.
    McpServer,
    /// A span as a library sends it that traces the tools of a workflow.
    TracedTool,
}

/// The agent host whose log records are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    ClaudeCode,
    Codex,
    Gemini,
}

const KIND_INTERNAL: u64 = 1;
const KIND_SERVER: u64 = 2;
const STATUS_ERROR: u64 = 2;
const SEVERITY_INFO: u64 = 9;

/// Writes the span of a call.
pub(super) fn span(convention: Convention, record: &Record<'_>, actor: &Actor, release: Release) -> Vec<u8> {
    // A span is sent when it ends.
    let end = nanos(record.micros);
    let operation = record.operation;
    let reply = expand(record, record.service.line);
    let mut span = Message::default()
        .bytes(1, &id(record.seed, 1))
        .bytes(2, &id(record.seed, 3)[..8])
        .fixed64(7, end.saturating_sub(record.duration_micros() * 1_000))
        .fixed64(8, end);
    span = match convention {
        Convention::McpServer => span
            .text(5, &format!("tools/call {operation}"))
            .integer(6, KIND_SERVER)
            .message(9, &text("mcp.method.name", "tools/call"))
            .message(9, &text("gen_ai.tool.name", operation))
            .message(9, &text("jsonrpc.request.id", &(1 + record.seed % 9_000).to_string()))
            .message(9, &text("mcp.session.id", &actor.session_name()))
            .message(9, &text("enduser.id", &actor.client_name())),
        Convention::TracedTool => span
            .text(5, &format!("{operation}.tool"))
            .integer(6, KIND_INTERNAL)
            .message(9, &text("traceloop.span.kind", "tool"))
            .message(9, &text("traceloop.entity.name", operation)),
    };
    if !reply.is_empty() {
        let key = match convention {
            Convention::McpServer => "gen_ai.tool.call.result",
            Convention::TracedTool => "traceloop.entity.output",
        };
        span = span.message(9, &text(key, &reply));
    }
    wrap(record, release, &with_error(span, record))
}

/// Adds the attributes of a failure that is visible in its span: `error.type`, the status code, and the status.
fn with_error(mut span: Message, record: &Record<'_>) -> Message {
    let fault = record.fault;
    let error_type = if fault.kind.is_empty() { fault.rpc_code } else { fault.kind };
    if error_type.is_empty() {
        return span;
    }
    span = span.message(9, &text("error.type", error_type));
    if !fault.rpc_code.is_empty() {
        span = span.message(9, &text("rpc.response.status_code", fault.rpc_code));
    }
    let status = Message::default().text(2, &expand(record, fault.message)).integer(3, STATUS_ERROR);
    span.message(15, &status)
}

/// Writes the log record in which a host reports a call.
pub(super) fn log(host: Host, record: &Record<'_>, actor: &Actor, release: Release) -> Vec<u8> {
    let worked = record.fault.kind.is_empty();
    let (name, milliseconds) = (record.operation, record.duration_micros() / 1_000);
    let event = match host {
        Host::ClaudeCode => "claude_code.tool_result",
        Host::Codex => "codex.tool_result",
        Host::Gemini => "gemini_cli.tool_call",
    };
    let log = Message::default()
        .fixed64(1, nanos(record.micros))
        .fixed64(11, nanos(record.micros))
        .integer(2, SEVERITY_INFO)
        .message(5, &Message::default().text(1, event))
        .message(6, &text("event.name", event));
    let (worked_text, duration_text) = (worked.to_string(), milliseconds.to_string());
    let session = actor.session_name();
    let log = match host {
        Host::ClaudeCode => log
            .message(6, &text("tool_name", name))
            .message(6, &text("success", &worked_text))
            .message(6, &integer("duration_ms", milliseconds))
            .message(6, &text("session.id", &session))
            .message(6, &text("user.id", &actor.client_name())),
        Host::Codex => log
            .message(6, &text("tool_name", name))
            .message(6, &text("success", &worked_text))
            .message(6, &text("duration_ms", &duration_text))
            .message(6, &text("conversation.id", &session))
            .message(6, &text("call_id", &format!("call_{:016x}", mix(record.seed)))),
        Host::Gemini => log
            .message(6, &text("function_name", name))
            .message(6, &boolean("success", worked))
            .message(6, &integer("duration_ms", milliseconds))
            .message(6, &text("session.id", &session)),
    };
    wrap(record, release, &log)
}

/// Wraps a span or a log record in its scope and resource.
fn wrap(record: &Record<'_>, release: Release, item: &Message) -> Vec<u8> {
    let service = record.service;
    let resource = Message::default()
        .message(1, &text("service.name", service.name))
        .message(1, &text("service.version", &release.name()))
        .message(1, &text("deployment.environment.name", service.environment));
    let of_resource =
        Message::default().message(1, &resource).message(2, &Message::default().message(2, item));
    Message::default().message(1, &of_resource).into_bytes()
}

fn text(key: &str, value: &str) -> Message {
    attribute(key, &Message::default().text(1, value))
}

fn boolean(key: &str, value: bool) -> Message {
    attribute(key, &Message::default().integer(2, u64::from(value)))
}

fn integer(key: &str, value: u64) -> Message {
    attribute(key, &Message::default().integer(3, value))
}

fn attribute(key: &str, value: &Message) -> Message {
    Message::default().text(1, key).message(2, value)
}

fn expand(record: &Record<'_>, template: &str) -> String {
    let mut line = String::new();
    record.expand(template, &mut JsonWriter::new(&mut line));
    line
}

fn nanos(micros: i64) -> u64 {
    micros.unsigned_abs() * 1_000
}

/// Returns sixteen bytes that are determined by a record and a purpose.
fn id(seed: u64, purpose: u64) -> [u8; 16] {
    let (high, low) = (mix(seed ^ purpose), mix(seed ^ (purpose + 1)));
    ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
}
