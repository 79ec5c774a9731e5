/** Requests to the server the page came from, and to no other. */

import type { ApiError, Session } from "../api";
import type { Query } from "./url";
import { searchParams } from "./url";

/** Where the API is, relative to the page: a proxy may have put both under a path of its own. */
const BASE = "api/v1/";

/** Why a request failed. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly remedy: string | null = null,
    readonly position: { line: number; column: number } | null = null,
  ) {
    super(message);
  }
}

let csrf: string | null = null;
let onSignedOut: () => void = () => undefined;

/** What to do when the server wants a token. */
export function whenSignedOut(then: () => void): void {
  onSignedOut = then;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const params = searchParams(query).toString();
  const response = await request(`${path}${params === "" ? "" : `?${params}`}`, { signal: signal ?? null });
  return (await json(response)) as T;
}

export async function postJson(path: string, body: unknown, accept: string, signal?: AbortSignal): Promise<Response> {
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: accept },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
}

/** Any request; every response that is not a success is thrown as a `Failure`. */
export async function request(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (!headers.has("Accept")) headers.set("Accept", "application/json");
  if (csrf !== null && init.method !== undefined && init.method !== "GET") headers.set("X-CSRF-Token", csrf);
  let response: Response;
  try {
    response = await fetch(BASE + path, { ...init, headers, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure(0, "unreachable", "The server does not respond.", "Check that faultline is running; the page tries again.");
  }
  if (response.ok) return response;
  const failure = await failureOf(response);
  if (failure.status === 401 && path !== "session") onSignedOut();
  throw failure;
}

async function failureOf(response: Response): Promise<Failure> {
  const body = (await response.json().catch(() => null)) as ApiError | null;
  const error = body?.error;
  if (typeof error?.message !== "string") {
    return new Failure(response.status, "http", `The server responded with status ${response.status}.`);
  }
  return new Failure(response.status, error.code, error.message, error.remedy ?? null, error.position ?? null);
}

async function json(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure(response.status, "not_json", "The server's response is not JSON.");
  }
}

export async function session(): Promise<Session> {
  return remembered(await get<Session>("session"));
}

export async function signIn(token: string): Promise<Session> {
  return remembered((await (await postJson("session", { token }, "application/json")).json()) as Session);
}

export async function signOut(): Promise<void> {
  await request("session", { method: "DELETE" });
  csrf = null;
}

function remembered(session: Session): Session {
  csrf = session.csrf;
  return session;
}
