/**
 * The contract between the page and the server: the parameters and the response of each endpoint under `api/v1/`.
 *
 * Everything is derived from the tables and views of docs/sql.md. What holds for all endpoints:
 *
 * - Times in rows are RFC 3339 texts in UTC, as SQL over HTTP gives them. Times in `time` arrays are whole seconds since
 *   1970, as charts want them: `time[i]` is the start of a bucket, and every array beside it has the same length.
 * - `from` and `to` are RFC 3339, or relative to now: `now`, `-30m`, `-24h`, `-7d` (s, m, h, d, w). Without them: the last
 *   24 hours. A row belongs to the range when `from <= time < to`; a minute of traffic when it begins in it, `from` rounded
 *   down to the minute.
 * - Buckets are whole steps since 1970. The server takes the smallest step of 1m, 2m, 5m, 10m, 15m, 30m, 1h, 2h, 3h, 6h,
 *   12h, 1d, 2d, 7d that needs at most `buckets` of them (120 by default), and says which in `range.step_s`.
 *   Buckets without rows are there, with 0 (or null where a value cannot be 0). The first bucket may begin before `from`:
 *   it holds what belongs to the range only.
 * - Failures are the rows of the view `errors`, counted by `sum(coalesce(represents, 1))`; calls are the rows of the view
 *   `calls`, where each counts once. So every number equals the SQL that its documentation names.
 * - A filter that is repeated means any of its values; different filters all hold. An empty value (`service=`) means rows
 *   that have none. An unknown parameter is an error 400 that names the known ones.
 * - Errors are responses of the form `ApiError` with a status: 400 for a bad request, 401 when a token is needed, 403 for a scope or
 *   CSRF token that is missing, 404 for what does not exist, 422 for a query over a limit, 503 when busy.
 * - Every text that a sender chose arrives as it is stored; the page shows it as text only.
 * - Columns that a server does not have (yet) may be absent or null; the page copes.
 */

// ---------------------------------------------------------------------------------------------------------------- common

/** The ten categories, as SQL spells them. */
export type Category =
  | "VALIDATION" | "NOT_FOUND" | "PERMISSION" | "CONFLICT" | "RATE_LIMIT"
  | "TOKEN" | "SCHEMA" | "PROTOCOL" | "INTERNAL" | "UNKNOWN";

/** Whose fault a failure is: the column `fault` of `events`. */
export type Fault = "caller" | "server" | "upstream" | "policy" | "user" | "quota" | "transport" | "probe";

/** An RFC 3339 time in UTC. */
export type Instant = string;

/** Parameters that every endpoint with a time range takes. */
export interface RangeParams {
  from?: string;
  to?: string;
  /** The most buckets of a time series; 120 by default, at most 1000. */
  buckets?: number;
}

/** Filters over columns of `events`; each may be repeated. */
export interface EventFilters {
  kind?: string[];
  service?: string[];
  environment?: string[];
  category?: string[];
  /** The canonical code. */
  code?: string[];
  /** The code as it was sent. */
  native_code?: string[];
  dialect?: string[];
  severity?: string[];
  fault?: string[];
  recovery?: string[];
  operation?: string[];
  client?: string[];
  /** `service_version`. */
  version?: string[];
  fingerprint?: string[];
  trace_id?: string[];
  session_id?: string[];
  request_id?: string[];
  token_hash?: string[];
  quota_metric?: string[];
  /** One of the words in `findings`. */
  finding?: string[];
  required_trust?: string[];
  actual_trust?: string[];
  danger_level?: string[];
  /** `true`: hidden failures only; `false`: the others only. */
  hidden?: string;
  /** `true`: rows of `trust_denials` only. */
  denied?: string;
  /** A part of the message, in any case. */
  q?: string;
}

/** The range of a response, resolved. */
export interface ResolvedRange {
  from: Instant;
  to: Instant;
  /** The width of a bucket in seconds. */
  step_s: number;
}

/** The body of every error; SQL errors have a position. */
export interface ApiError {
  error: {
    code: string;
    message: string;
    remedy?: string | null;
    position?: { line: number; column: number } | null;
  };
}

