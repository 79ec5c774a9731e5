//! agent-skills: lower-case codes with an exception class and a hint, in five envelopes, and the log of the
//! runtime. Its `trace_id` names a run and is not W3C hex.

use super::{Dialect, Fault, failure, fault, success};

const HTTP: &str = r#""http_status":<status>,"payload":{"error":{"code":"<code>","type":"<kind>","message":"<message>","hint":"<details>"},"trace_id":"<run>"}"#;
const MCP: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"error":{"code":<rpc_code>,"message":"<message>","data":{"agent_skills_code":"<code>","type":"<kind>","hint":"<details>"}}}"#;
const LLM_ADAPTER: &str = r#""result":"<inner_as_text>""#;
const TOOL_TEXT: &str = r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}}"#;
const BRIDGE: &str = r#""response":{"id":"<rpc>","error":{"code":"<code>","message":"<message>","type":"<kind>","status":<status>}}"#;
const SERVICE_LOG: &str =
    r#""event":"service.<operation>","status":"failed","http_status":<status>,"trace_id":"<run>""#;

/// An agent-skills runtime.
pub(crate) static RUNTIME: Dialect = Dialect {
    successes: &[
        success(40, r#""event":"service.<operation>","status":"completed","http_status":200,"trace_id":"<run>","outputs":<payload>"#),
        success(40, r#""http_status":200,"payload":{"skill":"<operation>","status":"completed","outputs":<payload>,"trace_id":"<run>"}"#),
        success(20, r#""response":{"jsonrpc":"2.0","id":<rpc>,"result":{"content":[{"type":"text","text":"<inner_as_text>"}]}}"#)
            .with_inner("<payload>"),
        success(5, r#""response":{"id":"<rpc>","result":{"status":"completed","outputs":<payload>}}"#),
    ],
    failures: &[
        failure(30, HTTP, FAULTS),
        failure(20, MCP, FAULTS),
        failure(15, LLM_ADAPTER, FAULTS).with_inner(r#"{"error":"<kind>: <message>","code":"<code>"}"#),
        failure(12, TOOL_TEXT, FAULTS)
            .with_inner(r#"{"error":"<kind>: <message>","code":"<code>","tool":"<operation>"}"#),
        failure(15, BRIDGE, FAULTS),
        failure(8, SERVICE_LOG, FAULTS),
    ],
    outage: failure(1, HTTP, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FAULTS: &[Fault] = &[
    skill(14, "not_found", "404", "-32601", "SkillNotFoundError", "Skill 'text.<typo>' not found.", "List the known skills and pick one."),
    skill(8, "not_found", "404", "-32601", "CapabilityNotFoundError", "Capability '<typo>.run' not found.", "Look the capability up before the call."),
    skill(14, "invalid_request", "400", "-32602", "InputMappingError", "Input '<param>' of '<operation>' cannot be mapped.", "Compare the inputs with the skill's schema."),
    skill(5, "invalid_request", "400", "-32602", "ReferenceResolutionError", "Reference 'steps.<count>.output' does not resolve.", "Name a step that runs earlier."),
    skill(3, "max_depth_exceeded", "400", "-32602", "MaxSkillDepthExceededError", "Nesting limit '8' reached in '<operation>'.", "Flatten the skill or raise the limit."),
    skill(6, "safety_denied", "403", "-32600", "SafetyTrustLevelError", "Trust level '<actual_trust>' is below '<required_trust>'.", "Run with a reviewed binding."),
    skill(5, "safety_denied", "403", "-32600", "GateDeniedError", "Gate 'outbound-mail' denied '<operation>'.", "Ask the owner of the gate."),
    skill(6, "confirmation_required", "428", "-32600", "SafetyConfirmationRequiredError", "'<operation>' waits for a person.", "Confirm the run in the console."),
    skill(3, "invalid_configuration", "409", "-32603", "InvalidSkillSpecError", "Step '<count>' of '<operation>' has no capability.", "Repair the skill file."),
    skill(3, "conformance_unmet", "412", "-32602", "BindingExecutionError", "No binding of '<operation>' meets profile 'strict'.", "Relax the profile or add a binding."),
    skill(6, "unauthorized", "401", "-32600", "AuthError", "API key of '<tenant>' is not valid.", "Send a current key."),
    skill(4, "forbidden", "403", "-32600", "RoleError", "Role 'reader' may not run '<operation>'.", "Ask for the role 'runner'."),
    skill(8, "rate_limited", "429", "-32600", "RateLimitError", "More than '<limit>' runs in a minute.", "Retry after <seconds> seconds."),
    skill(2, "gate_execution_failure", "503", "-32603", "GateExecutionError", "Gate 'pii-scan' could not run.", "Retry when the gate is back."),
    skill(4, "step_timeout", "504", "-32603", "StepTimeoutError", "Step '<count>' exceeded '20' seconds.", "Raise timeout_seconds or split the step.").slow(),
    skill(4, "upstream_timeout", "504", "-32603", "CapabilityExecutionError", "'<host>' did not answer in time.", "Retry later.").slow(),
    skill(8, "upstream_failure", "502", "-32603", "StepExecutionError", "'<host>' answered '<http_5xx>'.", "Look at the upstream service."),
    skill(3, "runtime_error", "500", "-32603", "RuntimeErrorBase", "Unexpected state 'drained' in scheduler.", "Report the trace id."),
    skill(2, "internal_error", "500", "-32603", "KeyError", "'<key>'", "Report the trace id."),
    skill(1, "upstream_failure", "502", "-32603", "StepExecutionError", "Mail to <email> bounced, key sk-live-<bearer> was refused.", "Check the mail account."),
];

#[rustfmt::skip] // one row, one line
const OUTAGE: &[Fault] = &[
    skill(4, "upstream_failure", "502", "-32603", "StepExecutionError", "'<host>' answered '503'.", "Look at the upstream service."),
    skill(2, "internal_error", "500", "-32603", "OperationalError", "Too many connections to '<host>'.", "Report the trace id."),
];

const fn skill(
    weight: u32,
    code: &'static str,
    status: &'static str,
    rpc_code: &'static str,
    kind: &'static str,
    message: &'static str,
    hint: &'static str,
) -> Fault {
    Fault { status, rpc_code, kind, ..fault(weight, code, message, hint) }
}
