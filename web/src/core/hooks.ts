/** Hooks for the route, the clock and the server's responses. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { Failure, get } from "./client";
import type { Query, Route } from "./url";
import { changed, linkFrom, parseRoute, rangeOf, searchParams } from "./url";
import type { Range } from "./time";
import { isLive } from "./time";

/** What every view can look at. */
export interface App {
  route: Route;
  /** Grows whenever data is to be fetched anew. */
  tick: number;
  refresh: () => void;
  theme: string;
}

export const AppContext = createContext<App>({ route: parseRoute(""), tick: 0, refresh: () => undefined, theme: "auto" });

export function useApp(): App {
  return useContext(AppContext);
}

/** The address, and what leads away from it. */
export function useRoute() {
  const { route } = useApp();
  return {
    route,
    range: rangeOf(route, Date.now()),
    param: (name: string) => route.params.get(name),
    all: (name: string) => route.params.getAll(name),
    link: (path: readonly string[], query: Query = {}) => linkFrom(route, path, query),
    /** The same view with other parameters. */
    here: (query: Query) => changed(route, query),
  };
}

/** Goes somewhere; `replace` for what is typed, so that Back does not go letter by letter. */
export function navigate(href: string, replace = false): void {
  if (href === location.hash) return;
  if (replace) {
    history.replaceState(null, "", href);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href;
  }
}

export function useHash(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = () => setHash(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return parseRoute(hash);
}

/** Views that time ranges say nothing about. */
export const TIMELESS: readonly string[] = ["sql", "live"];

/** The seconds between two fetches; 0 for never. */
export function refreshSeconds(route: Route, range: Range): number {
  const asked = route.params.get("refresh");
  if (asked === "off" || !isLive(range) || TIMELESS.includes(route.path[0] ?? "")) return 0;
  const seconds = Number(asked);
  return asked !== null && Number.isInteger(seconds) && seconds >= 5 && seconds <= 3600 ? seconds : 30;
}

/** Counts up every so many seconds while somebody is looking, and when `refresh` is called. */
export function useTicks(seconds: number): [number, () => void] {
  const [tick, setTick] = useState(0);
  const refresh = useCallback(() => setTick((it) => it + 1), []);
  useEffect(() => {
    if (seconds === 0) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") refresh();
    }, seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds, refresh]);
  return [tick, refresh];
}

/** The state of a request that is repeated while the view is open. */
export interface Endpoint<T> {
  data: T | null;
  failure: Failure | null;
  /** A request is running; `data` may be of the one before. */
  loading: boolean;
}

/** Requests an endpoint. The earlier response stays until the next one arrives; another path begins without one. */
export function useEndpoint<T>(path: string | null, query: Query): Endpoint<T> {
  const { tick } = useApp();
  const [state, setState] = useState<Endpoint<T> & { path: string | null }>({
    data: null, failure: null, loading: true, path: null,
  });
  const key = `${path ?? ""}?${searchParams(query).toString()}`;
  const latest = useRef(query);
  latest.current = query;
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => {
    running.current?.abort();
    running.current = null;
  }, [key]);
  // A refresh does not interrupt a request: a server that takes longer than the interval could never respond.
  useEffect(() => {
    if (path === null || running.current !== null) return;
    const abort = new AbortController();
    running.current = abort;
    setState((it) => (it.path === path ? { ...it, loading: true } : { data: null, failure: null, loading: true, path }));
    get<T>(path, latest.current, abort.signal).then(
      (data) => setState({ data, failure: null, loading: false, path }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const failure = error instanceof Failure ? error : new Failure(0, "page", String(error));
        setState((it) => ({ ...it, failure, loading: false, path }));
      },
    ).finally(() => {
      if (running.current === abort) running.current = null;
    });
  }, [key, tick]);
  return state.path === path || path === null ? state : { data: null, failure: null, loading: true };
}

/** The current time, anew every so many seconds: for what counts down. */
export function useNow(seconds: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} – Faultline`;
  }, [title]);
}