// --------------------------------------------------------------------------------------------------------------- session

/**
 * `GET api/v1/session`: who is signed in. Needs no token, and is never 401.
 * `POST api/v1/session` with `{"token": "..."}`: signs in (sets an HttpOnly, SameSite=Strict cookie), responds with a Session; 401
 * when the token is unknown. `DELETE api/v1/session`: signs out, 204.
 * With a cookie, every POST and DELETE must carry `X-CSRF-Token: <csrf>`, or it is 403.
 */
export interface Session {
  /** Whether tokens are configured; without, everybody on this machine is authorized. */
  required: boolean;
  signed_in: boolean;
  /** The name of the token. */
  name: string | null;
  scopes: string[];
  csrf: string | null;
  /** The server's version. */
  version: string;
}

// ----------------------------------------------------------------------------------------------------------------- names

/** `GET api/v1/names?from&to`: what filters can choose from; the busiest first, at most 500 each. */
export interface Names {
  services: string[];
  environments: string[];
}

// -------------------------------------------------------------------------------------------------------------- overview

/** `GET api/v1/overview`: RangeParams, `service`, `environment`. */
export interface OverviewParams extends RangeParams {
  service?: string[];
  environment?: string[];
}

export interface Overview {
  range: ResolvedRange;
  totals: Totals;
  /** The same numbers for the time of equal length before `from`. */
  previous: Totals;
  series: OverviewSeries;
  /** Failures by fault, the largest first; null when there is no such column. */
  faults: { fault: Fault | null; errors: number }[] | null;
  /** At most 10 canonical codes, the most frequent first. `previous` is the count of the time before. */
  codes: { canonical: string; category: Category; errors: number; hidden: number; previous: number }[];
  /** At most 10 services, those with the most failures (events) first. Calls are as in `error_rates`. */
  services: {
    service: string | null;
    errors: number;
    hidden: number;
    calls: number;
    failed_calls: number;
    hidden_calls: number;
  }[];
  /** At most 5 rows of `retry_loops` in the range, those with the most attempts first. */
  retry_loops: RetryLoop[];
  /** At most 5 quotas of `quota_state` that are not reset or stale, the fullest first. */
  quotas: QuotaRow[];
  /** At most 5 groups that were first seen in the range, the largest first. */
  new_groups: { fingerprint: string; canonical: string; category: Category; service: string | null; operation: string | null;
    template: string | null; errors: number; first_seen: Instant }[];
  /**
   * Services with the finding `reply_not_captured` in the range: no reply was captured for a quarter of their calls or more, so
   * that hidden failures are not seen. At most 100, those of which nothing is captured first; `calls` were not looked into.
   */
  not_captured: { service: string; calls: number; capture: "partial" | "not_captured" }[];
  ingest: Ingest;
}

export interface Totals {
  /** Failures: `SELECT sum(coalesce(represents, 1)) FROM errors WHERE <range and filters>`. */
  errors: number;
  /** Those of them that are hidden. */
  hidden: number;
  /** `sum(calls) FROM calls`, over whole minutes; the sums of `failures` and `hidden_failures` beside it, for rates. */
  calls: number;
  /** Calls that failed, hidden or not. Their events are `errors`, which are counted to the second. */
  failed_calls: number;
  hidden_calls: number;
  /** Distinct fingerprints of the failures. */
  groups: number;
}

export interface OverviewSeries {
  time: number[];
  /** Failures (events) by category; categories without any may be left out. */
  by_category: Partial<Record<Category, number[]>>;
  /** Of the view `calls`: `failed_calls` includes `hidden_calls`. */
  calls: number[];
  failed_calls: number[];
  hidden_calls: number[];
  /** Failures (events); `errors` includes `hidden`. */
  errors: number[];
  hidden: number[];
}

/** A row of the view `retry_loops`. */
export interface RetryLoop {
  time: Instant;
  service: string | null;
  client: string;
  operation: string | null;
  canonical: string;
  category: Category;
  fingerprint: string;
  attempts: number;
  attempts_per_minute: number | null;
  retryable: boolean | null;
  recovery: string | null;
  last_seen: Instant;
}

