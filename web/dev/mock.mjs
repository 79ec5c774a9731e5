// A stand-in for the server while the page is developed: the contract of src/api.ts, answered from an invented world.
// It is not shipped, and it knows no SQL: POST api/v1/sql answers the same few rows whatever is asked.

import { SERVICES, World } from "./world.mjs";

const UNITS = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3 };
const STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const COLUMN = { code: "canonical", native_code: "code", version: "service_version" };
const FILTERS = ["kind", "service", "environment", "category", "code", "native_code", "dialect", "severity", "fault", "recovery", "operation", "client",
  "version", "fingerprint", "trace_id", "session_id", "request_id", "token_hash", "quota_metric", "required_trust", "actual_trust", "danger_level"];

const sum = (rows, of) => rows.reduce((total, row) => total + of(row), 0);

function groupBy(rows, of) {
  const map = new Map();
  for (const row of rows) {
    const key = of(row);
    const list = map.get(key);
    if (list) list.push(row);
    else map.set(key, [row]);
  }
  return map;
}

export class Mock {
  constructor({ token = null, now = Date.now() } = {}) {
    this.world = new World(now);
    this.started = new Date(now - 3600e3).toISOString();
    this.token = token;
    this.signedIn = token === null;
  }

  time(text, now) {
    if (text === "now") return now;
    const found = /^-(\d+)([smhdw])$/.exec(text);
    return found ? now - Number(found[1]) * UNITS[found[2]] : Date.parse(text);
  }

  range(params) {
    const now = Date.now();
    const from = this.time(params.get("from") ?? "-24h", now);
    const to = this.time(params.get("to") ?? "now", now);
    const most = Number(params.get("buckets") ?? 120);
    const step = STEPS.find((each) => Math.ceil(to / 1000 / each) - Math.floor(from / 1000 / each) <= most) ?? STEPS.at(-1);
    const first = Math.floor(from / 1000 / step) * step;
    const time = [];
    for (let at = first; at < to / 1000; at += step) time.push(at);
    return { from, to, step, time, resolved: { from: new Date(from).toISOString(), to: new Date(to).toISOString(), step_s: step } };
  }

  series(rows, range, of = (row) => row.represents ?? 1) {
    const values = new Array(range.time.length).fill(0);
    for (const row of rows) {
      const bucket = Math.floor((row.at / 1000 - range.time[0]) / range.step);
      if (bucket in values) values[bucket] += of(row);
    }
    return values;
  }

  filtered(params, range, kind) {
    const wanted = FILTERS.map((name) => [COLUMN[name] ?? name, params.getAll(name)]).filter(([, values]) => values.length > 0);
    const text = params.get("q")?.toLowerCase();
    return this.world.events.filter((event) =>
      event.at >= range.from && event.at < range.to && (kind === undefined || event.kind === kind)
      && wanted.every(([column, values]) => values.includes(event[column] ?? ""))
      && (params.get("hidden") === null || String(event.hidden) === params.get("hidden"))
      && (params.get("denied") !== "true" || event.required_trust !== null)
      && (params.getAll("finding").length === 0 || params.getAll("finding").some((each) => event.findings.includes(each)))
      && (text === undefined || (event.message ?? "").toLowerCase().includes(text)));
  }

  traffic(params, range) {
    const services = params.getAll("service");
    return this.world.minutes.filter((row) => row.at >= range.from && row.at < range.to && (services.length === 0 || services.includes(row.service)));
  }

  totals(params, range) {
    const errors = this.filtered(params, range, "error");
    const calls = this.traffic(params, range);
    return {
      errors: errors.length, hidden: errors.filter((event) => event.hidden).length, calls: sum(calls, (row) => row.calls),
      failed_calls: sum(calls, (row) => row.failed), hidden_calls: sum(calls, (row) => row.hidden), groups: new Set(errors.map((event) => event.fingerprint)).size,
    };
  }

  byCategory(events, range) {
    return Object.fromEntries([...groupBy(events, (event) => event.category)].map(([category, rows]) => [category, this.series(rows, range)]));
  }

  top(rows, of, most) {
    return [...groupBy(rows, of)].sort((a, b) => b[1].length - a[1].length).slice(0, most);
  }

  facet(rows, column, most = 8) {
    return this.top(rows, (row) => row[column] ?? null, most).map(([value, of]) => ({ value, errors: of.length, last_seen: of.at(-1).time }));
  }

