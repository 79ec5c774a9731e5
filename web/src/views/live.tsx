/** Events as they come in. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { EventRow, Names } from "../api";
import { CATEGORY_OPTIONS, HIDDEN_OPTIONS, Select } from "../components/filters";
import { EventList } from "../components/event-list";
import { Failed } from "../components/states";
import type { Failure } from "../core/client";
import { plural } from "../core/format";
import { navigate, useEndpoint, useRoute, useTitle } from "../core/hooks";
import { followTail, tailQuery } from "../core/tail";
import type { Query } from "../core/url";

/** Rows that are kept; older ones go. */
const KEPT = 300;
/** The newest that are shown at first. */
const RECENT = 50;

export function LiveView() {
  useTitle("Live");
  const [isPaused, setPaused] = useState(false);
  const query = useTailQuery();
  const { events, state, failure, notice, seen } = useTail(query, isPaused);
  const { data: names } = useEndpoint<Names>("names", { from: "-24h" });
  return (
    <>
      <h1>Live</h1>
      <div class="toolbar">
        <Select name="service" label="Service" any="All services" options={(names?.services ?? []).map((each) => [each, each] as const)} />
        <Select name="category" label="Category" any="All categories" options={CATEGORY_OPTIONS} />
        <Select name="hidden" label="Hidden failures" any="Hidden and open" options={HIDDEN_OPTIONS} />
        <Field name="code" label="Code" placeholder="Code, as RATE_*" />
        <Field name="where" label="Condition in SQL" placeholder="Condition, as duration_us > 1000000" wide />
      </div>
      <p class="summary">
        <span class={`state state-${state === "following" ? "ok" : "warn"}`} role="status">
          {isPaused ? "Paused" : state === "following" ? "Following" : state === "connecting" ? "Connecting" : "Waiting to connect again"}
        </span>
        {" "}{plural(seen, "event")} received
        {" "}<button type="button" onClick={() => setPaused(!isPaused)} aria-pressed={isPaused}>{isPaused ? "Go on" : "Pause"}</button>
      </p>
      {notice !== null && <p class="banner banner-warn" role="status">{notice}</p>}
      {failure !== null && <Failed failure={failure} />}
      {events.length === 0
        ? <div class="empty"><p class="empty-title">Nothing yet</p><p>Events appear here the moment they are stored.</p></div>
        : <EventList events={events} label="Live events, the newest first" />}
    </>
  );
}

function useTailQuery(): Query {
  const { all, param } = useRoute();
  const hidden = param("hidden");
  return tailQuery({ services: all("service"), environments: all("environment"), categories: all("category"), codes: all("code"), hidden, where: param("where") }, RECENT);
}

function useTail(query: Query, isPaused: boolean) {
  const [events, setEvents] = useState<EventRow[]>([]);
  const [seen, setSeen] = useState(0);
  const [notice, setNotice] = useState<string | null>(null);
  const [connection, setConnection] = useState<{ state: string; failure: Failure | null }>({ state: "connecting", failure: null });
  const waiting = useRef<EventRow[]>([]);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const key = JSON.stringify(query);

  useEffect(() => {
    const abort = new AbortController();
    waiting.current = [];
    setEvents([]);
    setSeen(0);
    setNotice(null);
    void followTail(query, {
      onEvent: (event) => waiting.current.push(event),
      onNotice: setNotice,
      onState: (state, failure) => setConnection({ state, failure }),
    }, abort.signal);
    // Many may come at once: they are shown a few times a second, together.
    const timer = setInterval(() => {
      if (paused.current || waiting.current.length === 0) return;
      const arrived = waiting.current.splice(0).reverse();
      setSeen((it) => it + arrived.length);
      setEvents((it) => [...arrived, ...it].slice(0, KEPT));
    }, 250);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [key]);
  // What waits during a pause must not grow without end.
  useEffect(() => {
    const timer = setInterval(() => {
      if (waiting.current.length > 4 * KEPT) waiting.current.splice(0, waiting.current.length - 4 * KEPT);
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  return { events, seen, notice, ...connection };
}

/** A filter that holds when one leaves the field or presses Enter. */
function Field({ name, label, placeholder, wide }: { name: string; label: string; placeholder: string; wide?: boolean }) {
  const { param, here } = useRoute();
  const apply = (value: string) => navigate(here({ [name]: value.trim() === "" ? null : value.trim() }));
  return (
    <form class={wide === true ? "field field-wide" : "field"} onSubmit={(event) => {
      event.preventDefault();
      apply(String(new FormData(event.currentTarget).get(name) ?? ""));
    }}>
      <label class="visually-hidden" for={`field-${name}`}>{label}</label>
      <input id={`field-${name}`} key={param(name)} name={name} defaultValue={param(name) ?? ""} placeholder={placeholder}
        spellcheck={false} autocomplete="off" onBlur={(event) => apply(event.currentTarget.value)} />
    </form>
  );
}