/** How the server itself is: counters are since it was started. */
export interface Ingest {
  ready: boolean;
  /** What is wrong and what to do, when it is not ready or something fails. */
  message: string | null;
  started_at: Instant | null;
  /** When the newest event was taken in. */
  last_event_at: Instant | null;
  /** Events that were taken in, in all and in the last minute. */
  events: number;
  events_last_minute: number | null;
  /** Records in which no envelope was recognised, and records that were rejected. */
  unrecognized: number;
  rejected: number;
  /** Requests that were rejected, by reason. */
  rejected_requests: Record<string, number>;
  wal_bytes: number;
  buffered_events: number;
  /** In the tables. */
  stored_events: number | null;
  stored_bytes: number | null;
}

// ---------------------------------------------------------------------------------------------------------------- groups

/**
 * `GET api/v1/groups`: RangeParams, EventFilters (over the errors that are counted), `q` also looks into templates,
 * `state`, `sort`, `limit` (50; at most 500), `offset`.
 */
export interface GroupsParams extends RangeParams, EventFilters {
  state?: GroupState[];
  /** Descending; `errors` by default. */
  sort?: "errors" | "last_seen" | "first_seen" | "clients";
  limit?: number;
  offset?: number;
}

/**
 * `new`: first seen, over all of history, in the range. `regressed`: seen before the range, then silent for at least three
 * days up to its first error in the range. Otherwise `ongoing`.
 */
export type GroupState = "new" | "regressed" | "ongoing";

export interface Groups {
  range: ResolvedRange;
  /** Groups and failures that match, before `limit`. */
  total_groups: number;
  total_errors: number;
  /** How many of the groups are in each state, whatever `state` is. */
  states: Record<GroupState, number>;
  time: number[];
  groups: Group[];
}

export interface Group {
  fingerprint: string;
  canonical: string;
  category: Category;
  fault?: Fault | null;
  service: string | null;
  operation: string | null;
  template: string | null;
  /** In the range. */
  errors: number;
  hidden: number;
  clients: number;
  /** Over all of history. */
  first_seen: Instant;
  last_seen: Instant;
  /** The last error before the range; null when there is none. */
  previous_seen: Instant | null;
  state: GroupState;
  newest_message: string | null;
  newest_event_id: string;
  /** Errors for each of `time`. */
  trend: number[];
}

/** `GET api/v1/groups/{fingerprint}`: RangeParams, `environment`. 404 when no event of all history has this fingerprint. */
export interface GroupPage {
  range: ResolvedRange;
  /** `errors` may be 0 when there are none in the range; `trend` is with `time`. */
  group: Group;
  /** Over all of history. */
  total_errors: number;
  time: number[];
  hidden_trend: number[];
  /** What the registry says: the entry of the newest event's dialect and code, else of the canonical code; else null. */
  meaning: Meaning | null;
  /** At most 10 different messages in the range, the newest first. */
  messages: { message: string | null; errors: number; last_seen: Instant; event_id: string; hidden: boolean }[];
  /** For each of these columns the 10 most frequent values in the range. */
  facets: Record<
    "operation" | "client" | "service_version" | "environment" | "native_code" | "session_id" | "trace_id" | "finding" | "source",
    Facet[]
  >;
  /** At most 5 rows of `retry_loops` with this fingerprint in the range, the newest first. */
  retry_loops: RetryLoop[];
  /** A statement that gives these events, ready for the editor. */
  sql: string;
}

export interface Facet {
  value: string | null;
  errors: number;
  last_seen: Instant;
}

/** A row of `codes`, or the meaning of its category. */
export interface Meaning {
  description: string;
  severity: string;
  retryable: boolean | null;
  recovery: string;
  http_status: number | null;
  /** The heading in the runbook, for `/runbook#heading`. */
  runbook: string | null;
}

// -------------------------------------------------------------------------------------------------------------- services

/** `GET api/v1/services`: RangeParams, `service`, `environment`. Calls and durations are of the view `calls`. */
export interface ServicesParams extends RangeParams {
  service?: string[];
  environment?: string[];
}

