/** The words and colours of the closed lists: one place for what a category, a fault or a finding is called. */

import type { Category, Fault } from "../api";

/** In the order of charts and legends: from the foot of a stack to its top. */
export const CATEGORIES: readonly Category[] = [
  "INTERNAL", "RATE_LIMIT", "PERMISSION", "TOKEN", "CONFLICT", "NOT_FOUND", "VALIDATION", "PROTOCOL", "SCHEMA", "UNKNOWN",
];

const CATEGORY_NAMES: Record<Category, string> = {
  VALIDATION: "Validation",
  NOT_FOUND: "Not found",
  PERMISSION: "Permission",
  CONFLICT: "Conflict",
  RATE_LIMIT: "Rate limit",
  TOKEN: "Token",
  SCHEMA: "Schema",
  PROTOCOL: "Protocol",
  INTERNAL: "Internal",
  UNKNOWN: "Unknown",
};

export function categoryName(category: string): string {
  return CATEGORY_NAMES[category as Category] ?? category;
}

/** The name of a CSS variable. */
export function categoryColor(category: string): string {
  return category in CATEGORY_NAMES ? `--cat-${category.toLowerCase().replace("_", "-")}` : "--cat-unknown";
}

export const FAULTS: Record<Fault, { name: string; about: string }> = {
  caller: { name: "Caller", about: "The request was wrong" },
  server: { name: "Server", about: "The tool server broke" },
  upstream: { name: "Upstream", about: "Something behind the server broke" },
  policy: { name: "Policy", about: "A rule forbade it" },
  user: { name: "User", about: "A person said no" },
  quota: { name: "Quota", about: "A limit or a budget was reached" },
  transport: { name: "Transport", about: "The connection failed" },
  probe: { name: "Probe", about: "A client tried what the server can do" },
};

export function faultColor(fault: string | null): string {
  return fault !== null && fault in FAULTS ? `--fault-${fault}` : "--cat-unknown";
}

/** What to do, as one sentence for each recovery. */
const RECOVERY: Record<string, string> = {
  repair_request: "Correct the request and send it again.",
  choose_another_target: "Ask for something that exists.",
  discover_operations: "Look up which operations the server offers.",
  request_access: "Get credentials, a role or a scope.",
  raise_trust: "Have the adapter reviewed to a higher trust level.",
  confirm: "Ask a person, then send the confirmation token along.",
  refresh_and_retry: "Read the current state, then decide again.",
  back_off: "Wait, then send the same request again.",
  slow_down: "Send less.",
  request_new_confirmation: "Start the confirmation anew.",
  fix_schema: "Correct the schema or the configuration.",
  fix_client: "Correct the client.",
  report_fault: "Tell whoever runs the server.",
  inspect: "Look at the record: nothing is known about it.",
  none: "Nothing to do.",
};

export function recoveryAdvice(recovery: string | null): string {
  return recovery === null ? "–" : (RECOVERY[recovery] ?? words(recovery));
}

const FINDINGS: Record<string, string> = {
  string_error: "The error is a text, not an object",
  unregistered_code: "The code is in no registry",
  bad_code_format: "The code is missing or malformed",
  missing_message: "There is no message",
  missing_details: "Details that the specification asks for are missing",
  template_mismatch: "The message does not follow the specification",
  internal_for_caller_mistake: "Called internal, though the caller is at fault",
  reserved_code: "A number that MCP reserves",
  leaky_message: "The message shows a path or a stack frame",
  secret_in_message: "The message held a secret",
  retryable_contradiction: "Payload and specification disagree on retries",
  hidden_failure: "The failure travelled in a reply that says success",
  warning_in_error: "A warning code in an error",
  reply_not_captured: "Replies are not captured, so hidden failures are not seen",
};

export function findingName(finding: string): string {
  return FINDINGS[finding] ?? words(finding);
}

/** `requests_per_hour` as `requests per hour`. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** Names of filters, as chips show them. */
export const FILTER_NAMES: Record<string, string> = {
  kind: "Kind",
  service: "Service",
  environment: "Environment",
  category: "Category",
  code: "Code",
  native_code: "Code as sent",
  dialect: "Dialect",
  severity: "Severity",
  fault: "Fault",
  recovery: "Recovery",
  operation: "Operation",
  client: "Client",
  version: "Version",
  fingerprint: "Group",
  trace_id: "Trace",
  session_id: "Session",
  request_id: "Request",
  token_hash: "Token",
  quota_metric: "Quota",
  finding: "Finding",
  required_trust: "Trust required",
  actual_trust: "Trust there",
  danger_level: "Danger",
  hidden: "Hidden",
  denied: "Denied",
  q: "Message contains",
};

export const EVENT_FILTERS: readonly string[] = Object.keys(FILTER_NAMES);

/** A filter's value in words. */
export function filterValue(name: string, value: string): string {
  if (value === "") return "none";
  if (name === "category") return categoryName(value);
  if (name === "finding") return findingName(value);
  if (name === "hidden") return value === "true" ? "only" : "no";
  if (name === "denied") return value === "true" ? "only" : "no";
  return value;
}
