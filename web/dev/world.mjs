// An invented week of calls and failures for the development server: believable, and the same every time.

const SERVICES = [
  { name: "ledger-adapter", dialect: "mcp-aql", weight: 9, hidden: 0.8, versions: ["2.3.0", "2.4.1"], operations: ["get_invoice", "post_payment", "issue_refund", "list_invoices"] },
  { name: "tracker-adapter", dialect: "mcp-aql", weight: 8, hidden: 0.75, versions: ["1.9.2"], operations: ["search_tickets", "create_ticket", "purge_project", "add_comment"] },
  { name: "depot-batch", dialect: "mcp-aql", weight: 4, hidden: 0.6, versions: ["0.8.0", "0.8.1"], operations: ["sync_catalogue", "move_stock", "reserve_item"] },
  { name: "orders-reference", dialect: "mcp-reference", weight: 6, hidden: 0.5, versions: ["5.1"], operations: ["create-sales-order", "fulfill-order", "quote"] },
  { name: "skills-runtime", dialect: "agent-skills", weight: 5, hidden: 0.3, versions: ["3.0.0"], operations: ["code.diff.review", "web.page.fetch", "table.summarize"] },
  { name: "plant-hub", dialect: "erlmcp", weight: 3, hidden: 0, versions: ["1.2"], operations: ["trend_report", "read_sensor"] },
  { name: "geo-tools", dialect: "jsonrpc", weight: 6, hidden: 0.4, versions: ["4.2.0"], operations: ["route_between", "elevation_profile", "geocode"] },
  { name: "desk-agent-host", dialect: "jsonrpc", weight: 4, hidden: 0, versions: ["2026.11"], operations: ["Read", "Bash", "WebFetch"] },
  { name: "edge-gateway", dialect: "http", weight: 5, hidden: 0, versions: ["7"], operations: ["tools/call", "tools/list"] },
  { name: "<script>alert('service')</script>", dialect: "jsonrpc", weight: 0.4, hidden: 0.2, versions: ["<b>1</b>"], operations: ["<img src=x onerror=alert(1)>"] },
];

const FAILURES = [
  ["VALIDATION_MISSING_PARAM", "VALIDATION", "caller", "repair_request", false, 14, (p) => `Missing required parameter '${p(["owner", "due_date", "currency", "page_size"])}'`],
  ["VALIDATION_INVALID_TYPE", "VALIDATION", "caller", "repair_request", false, 7, (p) => `Parameter 'limit' expected 'integer', got '${p(["string", "null", "array"])}'`],
  ["NOT_FOUND_RESOURCE", "NOT_FOUND", "caller", "choose_another_target", false, 12, (p) => `Resource 'invoice' not found: 'INV-${p([1041, 2206, 3311, 4718])}'`],
  ["NOT_FOUND_OPERATION", "NOT_FOUND", "caller", "discover_operations", false, 4, (p) => `Unknown operation: '${p(["delete_everything", "get_ticket", "listAll"])}'`],
  ["PERMISSION_DENIED", "PERMISSION", "policy", "request_access", false, 6, () => "Permission denied: 'scope invoices:write is missing'"],
  ["PERMISSION_TRUST_LEVEL_INSUFFICIENT", "PERMISSION", "policy", "raise_trust", false, 4, () => "Operation 'issue_refund' requires trust level 'certified', adapter has 'validated'"],
  ["PERMISSION_DANGER_LEVEL_DENIED", "PERMISSION", "policy", "raise_trust", false, 3, () => "Operation 'purge_project' (danger: dangerous) denied for adapter trust level 'generated'"],
  ["CONFLICT_VERSION_MISMATCH", "CONFLICT", "caller", "refresh_and_retry", false, 4, () => "The ticket changed since version '17' was read"],
  ["RATE_LIMIT_EXCEEDED", "RATE_LIMIT", "quota", "back_off", true, 8, () => "API rate limit exceeded"],
  ["RATE_LIMIT_QUOTA_PAUSE", "RATE_LIMIT", "quota", "confirm", false, 4, () => "Quota pause threshold reached"],
  ["TOKEN_ALREADY_USED", "TOKEN", "caller", "request_new_confirmation", false, 1, () => "Confirmation token has already been used"],
  ["SCHEMA_OUTPUT_MISMATCH", "SCHEMA", "server", "fix_schema", false, 2, () => "The result does not match the tool's output schema: 'total' is missing"],
  ["PROTOCOL_TIMEOUT", "PROTOCOL", "transport", "fix_client", null, 4, () => "Request timed out"],
  ["INTERNAL_ERROR", "INTERNAL", "server", "report_fault", null, 9, (p) => `Internal error: 'certificate of stock-${p([0, 1, 2])}.internal has expired'`],
  ["INTERNAL_UPSTREAM", "INTERNAL", "upstream", "report_fault", true, 6, (p) => `503 Service Unavailable from rates-${p([1, 2])}.internal`],
  ["UNKNOWN_TOOL_ERROR", "UNKNOWN", "server", "inspect", null, 3, () => "<script>alert('message')</script> \u001b[31mred\u001b[0m \"quoted\""],
];

const CLIENTS = ["planner-7", "triage-bot", "desk-helper", "invoice-clerk", "scout", "release-manager", "cron", "<i>client</i>"];
const DAY = 86400e3;