export interface Services {
  range: ResolvedRange;
  time: number[];
  /** Those with calls or events in the range, the busiest first. */
  services: ServiceRow[];
  /** By operation, the busiest first, at most 200; null unless exactly one `service` is given. */
  operations: OperationRow[] | null;
}

export interface CallStats {
  calls: number;
  /** Hidden or not. */
  failed_calls: number;
  hidden_calls: number;
  /** Failures (events), and how many of them are hidden. */
  errors: number;
  hidden: number;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
}

export interface OperationRow extends CallStats {
  operation: string | null;
}

export interface ServiceRow extends CallStats {
  service: string | null;
  groups: number;
  dialects: string[];
  versions: string[];
  environments: string[];
  last_seen: Instant | null;
  /** Whether replies can be looked into; `unknown` when the server cannot tell. */
  capture: "captured" | "partial" | "not_captured" | "unknown";
  /** What could be better about its errors, in the range, as in `conformance`; the largest share first. */
  findings: { finding: string; dialect: string; errors: number; share: number; example: string | null;
    example_event_id: string | null }[];
  /** For each of `time`. */
  trend: { calls: number[]; failed_calls: number[]; hidden_calls: number[]; errors: number[]; hidden: number[] };
}

// ---------------------------------------------------------------------------------------------------------------- quotas

/** `GET api/v1/quotas`: RangeParams (for the trend), `service`, `client`, `state`. */
export interface QuotasParams extends RangeParams {
  service?: string[];
  client?: string[];
  state?: string[];
}

export interface Quotas {
  range: ResolvedRange;
  time: number[];
  /** At most 500: those nearest to their end first, then the fullest; `reset` and `stale` last. */
  quotas: (QuotaRow & {
    /** The largest `quota_current` that was seen in each bucket; null where nothing was reported. */
    trend: (number | null)[];
  })[];
}

/** A row of the view `quota_state`. */
export interface QuotaRow {
  service: string | null;
  client: string | null;
  quota_metric: string | null;
  /** warning, pause, exhausted, exceeded, reset or stale. */
  state: string;
  quota_level: string | null;
  quota_current: number | null;
  quota_limit: number | null;
  usage: number | null;
  growth_per_hour: number | null;
  projected_exhaustion: Instant | null;
  resets_at: Instant | null;
  retry_after_s: number | null;
  observed_at: Instant;
  samples: number;
}

// ----------------------------------------------------------------------------------------------------------------- trust

/** `GET api/v1/trust`: RangeParams, `service`, `environment`, `client`, `operation`. */
export interface TrustParams extends RangeParams {
  service?: string[];
  environment?: string[];
  client?: string[];
  operation?: string[];
}

export interface Trust {
  range: ResolvedRange;
  series: {
    time: number[];
    /** Rows of `trust_denials`, counted by `represents`, for want of trust and because of danger. */
    by_code: Record<string, number[]>;
  };
  total_denials: number;
  /** At most 100, the most frequent first. */
  denials: {
    service: string | null;
    operation: string | null;
    canonical: string;
    required_trust: string | null;
    actual_trust: string | null;
    trust_gap: number | null;
    danger_level: string | null;
    denials: number;
    clients: number;
    last_seen: Instant;
    newest_event_id: string;
  }[];
  /** Tokens of `confirmations` whose `last_seen` is in the range. */
  confirmations: {
    /** How many have a `required_at`, a `granted_at`, a `used_at`. */
    required: number;
    granted: number;
    used: number;
    /** How many there are of each state. */
    states: Record<string, number>;
    median_seconds_to_use: number | null;
    /** At most 100: replayed and invalid ones first, then the newest. */
    tokens: Confirmation[];
  };
}

/** A row of the view `confirmations`. */
export interface Confirmation {
  token_hash: string;
  service: string | null;
  operation: string | null;
  client: string | null;
  danger_level: string | null;
  state: string;
  required_at: Instant | null;
  granted_at: Instant | null;
  used_at: Instant | null;
  replayed_at: Instant | null;
  attempts: number;
  refusals: number;
  seconds_to_use: number | null;
  last_seen: Instant;
}