  names(params) {
    const range = this.range(params);
    const calls = this.traffic(new URLSearchParams(), range);
    const services = [...groupBy(calls, (row) => row.service)].sort((a, b) => sum(b[1], (row) => row.calls) - sum(a[1], (row) => row.calls));
    return { services: services.map(([name]) => name), environments: ["production"] };
  }

  overview(params) {
    const range = this.range(params);
    const before = { ...range, from: range.from - (range.to - range.from), to: range.from };
    const errors = this.filtered(params, range, "error");
    const calls = this.traffic(params, range);
    const previous = groupBy(this.filtered(params, before, "error"), (event) => event.canonical);
    const groups = this.groupRows(errors, range).filter((group) => group.state === "new").slice(0, 5);
    return {
      range: range.resolved, totals: this.totals(params, range), previous: this.totals(params, before),
      series: {
        time: range.time, by_category: this.byCategory(errors, range), calls: this.series(calls, range, (row) => row.calls),
        failed_calls: this.series(calls, range, (row) => row.failed), hidden_calls: this.series(calls, range, (row) => row.hidden),
      },
      faults: this.top(errors, (event) => event.fault, 9).map(([fault, rows]) => ({ fault, errors: rows.length })),
      codes: this.top(errors, (event) => event.canonical, 10).map(([canonical, rows]) => ({
        canonical, category: rows[0].category, errors: rows.length, hidden: rows.filter((event) => event.hidden).length, previous: previous.get(canonical)?.length ?? 0,
      })),
      services: this.top(errors, (event) => event.service, 10).map(([service, rows]) => {
        const of = calls.filter((row) => row.service === service);
        return { service, errors: rows.length, hidden: rows.filter((event) => event.hidden).length, calls: sum(of, (row) => row.calls), failed_calls: sum(of, (row) => row.failed), hidden_calls: sum(of, (row) => row.hidden) };
      }),
      retry_loops: this.loops(errors), quotas: this.quotaRows(params).slice(0, 3), new_groups: groups,
      not_captured: [{ service: "desk-agent-host", calls: sum(calls.filter((row) => row.service === "desk-agent-host"), (row) => row.calls) }].filter((row) => row.calls > 0),
      ingest: {
        ready: true, message: null, started_at: this.started, last_event_at: this.world.events.at(-1).time, events: this.world.events.length, events_last_minute: 42,
        unrecognized: 31, rejected: 7, refused: { too_large: 2 }, wal_bytes: 1.4e6, buffered_events: 812, stored_events: this.world.events.length, stored_bytes: 9.1e6,
      },
    };
  }

  loops(errors) {
    const loops = [...groupBy(errors, (event) => `${Math.floor(event.at / 600e3)} ${event.client} ${event.fingerprint}`).values()].filter((rows) => rows.length >= 3);
    return loops.sort((a, b) => b.length - a.length).slice(0, 5).map((rows) => ({
      time: new Date(Math.floor(rows[0].at / 600e3) * 600e3).toISOString(), service: rows[0].service, client: rows[0].client, operation: rows[0].operation,
      canonical: rows[0].canonical, category: rows[0].category, fingerprint: rows[0].fingerprint, attempts: rows.length, attempts_per_minute: 1.2,
      retryable: rows[0].retryable, recovery: rows[0].recovery, last_seen: rows.at(-1).time,
    }));
  }

  groupRows(errors, range) {
    if (this.firsts === undefined || this.firstsOf !== this.world.events.length) {
      this.firsts = new Map();
      for (const event of this.world.events) if (!this.firsts.has(event.fingerprint)) this.firsts.set(event.fingerprint, event);
      this.firstsOf = this.world.events.length;
    }
    return [...groupBy(errors, (event) => event.fingerprint)].map(([fingerprint, rows]) => {
      const [first, last] = [this.firsts.get(fingerprint), rows.at(-1)];
      const isNew = first.at >= range.from;
      return {
        fingerprint, canonical: last.canonical, category: last.category, fault: last.fault, service: last.service, operation: last.operation, template: last.template,
        errors: rows.length, hidden: rows.filter((event) => event.hidden).length, clients: new Set(rows.map((event) => event.client)).size, first_seen: first.time,
        last_seen: last.time, previous_seen: isNew ? null : first.time, state: isNew ? "new" : rows.length === 3 ? "regressed" : "ongoing",
        newest_message: last.message, newest_event_id: last.event_id, trend: this.series(rows, range),
      };
    }).sort((a, b) => b.errors - a.errors);
  }

