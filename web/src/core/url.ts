/**
 * The address as the page's only state. Pure.
 *
 * A route stands after the `#`: `#/groups/4f2c?from=-7d&service=orders`. So the server needs to know one path, a proxy may
 * put the page anywhere, and what somebody looks for (a statement, a client's name) is in no server's log.
 */

import type { Range } from "./time";
import { validRange } from "./time";

/** Names and values; a value may be repeated. Values that are empty texts are kept: they mean "has none". */
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export interface Route {
  /** The parts of the path, decoded. */
  path: string[];
  params: URLSearchParams;
}

/** What every view keeps when another is opened. */
export const KEPT = ["from", "to", "refresh", "service", "environment"] as const;

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  return {
    path: path.split("/").filter((part) => part !== "").map(decoded),
    params: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)),
  };
}

/** Bad escapes are shown as they are. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Adds names and values; null and undefined are left out. */
export function searchParams(...queries: Query[]): URLSearchParams {
  const params = new URLSearchParams();
  for (const query of queries) {
    for (const [name, value] of Object.entries(query)) {
      params.delete(name);
      if (value === null || value === undefined) continue;
      if (Array.isArray(value)) for (const each of value) params.append(name, each);
      else params.append(name, String(value));
    }
  }
  return params;
}

export function formatRoute(path: readonly string[], params: URLSearchParams): string {
  const query = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query === "" ? "" : `?${query}`}`;
}

/** The address of another view: the range, the refresh rate and the chosen services go with it, unless `query` says otherwise. */
export function linkFrom(route: Route, path: readonly string[], query: Query = {}): string {
  const kept = new URLSearchParams();
  for (const name of KEPT) {
    if (!(name in query)) for (const value of route.params.getAll(name)) kept.append(name, value);
  }
  for (const [name, value] of searchParams(query)) kept.append(name, value);
  return formatRoute(path, kept);
}

/** The address of the same view with some parameters changed. */
export function changed(route: Route, query: Query): string {
  const params = new URLSearchParams(route.params);
  for (const name of Object.keys(query)) params.delete(name);
  for (const [name, value] of searchParams(query)) params.append(name, value);
  return formatRoute(route.path, params);
}

export function rangeOf(route: Route, now: number): Range {
  return validRange(route.params.get("from") ?? undefined, route.params.get("to") ?? undefined, now);
}

/** All parameters but those that are only for the page. */
export function filtersOf(route: Route, names: readonly string[]): Query {
  const query: Query = {};
  for (const name of names) {
    const values = route.params.getAll(name);
    if (values.length > 0) query[name] = values;
  }
  return query;
}