// ----------------------------------------------------------------------------------------------------------------- codes

/** `GET api/v1/codes`: RangeParams, for `seen`. */
export interface Codes {
  range: ResolvedRange;
  /** All rows of the table `codes`. */
  codes: Code[];
  /** Failures in the range by canonical code, also those that no registry knows. */
  seen: { canonical: string; category: Category; errors: number }[];
  categories: CategoryMeaning[];
}

/** What holds for the codes of a category unless their entry says otherwise. */
export interface CategoryMeaning {
  category: Category;
  description: string;
  severity: string;
  retryable: boolean | null;
  recovery: string;
  runbook: string | null;
}

export interface Code extends Meaning {
  dialect: string;
  code: string;
  name: string;
  canonical: string;
  category: Category;
  required_details: string[] | null;
  origin: string;
}

// ---------------------------------------------------------------------------------------------------------------- events

/** `GET api/v1/events`: RangeParams, EventFilters, `limit` (100; at most 1000), `cursor` (`next` of the response before). */
export interface EventsParams extends RangeParams, EventFilters {
  limit?: number;
  cursor?: string;
}

export interface Events {
  range: ResolvedRange;
  /** `sum(coalesce(represents, 1))` of everything that matches; and of the hidden ones. */
  total: number;
  hidden: number;
  time: number[];
  /** Of everything that matches. */
  by_category: Partial<Record<Category, number[]>>;
  /** The 8 most frequent values, to narrow further. Left out when `cursor` is set. */
  facets?: Record<"service" | "operation" | "code" | "client", Facet[]>;
  /** The newest first: by time, then event_id. */
  events: EventRow[];
  /** Give it as `cursor` for those after; null at the end. */
  next: string | null;
}

/** A row of `events`, without its JSON columns. */
export interface EventRow {
  event_id: string;
  time: Instant;
  kind: string;
  dialect: string;
  code: string | null;
  canonical: string;
  category: Category;
  severity: string;
  retryable: boolean | null;
  recovery: string | null;
  fault?: Fault | null;
  inferred: boolean;
  hidden: boolean;
  message: string | null;
  fingerprint: string;
  service: string | null;
  environment: string | null;
  client: string | null;
  operation: string | null;
  duration_us: number | null;
  trace_id: string | null;
  represents: number | null;
}

/** `GET api/v1/events/{event_id}`; takes `time` as a hint where to look (the event's own). 404 when there is none. */
export interface EventPage {
  /** Every column of `events`; `details` and `attributes` as JSON text or null. */
  event: Record<string, unknown> & EventRow;
  meaning: Meaning | null;
  /** Others of the same trace, else of the same session within an hour: at most 50, in order of time. */
  related: EventRow[];
}

// ------------------------------------------------------------------------------------------------------------------- sql

/** `GET api/v1/schema`: for completion, and the cookbook. */
export interface Schema {
  tables: { name: string; about: string; columns: { name: string; type: string; about: string }[] }[];
  /** Functions of our own. */
  functions: { name: string; about: string }[];
  /** The queries of docs/sql.md: each with its section, heading and the sentences before it. */
  cookbook: { section: string; title: string; about: string; sql: string }[];
  /** Media types that `POST api/v1/sql` can respond with, as `Accept` names them. */
  formats: string[];
}

/** `POST api/v1/sql` with `{"query", "params", "max_rows"}`: exists already. */
export interface SqlResult {
  columns: { name: string; type: string }[];
  rows: Record<string, unknown>[];
  row_count: number;
  elapsed_ms: number;
  truncated: boolean;
}

// ------------------------------------------------------------------------------------------------------------------ tail

/**
 * `GET api/v1/tail`: exists already. Server-sent events: unnamed ones are EventRow (all columns of `events` that are not
 * null), `gap` says that some were missed, `end` says why there are no more. The page follows with `Last-Event-ID`.
 */
export interface TailParams {
  category?: string[];
  service?: string[];
  code?: string[];
  /** A condition in SQL over the columns of `events`. */
  where?: string;
  /** So many of the newest first; at most 1000. */
  recent?: number;
}
