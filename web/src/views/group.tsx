/** One group: trend, messages, clients, versions, traces, and what to do. */

import type { Facet, GroupPage } from "../api";
import { Ago, CategoryBadge, CopyButton, FaultBadge, HiddenMark, Num, Panel, Text } from "../components/parts";
import { MeaningText } from "../components/meaning";
import { TimeChart } from "../components/chart";
import { Loaded, Empty } from "../components/states";
import { count, plural } from "../core/format";
import { useEndpoint, useNow, useRoute, useTitle } from "../core/hooks";
import { filtersOf } from "../core/url";
import { groupClients } from "../core/statements";
import { categoryColor, findingName } from "../core/words";
import { StateMark } from "./groups";
import { Fact } from "./overview-ingest";
import { LoopList } from "./overview-lists";

export function GroupView({ fingerprint }: { fingerprint: string }) {
  useTitle("Group");
  const { route } = useRoute();
  const endpoint = useEndpoint<GroupPage>(`groups/${encodeURIComponent(fingerprint)}`, filtersOf(route, ["from", "to", "environment"]));
  if (endpoint.failure?.status === 404) {
    return <><h1>Group</h1><Empty title="There is no such group">Its events may be past their retention.</Empty></>;
  }
  return <Loaded endpoint={endpoint} rows={12}>{(data) => <Body data={data} />}</Loaded>;
}

function Body({ data }: { data: GroupPage }) {
  const now = useNow(10);
  const { all, link } = useRoute();
  const { group } = data;
  // Without a kind: the group of a warning has a page as well.
  const events = { fingerprint: group.fingerprint, service: null };
  const shown = group.errors - group.hidden;
  const open = group.trend.map((errors, place) => errors - (data.hidden_trend[place] ?? 0));
  return (
    <>
      <p class="crumbs"><a href={link(["groups"])}>Groups</a></p>
      <h1 class="message">{group.template ?? group.canonical}</h1>
      <p class="tags">
        <StateMark state={group.state} />
        <CategoryBadge category={group.category} /> <a class="mono" href={link(["codes", group.canonical])}>{group.canonical}</a>
        <FaultBadge fault={group.fault} />
        <span><Text value={group.service} /> · <Text value={group.operation} /></span>
      </p>
      <div class="grid">
        <Panel title="Trend" wide>
          <TimeChart label="Failures of this group" time={data.time} range={data.range} height={150}
            series={[
              { key: "open", label: "Open", color: categoryColor(group.category), values: open, href: link(["events"], { ...events, hidden: "false" }) },
              { key: "hidden", label: "Hidden", color: "--hidden-fill", values: data.hidden_trend, href: link(["events"], { ...events, hidden: "true" }) },
            ]}
            bucketLink={(from, to) => link(["events"], { ...events, from, to })} />
          <dl class="facts facts-row">
            <Fact name="In this time"><Num value={group.errors} href={link(["events"], events)} label="failures" /></Fact>
            <Fact name="Open"><Num value={shown} href={link(["events"], { ...events, hidden: "false" })} label="open failures" /></Fact>
            <Fact name="Hidden"><Num value={group.hidden} href={link(["events"], { ...events, hidden: "true" })} label="hidden failures" tone="hidden" /></Fact>
            <Fact name="Over all of history"><Num value={data.total_errors} href={link(["events"], { ...events, from: group.first_seen, to: "now" })} label="failures" /></Fact>
            <Fact name="Clients"><Num value={group.clients} label="clients"
              href={link(["sql"], { sql: groupClients(group.fingerprint, data.range, all("environment")) })} /></Fact>
            <Fact name="First seen"><Ago time={group.first_seen} now={now} /></Fact>
            <Fact name="Last seen"><Ago time={group.last_seen} now={now} /></Fact>
          </dl>
        </Panel>
      </div>
      <div class="masonry">
        <Panel title="What to do">
          <MeaningText meaning={data.meaning} />
        </Panel>
        <Panel title="Messages">
          {data.messages.length === 0 ? <Empty title="Nothing in this time" /> : (
            <ul class="list">
              {data.messages.map((message) => (
                <li key={message.event_id}>
                  <p class="list-main">
                    <a class="clip-3" href={link(["events", message.event_id], { time: message.last_seen })}>{message.message ?? "without a message"}</a>
                    <span class="muted">{count(message.errors)} ×</span>
                  </p>
                  <p class="list-note">{message.hidden && <HiddenMark />} <Ago time={message.last_seen} now={now} /></p>
                </li>
              ))}
            </ul>
          )}
        </Panel>
        <FacetPanels data={data} now={now} />
        {data.retry_loops.length > 0 && (
          <Panel title="Retry loops"><LoopList loops={data.retry_loops} now={now} /></Panel>
        )}
      </div>
      <div class="grid">
        <Panel title="The SQL behind it" wide actions={<>
          <CopyButton text={data.sql} label="Copy" /> <a href={link(["sql"], { sql: data.sql })}>Open in the editor</a>
        </>}>
          <pre class="code" tabIndex={0} aria-label="SQL statement">{data.sql}</pre>
        </Panel>
      </div>
    </>
  );
}

const FACETS: readonly [keyof GroupPage["facets"], string, string][] = [
  ["client", "Clients", "client"],
  ["service_version", "Versions", "version"],
  ["operation", "Operations", "operation"],
  ["environment", "Environments", "environment"],
  ["native_code", "Codes as sent", "native_code"],
  ["session_id", "Sessions", "session_id"],
  ["trace_id", "Traces", "trace_id"],
  ["finding", "Findings", "finding"],
];

function FacetPanels({ data, now }: { data: GroupPage; now: number }) {
  return (
    <>
      {FACETS.map(([name, title, filter]) => {
        const values = (data.facets[name] ?? []).filter((facet) => facet.value !== null);
        return values.length === 0 ? null : (
          <Panel key={name} title={title}>
            <FacetList values={values} filter={filter} fingerprint={data.group.fingerprint} now={now} />
          </Panel>
        );
      })}
    </>
  );
}

function FacetList({ values, filter, fingerprint, now }: { values: Facet[]; filter: string; fingerprint: string; now: number }) {
  const { link } = useRoute();
  return (
    <ul class="list list-tight">
      {values.map(({ value, errors, last_seen }) => (
        <li key={value}>
          <p class="list-main">
            <span class={`clip${["session_id", "trace_id", "native_code"].includes(filter) ? " mono" : ""}`} title={value ?? ""}>
              {filter === "finding" ? findingName(value ?? "") : value}
            </span>
            <span>
              <Num value={errors} href={link(["events"], { service: null, fingerprint, [filter]: value })} label={plural(errors, "failure").replace(/^\S+ /, "")} />
              <span class="muted"> · <Ago time={last_seen} now={now} /></span>
            </span>
          </p>
        </li>
      ))}
    </ul>
  );
}
