/** Follows the tail of events, and takes it up again where it broke off. */

import type { EventRow } from "../api";
import { Failure, request } from "./client";
import type { Query } from "./url";
import { searchParams } from "./url";
import { SseParser } from "./sse";
import { anyOf } from "./statements";

export interface TailHandlers {
  onEvent: (event: EventRow) => void;
  /** Something the server has to say: that events were missed, or why there are no more. */
  onNotice: (text: string) => void;
  onState: (state: "connecting" | "following" | "waiting", failure: Failure | null) => void;
}

const PAUSE_MS = 2000;

/** The filters of the live view. */
export interface TailFilters {
  services: readonly string[];
  environments: readonly string[];
  categories: readonly string[];
  codes: readonly string[];
  hidden: string | null;
  where: string | null;
}

/**
 * The parameters of the tail. It knows neither environments nor services without a name, so these become conditions: any of
 * the values of a filter, and an empty one for events that have none. Pure.
 */
export function tailQuery(filters: TailFilters, recent: number): Query {
  const isPlain = !filters.services.includes("");
  const conditions = [
    filters.hidden === "true" ? "hidden" : filters.hidden === "false" ? "NOT hidden" : null,
    isPlain ? null : anyOf("service", filters.services),
    anyOf("environment", filters.environments),
    filters.where,
  ];
  const given = conditions.filter((each): each is string => each !== null && each.trim() !== "");
  return {
    service: isPlain ? filters.services : [],
    category: filters.categories,
    code: filters.codes,
    // The line break ends a comment at the end of a condition.
    where: given.length === 0 ? null : given.length === 1 ? given[0] : given.map((each) => `(${each}\n)`).join(" AND "),
    recent,
  };
}

/** Follows until the signal says stop. A mistake in the filters ends it; a broken connection does not. */
export async function followTail(query: Query, handlers: TailHandlers, signal: AbortSignal): Promise<void> {
  let lastId: string | null = null;
  while (!signal.aborted) {
    handlers.onState("connecting", null);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (lastId !== null) headers["Last-Event-ID"] = lastId;
      const response = await request(`tail?${searchParams(query).toString()}`, { headers, signal });
      handlers.onState("following", null);
      lastId = (await read(response, handlers)) ?? lastId;
      handlers.onState("waiting", null);
    } catch (error) {
      if (signal.aborted) return;
      const failure = error instanceof Failure ? error : new Failure(0, "broken", "The connection broke off.");
      handlers.onState("waiting", failure);
      if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) return;
    }
    await pause(PAUSE_MS, signal);
  }
}

async function read(response: Response, handlers: TailHandlers): Promise<string | null> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new SseParser();
  if (reader === undefined) return null;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parser.id;
      for (const message of parser.push(value)) take(message.event, message.data, handlers);
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    return parser.id;
  }
}

function take(event: string, data: string, handlers: TailHandlers): void {
  const parsed: unknown = parse(data);
  if (typeof parsed !== "object" || parsed === null) return;
  if (event === "message") handlers.onEvent(parsed as EventRow);
  else {
    const { message, reason } = parsed as { message?: string; reason?: string };
    handlers.onNotice(message ?? reason ?? event);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function pause(time: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