  groups(params) {
    const range = this.range(params);
    const all = this.groupRows(this.filtered(params, range, "error"), range);
    const states = { new: 0, regressed: 0, ongoing: 0 };
    for (const group of all) states[group.state] += 1;
    const found = params.get("state") ? all.filter((group) => params.getAll("state").includes(group.state)) : all;
    const sort = params.get("sort");
    if (sort) found.sort((a, b) => (a[sort] < b[sort] ? 1 : -1));
    const offset = Number(params.get("offset") ?? 0);
    return {
      range: range.resolved, total_groups: found.length, total_errors: sum(found, (group) => group.errors), states, time: range.time,
      groups: found.slice(offset, offset + Number(params.get("limit") ?? 50)),
    };
  }

  meaning(canonical) {
    const event = this.world.events.find((each) => each.canonical === canonical);
    if (!event) return null;
    return { description: "What a server sends when this goes wrong.", severity: "error", retryable: event.retryable, recovery: event.recovery, http_status: 400, runbook: "validation" };
  }

  group(fingerprint, params) {
    const range = this.range(params);
    const history = this.world.events.filter((event) => event.fingerprint === fingerprint && event.kind === "error");
    if (history.length === 0) return null;
    const rows = history.filter((event) => event.at >= range.from && event.at < range.to);
    const [group] = this.groupRows(rows.length > 0 ? rows : history.slice(-1), range);
    const messages = this.top(rows, (event) => event.message, 10).map(([message, of]) => ({ message, errors: of.length, last_seen: of.at(-1).time, event_id: of.at(-1).event_id, hidden: of.at(-1).hidden }));
    const facets = Object.fromEntries([["operation"], ["client"], ["service_version"], ["environment"], ["native_code", "code"], ["session_id"], ["trace_id"], ["source"]]
      .map(([name, column = name]) => [name, this.facet(rows, column, 10)]));
    return {
      range: range.resolved, group, total_errors: history.length, time: range.time, hidden_trend: this.series(rows.filter((event) => event.hidden), range),
      meaning: this.meaning(group.canonical), messages, facets: { ...facets, finding: [] }, retry_loops: this.loops(rows),
      sql: `SELECT time, client, message, details\nFROM errors\nWHERE fingerprint = '${fingerprint}' AND time >= now() - INTERVAL '1 day'\nORDER BY time DESC\nLIMIT 100`,
    };
  }

  services(params) {
    const range = this.range(params);
    const calls = groupBy(this.traffic(params, range), (row) => row.service);
    const services = [...calls].map(([service, rows]) => {
      const errors = this.filtered(params, range, "error").filter((event) => event.service === service);
      const about = SERVICES.find((each) => each.name === service);
      const hidden = errors.filter((event) => event.hidden);
      return {
        service, ...this.stats(rows), errors: errors.length, hidden: hidden.length, groups: new Set(errors.map((event) => event.fingerprint)).size,
        dialects: [about.dialect], versions: about.versions, environments: ["production"], last_seen: errors.at(-1)?.time ?? null,
        capture: service === "desk-agent-host" ? "not_captured" : service === "edge-gateway" ? "unknown" : "captured",
        findings: hidden.length === 0 ? [] : [{ finding: "hidden_failure", dialect: about.dialect, errors: hidden.length, share: hidden.length / errors.length, example: hidden.at(-1).message, example_event_id: hidden.at(-1).event_id }],
        trend: { calls: this.series(rows, range, (row) => row.calls), failed_calls: this.series(rows, range, (row) => row.failed), hidden_calls: this.series(rows, range, (row) => row.hidden) },
      };
    }).sort((a, b) => b.calls - a.calls);
    const isOne = params.getAll("service").length === 1;
    const operations = [...groupBy(this.traffic(params, range), (row) => row.operation)].map(([operation, rows]) => ({ operation, ...this.stats(rows) }));
    return { range: range.resolved, time: range.time, services, operations: isOne ? operations : null };
  }

  stats(rows) {
    return { calls: sum(rows, (row) => row.calls), failed_calls: sum(rows, (row) => row.failed), hidden_calls: sum(rows, (row) => row.hidden), p50_ms: 142, p95_ms: 1870, p99_ms: 9300.5 };
  }

