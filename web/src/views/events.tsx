/** The events behind every number: filters in the address, the newest first. */

import { useEffect, useState } from "preact/hooks";
import type { EventRow, Events, Facet } from "../api";
import { CATEGORY_OPTIONS, FilterChips, HIDDEN_OPTIONS, Search, Select } from "../components/filters";
import { EventList } from "../components/event-list";
import { TimeChart } from "../components/chart";
import type { Series } from "../components/chart-data";
import { Num, Panel } from "../components/parts";
import { Loaded, Empty, Failed } from "../components/states";
import { Failure, get } from "../core/client";
import { count, plural } from "../core/format";
import { useEndpoint, useRoute, useTitle } from "../core/hooks";
import type { Query } from "../core/url";
import { filtersOf } from "../core/url";
import { CATEGORIES, categoryColor, categoryName, EVENT_FILTERS } from "../core/words";

const PAGE = 100;
const TOOLBAR = ["q", "category", "hidden", "kind"];
const CHIPS = EVENT_FILTERS.filter((name) => !TOOLBAR.includes(name) && name !== "environment");

const KINDS: readonly (readonly [string, string])[] = [["error", "Failures"], ["warning", "Warnings"], ["audit", "Audit events"]];

export function EventsView() {
  useTitle("Events");
  const { route } = useRoute();
  const query = { ...filtersOf(route, ["from", "to", ...EVENT_FILTERS]), limit: PAGE };
  const endpoint = useEndpoint<Events>("events", query);
  return (
    <>
      <h1>Events</h1>
      <div class="toolbar">
        <Search label="Search messages" placeholder="Message contains" />
        <Select name="kind" label="Kind" any="All kinds" options={KINDS} />
        <Select name="category" label="Category" any="All categories" options={CATEGORY_OPTIONS} />
        <Select name="hidden" label="Hidden failures" any="Hidden and open" options={HIDDEN_OPTIONS} />
      </div>
      <FilterChips names={CHIPS} />
      <Loaded endpoint={endpoint} rows={12}>{(data) => <Body data={data} query={query} />}</Loaded>
    </>
  );
}

function Body({ data, query }: { data: Events; query: Query }) {
  const { link, here, route } = useRoute();
  if (data.total === 0 && data.events.length === 0) {
    return <Empty title="No event matches">Choose a longer time, or take filters away.</Empty>;
  }
  const all = Object.fromEntries(EVENT_FILTERS.map((name) => [name, route.params.getAll(name)] as const).filter(([, values]) => values.length > 0));
  const series = CATEGORIES.flatMap((category): Series[] => {
    const values = data.by_category[category];
    return values === undefined ? [] : [{ key: category, label: categoryName(category), color: categoryColor(category), values, href: here({ category }) }];
  });
  return (
    <>
      <p class="summary" role="status">
        {plural(data.total, "event")}{data.hidden > 0 && <>, of which <Num value={data.hidden} tone="hidden" href={here({ hidden: "true" })} label="hidden" /> hidden</>}
        {" · "}<a href={link(["live"], { where: null, ...liveFilters(route.params) })}>follow live</a>
      </p>
      <TimeChart label="Events by category" time={data.time} range={data.range} series={series} height={130}
        bucketLink={(from, to) => link(["events"], { ...all, from, to })} />
      <div class="with-side">
        <div class="with-side-main">
          <Pages key={JSON.stringify(query)} first={data} query={query} />
        </div>
        {data.facets !== undefined && (
          <aside class="side" aria-label="Most frequent values">
            <FacetPanel title="Service" filter="service" values={data.facets.service} />
            <FacetPanel title="Operation" filter="operation" values={data.facets.operation} />
            <FacetPanel title="Code" filter="code" values={data.facets.code} />
            <FacetPanel title="Client" filter="client" values={data.facets.client} />
          </aside>
        )}
      </div>
    </>
  );
}

function liveFilters(params: URLSearchParams): Query {
  return { category: params.getAll("category"), code: params.getAll("code"), hidden: params.get("hidden") };
}

interface Shown {
  /** The response that the first page is of. */
  first: Events;
  older: EventRow[];
  next: string | null;
}

/**
 * The first page comes with the totals; further ones are asked for. Once there are some, newer events wait until they are
 * wanted: a refresh must not take away what somebody is reading.
 */
function Pages({ first, query }: { first: Events; query: Query }) {
  const [shown, setShown] = useState<Shown>({ first, older: [], next: first.next });
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isLoading, setLoading] = useState(false);
  const restart = () => setShown({ first, older: [], next: first.next });
  useEffect(() => {
    if (shown.older.length === 0) restart();
  }, [first]);
  const load = () => {
    setLoading(true);
    const range = { from: shown.first.range.from, to: shown.first.range.to };
    get<Events>("events", { ...query, ...range, cursor: shown.next }).then(
      (page) => {
        setShown((it) => ({ ...it, older: [...it.older, ...page.events], next: page.next }));
        setFailure(null);
      },
      (error: unknown) => setFailure(error instanceof Failure ? error : new Failure(0, "page", String(error))),
    ).finally(() => setLoading(false));
  };
  const isBehind = shown.first !== first && shown.older.length > 0 && shown.first.events[0]?.event_id !== first.events[0]?.event_id;
  return (
    <>
      {isBehind && <p role="status"><button type="button" onClick={restart}>Show newer events</button></p>}
      <EventList events={[...shown.first.events, ...shown.older]} label="Events" />
      {failure !== null && <Failed failure={failure} />}
      {shown.next !== null && <button type="button" class="more-button" disabled={isLoading} onClick={load}>{isLoading ? "Loading" : "Older events"}</button>}
    </>
  );
}

function FacetPanel({ title, filter, values }: { title: string; filter: string; values: Facet[] | undefined }) {
  const { here, all } = useRoute();
  const chosen = all(filter);
  if (values === undefined || values.length === 0) return null;
  return (
    <Panel title={title}>
      <ul class="list list-tight">
        {values.map(({ value, errors }) => (
          <li key={value ?? ""}>
            <a class="facet" href={here({ [filter]: chosen.includes(value ?? "") ? chosen.filter((it) => it !== (value ?? "")) : [value ?? ""] })}
              aria-current={chosen.includes(value ?? "") ? "true" : undefined}>
              <span class="clip" title={value ?? ""}>{value ?? "none"}</span> <span class="num">{count(errors)}</span>
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
