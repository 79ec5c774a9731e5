/** One event, with everything that is known about it. */

import type { EventPage, EventRow } from "../api";
import { EventList } from "../components/event-list";
import { MeaningText } from "../components/meaning";
import { CategoryBadge, CopyButton, FaultBadge, HiddenMark, Panel } from "../components/parts";
import { Loaded, Empty } from "../components/states";
import { fullTime, milliseconds } from "../core/format";
import { useEndpoint, useRoute, useTitle } from "../core/hooks";
import { absolute } from "../core/time";
import { findingName } from "../core/words";

export function EventView({ id }: { id: string }) {
  useTitle("Event");
  const { param } = useRoute();
  const endpoint = useEndpoint<EventPage>(`events/${encodeURIComponent(id)}`, { time: param("time") });
  if (endpoint.failure?.status === 404) {
    return <><h1>Event</h1><Empty title="There is no such event">It may be past its retention.</Empty></>;
  }
  return <Loaded endpoint={endpoint} rows={10}>{(data) => <Body data={data} />}</Loaded>;
}

/** Columns that are filters of the events view, and what the filter is called. */
const LINKED: Record<string, string> = {
  service: "service", environment: "environment", client: "client", operation: "operation", service_version: "version",
  trace_id: "trace_id", session_id: "session_id", request_id: "request_id", token_hash: "token_hash", dialect: "dialect",
  code: "native_code", quota_metric: "quota_metric", severity: "severity", recovery: "recovery", fault: "fault",
};

/** What one wants to know first; columns that are not named here follow. */
const ORDER = ["time", "service", "operation", "client", "environment", "service_version", "kind", "severity", "fault", "dialect", "code",
  "http_status", "retryable", "recovery", "inferred", "findings", "duration_us", "retry_after_s", "resets_at", "request_id", "session_id", "trace_id"];

/** What is shown above, or in a panel of its own. */
const ELSEWHERE = ["message", "details", "attributes", "canonical", "category", "hidden", "fingerprint", "event_id", "date"];

function Body({ data }: { data: EventPage }) {
  const { link } = useRoute();
  const { event, meaning, related } = data;
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const columns = Object.entries(event).filter(([name, value]) =>
    !ELSEWHERE.includes(name) && !(name === "represents" && value === 1) && value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0))
    .sort(([a], [b]) => place(a) - place(b));
  return (
    <>
      <p class="crumbs"><a href={link(["events"])}>Events</a> · <a href={link(["groups", event.fingerprint])}>its group</a></p>
      <h1 class="message">{event.message ?? event.canonical}</h1>
      <p class="tags">
        {event.hidden && <HiddenMark />}
        <CategoryBadge category={event.category} /> <a class="mono" href={link(["codes", event.canonical])}>{event.canonical}</a>
        <FaultBadge fault={event.fault} />
        <time dateTime={event.time}>{fullTime(event.time, true)}</time>
      </p>
      {event.hidden && <p class="banner banner-hidden">This failure travelled in a reply that its protocol calls a success: other dashboards count it as a success.</p>}
      <div class="known">
        <Panel title="Fields">
          <dl class="facts facts-wide">
            {columns.map(([name, value]) => (
              <div key={name}>
                <dt class="mono">{name}</dt>
                <dd><Value name={name} value={value} event={event} /></dd>
              </div>
            ))}
          </dl>
        </Panel>
        <Panel title="What to do"><MeaningText meaning={meaning} /></Panel>
      </div>
      <div class="grid">
        <Json title="Details" text={event["details"]} />
        <Json title="Attributes" text={event["attributes"]} />
        {related.length > 0 && (
          <Panel title={related.every((each) => each.trace_id !== null && each.trace_id === event.trace_id) ? "In the same trace" : "In the same session"} wide>
            <EventList events={related} label="Related events" />
          </Panel>
        )}
      </div>
      <p class="muted">Event <code>{event.event_id}</code> <CopyButton text={event.event_id} label="Copy id" /></p>
    </>
  );
}

/** Ids lead to what happened around the event, other values to the chosen time. */
const IDS = ["trace_id", "session_id", "request_id", "token_hash"];

function around(time: string): { from: string; to: string } {
  return absolute(Date.parse(time) - 3600e3, Date.parse(time) + 3600e3);
}

function Value({ name, value, event }: { name: string; value: unknown; event: EventRow }) {
  const { link } = useRoute();
  if (name === "findings" && Array.isArray(value)) return <>{value.map((each) => findingName(String(each))).join("; ")}</>;
  if (name === "duration_us" && typeof value === "number") return <>{milliseconds(value / 1000)}</>;
  if (["time", "ingested_at", "resets_at"].includes(name) && typeof value === "string") return <time dateTime={value}>{fullTime(value, true)}</time>;
  const filter = LINKED[name];
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return filter === undefined ? <>{text}</> : <a href={link(["events"], { [filter]: text, ...(IDS.includes(name) ? { ...around(event.time), service: null } : {}) })}>{text}</a>;
}

/** JSON as it is, with its white space put right. */
function Json({ title, text }: { title: string; text: unknown }) {
  if (typeof text !== "string" || text === "" || text === "{}") return null;
  return (
    <Panel title={title} wide actions={<CopyButton text={text} label="Copy" />}>
      <pre class="code" tabIndex={0} aria-label={title}>{pretty(text)}</pre>
    </Panel>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