  quotaRows(params) {
    const spoken = this.world.events.filter((event) => event.quota_metric !== null);
    const services = params.getAll("service");
    return [...groupBy(spoken, (event) => `${event.service} ${event.client} ${event.quota_metric}`).values()].map((rows) => {
      const last = rows.at(-1);
      const usage = last.quota_current / last.quota_limit;
      const resets = last.quota_metric.includes("hour") ? Math.ceil(last.at / 3600e3) * 3600e3 : Math.ceil(last.at / 86400e3) * 86400e3;
      const growth = last.quota_metric.includes("hour") ? last.quota_limit * 0.6 : last.quota_limit / 24;
      const seconds = ((last.quota_limit - last.quota_current) / growth) * 3600;
      const ends = last.at + seconds * 1000;
      return {
        service: last.service, client: last.client, quota_metric: last.quota_metric, state: usage >= 1 ? "exhausted" : resets < Date.now() ? "reset" : "warning",
        quota_level: "warning", quota_current: last.quota_current, quota_limit: last.quota_limit, usage, growth_per_hour: growth,
        projected_exhaustion: usage < 1 && ends < resets ? new Date(ends).toISOString() : null, resets_at: new Date(resets).toISOString(), retry_after_s: null,
        observed_at: last.time, samples: 12,
      };
    }).filter((row) => services.length === 0 || services.includes(row.service)).sort((a, b) => b.usage - a.usage);
  }

  quotas(params) {
    const range = this.range(params);
    const quotas = this.quotaRows(params).map((row) => {
      const trend = new Array(range.time.length).fill(null);
      for (const event of this.world.events) {
        if (event.quota_metric !== row.quota_metric || event.client !== row.client) continue;
        const bucket = Math.floor((event.at / 1000 - range.time[0]) / range.step);
        if (bucket in trend) trend[bucket] = Math.max(trend[bucket] ?? 0, event.quota_current);
      }
      return { ...row, trend };
    });
    return { range: range.resolved, time: range.time, quotas };
  }

  trust(params) {
    const range = this.range(params);
    const denied = new URLSearchParams(params);
    denied.set("denied", "true");
    const rows = this.filtered(denied, range, "error");
    const key = (event) => [event.service, event.operation, event.canonical, event.required_trust, event.actual_trust, event.danger_level].join("|");
    const levels = ["untested", "generated", "validated", "community_reviewed", "certified"];
    const token = (state, place) => ({
      token_hash: `${state.length}${place}71d472de383e00a5`.slice(0, 16), service: "ledger-adapter", operation: "issue_refund", client: "release-manager", danger_level: "destructive", state,
      required_at: new Date(Date.now() - place * 3e6).toISOString(), granted_at: null, used_at: null, replayed_at: null, attempts: 2, refusals: state === "used" ? 0 : 1, seconds_to_use: 180,
      last_seen: new Date(Date.now() - place * 2.9e6).toISOString(),
    });
    return {
      range: range.resolved, total_denials: rows.length,
      series: { time: range.time, by_code: Object.fromEntries([...groupBy(rows, (event) => event.canonical)].map(([code, of]) => [code, this.series(of, range)])) },
      denials: this.top(rows, key, 100).map(([, of]) => ({
        service: of[0].service, operation: of[0].operation, canonical: of[0].canonical, required_trust: of[0].required_trust, actual_trust: of[0].actual_trust,
        trust_gap: levels.indexOf(of[0].required_trust) - levels.indexOf(of[0].actual_trust), danger_level: of[0].danger_level, denials: of.length,
        clients: new Set(of.map((event) => event.client)).size, last_seen: of.at(-1).time, newest_event_id: of.at(-1).event_id,
      })),
      confirmations: {
        required: 61, granted: 48, used: 44, states: { used: 40, replayed: 4, abandoned: 9, expired: 3, required: 4, invalid: 1 }, median_seconds_to_use: 96,
        tokens: ["replayed", "replayed", "invalid", "used", "expired", "abandoned", "required", "used"].map(token),
      },
    };
  }