/** A small generator of numbers: the same seed gives the same world. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

const hex = (number, width) => Math.floor(number).toString(16).padStart(width, "0").slice(0, width);

function template(message) {
  return message.replace(/'[^']*'/g, "'{value}'").replace(/\b\d+\b/g, "{number}");
}

function fingerprint(text) {
  let hash = 2166136261;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619) >>> 0;
  return hex(hash, 8) + hex((hash * 2654435761) % 4294967296, 8);
}

export class World {
  constructor(now, seed = 7) {
    this.next = random(seed);
    this.events = [];
    this.minutes = [];
    this.number = 0;
    for (let time = now - 7 * DAY; time < now; time += 10 * 60e3) this.step(time, 10, now);
    this.events.sort((a, b) => a.at - b.at);
  }

  pick(list) {
    return list[Math.floor(this.next() * list.length)];
  }

  weighted(list, weight) {
    let left = this.next() * list.reduce((sum, each) => sum + weight(each), 0);
    return list.find((each) => (left -= weight(each)) < 0) ?? list.at(-1);
  }

  /** So many minutes of traffic. */
  step(time, minutes, now) {
    const hour = new Date(time).getUTCHours();
    const rhythm = 0.35 + 0.65 * Math.max(0, Math.sin(((hour - 5) / 24) * 2 * Math.PI)) + 0.15 * this.next();
    for (const service of SERVICES) {
      const calls = Math.round(service.weight * rhythm * minutes * 1.4 * (0.8 + 0.4 * this.next()));
      const isBad = service.name === "depot-batch" && time > now - 5 * 3600e3 && time < now - 2 * 3600e3;
      let failed = 0;
      let hidden = 0;
      for (let call = 0; call < calls; call += 1) {
        if (this.next() > (isBad ? 0.42 : 0.07)) continue;
        const event = this.failure(service, time + this.next() * minutes * 60e3, isBad);
        if (event.at >= now) continue;
        failed += 1;
        if (event.hidden) hidden += 1;
      }
      this.minutes.push({ at: time, service: service.name, environment: "production", operation: this.pick(service.operations), calls: Math.max(calls, failed), failed, hidden });
    }
    this.quotaWarnings(time, now);
  }

  failure(service, at, isBad) {
    const known = isBad && this.next() < 0.8 ? FAILURES.find(([code]) => code === "INTERNAL_ERROR") : this.weighted(FAILURES, (each) => each[5]);
    const [canonical, category, fault, recovery, retryable, , said] = known;
    const message = said((list) => this.pick(list));
    const operation = this.pick(service.operations);
    const isDenial = canonical.includes("TRUST") || canonical.includes("DANGER");
    return this.add({
      at, kind: "error", canonical, category, fault, recovery, retryable, message, operation, service,
      hidden: this.next() < service.hidden,
      required_trust: isDenial ? "certified" : null,
      actual_trust: isDenial ? this.pick(["untested", "generated", "validated"]) : null,
      danger_level: isDenial ? this.pick(["destructive", "dangerous"]) : null,
      token_hash: category === "TOKEN" ? "a571d472de383e00" : null,
    });
  }

  quotaWarnings(time, now) {
    if (this.next() > 0.3) return;
    const day = time % DAY / DAY;
    for (const [service, client, metric, limit, used] of [
      ["ledger-adapter", "brightwater", "tokens_per_day", 200000, 30000 + day * 175000],
      ["tracker-adapter", "halden-freight", "requests_per_hour", 5000, 1500 + (time % 3600e3) / 3600e3 * 3000],
      ["geo-tools", "quillworks", "cost_per_day", 35.2, 4 + day * 21],
    ]) {
      if (time > now) continue;
      this.add({
        at: time + 60e3, kind: "warning", canonical: "RATE_LIMIT_QUOTA_WARNING", category: "RATE_LIMIT", fault: "quota", recovery: "slow_down", retryable: null,
        message: "Approaching quota limit", operation: "list", service: SERVICES.find((each) => each.name === service), hidden: false, client,
        quota_metric: metric, quota_current: Math.round(Math.min(used, limit) * 100) / 100, quota_limit: limit, quota_level: "warning",
      });
    }
  }

  add(facts) {
    const { service, at, ...rest } = facts;
    this.number += 1;
    const id = hex(this.next() * 4294967296, 8) + hex(this.number, 8);
    const time = new Date(at).toISOString();
    const text = template(rest.message);
    const event = {
      event_id: id, time, at, ingested_at: time, dialect: service.dialect, code: rest.canonical, severity: rest.kind === "error" ? "error" : "warning",
      inferred: this.next() < 0.1, http_status: null, template: text, service: service.name, service_version: service.versions.at(-1), environment: "production",
      client: this.pick(CLIENTS), request_id: `req-${this.number}`, session_id: `session-${this.number % 97}`, trace_id: hex(this.next() * 4294967296, 8).repeat(4),
      span_id: null, duration_us: Math.round(20e3 + this.next() ** 4 * 4e6), source: "otlp_grpc", findings: rest.hidden ? ["hidden_failure"] : [],
      details: JSON.stringify({ param_name: "due_date", note: "</pre><script>alert(1)</script>" }), attributes: null, represents: 1, quota_metric: null,
      token_hash: null, required_trust: null, actual_trust: null, danger_level: null, ...rest,
    };
    event.fingerprint = fingerprint(`${event.canonical} ${event.service} ${event.operation} ${text}`);
    this.events.push(event);
    return event;
  }

  /** Something that happens now, for the tail. */
  live(now) {
    const service = this.weighted(SERVICES, (each) => each.weight);
    return this.failure(service, now, false);
  }
}

export { SERVICES };
