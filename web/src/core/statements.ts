/** Statements behind numbers that no filter of the events view gives. Pure. */

import type { Confirmation, RetryLoop } from "../api";

/** A text as SQL writes it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The condition that a column has any of these values; an empty one stands for rows without a value. Null for no values. */
export function anyOf(column: string, values: readonly string[]): string | null {
  if (values.length === 0) return null;
  const named = values.filter((value) => value !== "").map(quoted);
  const conditions = [
    named.length > 0 ? `${column} IN (${named.join(", ")})` : null,
    named.length < values.length ? `${column} IS NULL` : null,
  ].filter((each) => each !== null);
  return conditions.length === 1 ? (conditions[0] ?? null) : `(${conditions.join(" OR ")})`;
}

/** The attempts of a loop, which is one client's, or else one session's. */
export function loopAttempts(loop: RetryLoop): string {
  const end = new Date(Date.parse(loop.time) + 600e3).toISOString();
  return `SELECT time, operation, message, request_id, event_id, represents\nFROM errors\nWHERE fingerprint = ${quoted(loop.fingerprint)}\n`
    + `  AND coalesce(client, session_id) = ${quoted(loop.client)}\n`
    + `  AND time >= ${quoted(loop.time)} AND time < ${quoted(end)}\nORDER BY time`;
}

/** The confirmations of a range with a condition, as the trust view counts them. */
export function confirmations(range: { from: string; to: string }, filters: Record<string, readonly string[]>, condition: string): string {
  const conditions = [
    `last_seen >= ${quoted(range.from)} AND last_seen < ${quoted(range.to)}`,
    ...Object.entries(filters).map(([column, values]) => anyOf(column, values)),
    condition,
  ].filter((each) => each !== null);
  return `SELECT *\nFROM confirmations\nWHERE ${conditions.join("\n  AND ")}\nORDER BY last_seen DESC`;
}

/** The attempts to use a token. */
export function tokenAttempts(token: Confirmation): string {
  return `SELECT time, kind, canonical, message, client, event_id\nFROM events\nWHERE token_hash = ${quoted(token.token_hash)}\n`
    + "  AND (canonical = 'TOKEN_VALIDATED' OR (kind = 'error' AND category = 'TOKEN'))\nORDER BY time";
}

/** The clients that a group of failures has met in a range. */
export function groupClients(fingerprint: string, range: { from: string; to: string }, environments: readonly string[]): string {
  const conditions = [
    `fingerprint = ${quoted(fingerprint)}`,
    `time >= ${quoted(range.from)} AND time < ${quoted(range.to)}`,
    anyOf("environment", environments),
    "client IS NOT NULL",
  ].filter((each) => each !== null);
  return `SELECT client, sum(coalesce(represents, 1)) AS failures, max(time) AS last_seen\nFROM errors\nWHERE ${conditions.join("\n  AND ")}\n`
    + "GROUP BY client\nORDER BY failures DESC";
}