  codes(params) {
    const range = this.range(params);
    const known = [...groupBy(this.world.events, (event) => event.canonical)].filter(([canonical]) => canonical !== "SCHEMA_OUTPUT_MISMATCH");
    const codes = known.flatMap(([canonical, [event]]) => [
      { dialect: "mcp-aql", code: canonical, name: canonical },
      { dialect: "jsonrpc", code: "-32602", name: "INVALID_PARAMS" },
    ].slice(0, canonical.startsWith("VALIDATION") ? 2 : 1).map((each) => ({
      ...each, canonical, category: event.category, severity: "error", retryable: event.retryable, recovery: event.recovery, http_status: 400,
      description: `A server sends it when ${canonical.toLowerCase().replaceAll("_", " ")} is what happened.`, required_details: null, origin: "specification", runbook: event.category.toLowerCase(),
    })));
    const seen = this.top(this.filtered(new URLSearchParams(), range, "error"), (event) => event.canonical, 500).map(([canonical, rows]) => ({ canonical, category: rows[0].category, errors: rows.length }));
    return { range: range.resolved, codes, seen, categories: [] };
  }

  events(params) {
    const range = this.range(params);
    const rows = this.filtered(params, range);
    const limit = Number(params.get("limit") ?? 100);
    const start = Number(params.get("cursor") ?? 0);
    const page = [...rows].reverse().slice(start, start + limit);
    const facets = { service: this.facet(rows, "service"), operation: this.facet(rows, "operation"), code: this.facet(rows, "canonical"), client: this.facet(rows, "client") };
    return {
      range: range.resolved, total: rows.length, hidden: rows.filter((event) => event.hidden).length, time: range.time, by_category: this.byCategory(rows, range),
      ...(start === 0 ? { facets } : {}), events: page.map(({ at, details, attributes, ...event }) => event), next: start + limit < rows.length ? String(start + limit) : null,
    };
  }

  event(id) {
    const found = this.world.events.find((event) => event.event_id === id);
    if (!found) return null;
    const { at, ...event } = found;
    const related = this.world.events.filter((each) => each.session_id === event.session_id && Math.abs(each.at - at) < 3600e3 && each !== found).slice(0, 50);
    return { event, meaning: this.meaning(event.canonical), related };
  }

  schema() {
    const columns = Object.keys(this.world.events[0]).filter((name) => name !== "at").map((name) => ({ name, type: "text", about: `What ${name} holds.` }));
    return {
      tables: [{ name: "events", about: "Every error, warning and audit event", columns }, { name: "errors", about: "Every failure", columns }],
      functions: [{ name: "time_bucket", about: "The start of the step that a time falls into" }],
      cookbook: [
        { section: "What is going wrong", title: "Which codes rose this week?", about: "By canonical code.", sql: "SELECT canonical, count(*) AS errors\nFROM errors\nGROUP BY canonical\nORDER BY errors DESC" },
        { section: "What is going wrong", title: "How do the categories develop?", about: "In steps.", sql: "SELECT time_bucket('1 hour', time) AS since, category, count(*) AS errors\nFROM errors\nGROUP BY since, category\nORDER BY since" },
      ],
      formats: ["application/json", "text/csv", "application/vnd.apache.arrow.stream"],
    };
  }

  sql(query) {
    if (!/^\s*(select|with|explain|show|describe|values)/i.test(query)) {
      return { status: 400, body: { error: { code: "syntax", message: "Expected a statement that reads, found something else", remedy: "begin with SELECT", position: { line: 1, column: 1 } } } };
    }
    const range = this.range(new URLSearchParams({ from: "-24h", buckets: "30" }));
    const errors = this.filtered(new URLSearchParams(), range, "error");
    const columns = [{ name: "since", type: "timestamp with time zone" }, { name: "category", type: "text" }, { name: "errors", type: "bigint" }];
    const rows = Object.entries(this.byCategory(errors, range)).flatMap(([category, values]) =>
      values.map((number, place) => ({ since: new Date(range.time[place] * 1000).toISOString(), category, errors: number })));
    return { status: 200, body: { columns, rows, row_count: rows.length, elapsed_ms: 12.4, truncated: false } };
  }

  get(path, params) {
    const [first, second] = path.split("/").map(decodeURIComponent);
    if (first === "groups" && second) return this.group(second, params);
    if (first === "events" && second) return this.event(second);
    const known = ["names", "overview", "groups", "services", "quotas", "trust", "codes", "events", "schema"];
    return known.includes(first) ? this[first](params) : null;
  }
}
