/** Failures that differ only in their values, as one line each. */

import type { Group, Groups, GroupState } from "../api";
import { CATEGORY_OPTIONS, FilterChips, HIDDEN_OPTIONS, Search, Select } from "../components/filters";
import { Ago, CategoryBadge, FaultBadge, Num, Text } from "../components/parts";
import { Sparkline } from "../components/sparkline";
import { Loaded, Empty } from "../components/states";
import { DataTable } from "../components/table";
import { count, plural } from "../core/format";
import { useEndpoint, useNow, useRoute, useTitle } from "../core/hooks";
import { filtersOf } from "../core/url";
import { categoryColor, EVENT_FILTERS } from "../core/words";

const LIMIT = 50;
const OWN = ["state", "sort", "offset"];
const CHIPS = EVENT_FILTERS.filter((name) => !["service", "environment", "q", "category", "hidden"].includes(name));

const STATES: readonly (readonly [GroupState, string])[] = [
  ["new", "New"], ["regressed", "Regressed"], ["ongoing", "Ongoing"],
];

export function GroupsView() {
  useTitle("Groups");
  const { route } = useRoute();
  const query = { ...filtersOf(route, ["from", "to", ...OWN, ...EVENT_FILTERS]), limit: LIMIT, buckets: 40 };
  const endpoint = useEndpoint<Groups>("groups", query);
  return (
    <>
      <h1>Groups</h1>
      <p class="lead">Failures that differ only in their values are one group: the same cause, counted once.</p>
      <div class="toolbar">
        <Search label="Search messages and templates" placeholder="Search messages" />
        <Select name="category" label="Category" any="All categories" options={CATEGORY_OPTIONS} />
        <Select name="hidden" label="Hidden failures" any="Hidden and open" options={HIDDEN_OPTIONS} />
        <Select name="state" label="State" any="New and known" options={STATES} />
        <Select name="sort" label="Order" any="Most failures first"
          options={[["last_seen", "Newest first"], ["first_seen", "Latest to appear first"], ["clients", "Most clients first"]]} />
      </div>
      <FilterChips names={CHIPS} />
      <Loaded endpoint={endpoint} rows={12}>{(data) => <Body data={data} />}</Loaded>
    </>
  );
}

function Body({ data }: { data: Groups }) {
  const now = useNow(10);
  const { here } = useRoute();
  if (data.groups.length === 0) {
    return <Empty title="No group matches">Choose a longer time, or take filters away.</Empty>;
  }
  const states = STATES.filter(([state]) => state !== "ongoing" && data.states[state] > 0);
  return (
    <>
      <p class="summary" role="status">
        {plural(data.total_groups, "group")} with {plural(data.total_errors, "failure")}
        {states.map(([state, name]) => (
          <span key={state}> · <a href={here({ state, offset: null })}>{count(data.states[state])} {name.toLowerCase()}</a></span>
        ))}
      </p>
      <DataTable label="Groups" columns={[
        { key: "group", title: "Group" },
        { key: "errors", title: "Failures", right: true },
        { key: "trend", title: "Trend", minor: true },
        { key: "clients", title: "Clients", right: true, minor: true },
        { key: "first", title: "First seen", minor: true },
        { key: "last", title: "Last seen", minor: true },
      ]}>
        {data.groups.map((group) => <Row key={group.fingerprint} group={group} now={now} />)}
      </DataTable>
      <Pages total={data.total_groups} />
    </>
  );
}

function Row({ group, now }: { group: Group; now: number }) {
  const { link } = useRoute();
  const events = { kind: "error", fingerprint: group.fingerprint };
  return (
    <tr>
      <td class="cell-main">
        <a class="clip-2" href={link(["groups", group.fingerprint])}>{group.template ?? group.newest_message ?? group.canonical}</a>
        <span class="sub">
          <StateMark state={group.state} />
          <span><Text value={group.service} /> · <Text value={group.operation} /></span>
          <CategoryBadge category={group.category} /> <span class="mono minor">{group.canonical}</span> <span class="minor"><FaultBadge fault={group.fault} /></span>
          <span class="narrow-only">last <Ago time={group.last_seen} now={now} /></span>
        </span>
      </td>
      <td class="right">
        <Num value={group.errors} href={link(["events"], events)} label="failures of this group" />
        {group.hidden > 0 && (
          <span class="sub"><Num value={group.hidden} href={link(["events"], { ...events, hidden: "true" })} label="hidden failures of this group" tone="hidden" /> hidden</span>
        )}
      </td>
      <td class="cell-trend minor"><Sparkline values={group.trend} color={categoryColor(group.category)} /></td>
      <td class="right minor"><a class="num" href={link(["groups", group.fingerprint])} aria-label={`${count(group.clients)} clients`}>{count(group.clients)}</a></td>
      <td class="minor"><Ago time={group.first_seen} now={now} /></td>
      <td class="minor"><Ago time={group.last_seen} now={now} /></td>
    </tr>
  );
}

export function StateMark({ state }: { state: GroupState }) {
  if (state === "ongoing") return null;
  const about = state === "new" ? "Never seen before this time" : "It was silent for three days or more, and is back";
  return <span class={`mark mark-${state}`} title={about}>{state}</span>;
}

function Pages({ total }: { total: number }) {
  const { param, here } = useRoute();
  const offset = Math.max(0, Number(param("offset") ?? 0) || 0);
  if (total <= LIMIT) return null;
  return (
    <nav class="pages" aria-label="Pages">
      {offset > 0 && <a href={here({ offset: offset - LIMIT > 0 ? offset - LIMIT : null })}>‹ Before</a>}
      <span class="muted">{count(offset + 1)} to {count(Math.min(total, offset + LIMIT))} of {count(total)}</span>
      {offset + LIMIT < total && <a href={here({ offset: offset + LIMIT })}>After ›</a>}
    </nav>
  );
}
