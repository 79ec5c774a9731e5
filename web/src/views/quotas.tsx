/** How full every quota is, and whether it lasts until it starts anew. */

import type { QuotaRow, Quotas } from "../api";
import { Gauge, quotaEnd, quotaEvents } from "../components/gauge";
import { Select } from "../components/filters";
import { Ago, Text } from "../components/parts";
import { TimeChart } from "../components/chart";
import { Loaded, Empty } from "../components/states";
import { DataTable, Folded, MoreButton, useFirst } from "../components/table";
import { count, plural } from "../core/format";
import { useEndpoint, useNow, useRoute, useTitle } from "../core/hooks";
import { resolve } from "../core/time";
import { filtersOf } from "../core/url";
import { words } from "../core/words";

const STATES: readonly (readonly [string, string])[] = [
  ["warning", "Warning"], ["pause", "Paused"], ["exhausted", "Exhausted"], ["exceeded", "Exceeded"],
  ["reset", "Reset"], ["stale", "Stale"],
];

export function QuotasView() {
  useTitle("Quotas");
  const { route } = useRoute();
  const query = { ...filtersOf(route, ["from", "to", "service", "client", "state"]), buckets: 60 };
  const endpoint = useEndpoint<Quotas>("quotas", query);
  return (
    <>
      <h1>Quotas</h1>
      <p class="lead">The present state of each quota, by its last report. Charts show the chosen time.</p>
      <div class="toolbar"><Select name="state" label="State" any="All states" options={STATES} /></div>
      <Loaded endpoint={endpoint} rows={8}>{(data) => <Body data={data} />}</Loaded>
    </>
  );
}

type Row = Quotas["quotas"][number];

function Body({ data }: { data: Quotas }) {
  const now = useNow(5);
  if (data.quotas.length === 0) return <Empty title="No quota was reported">Quotas appear as soon as a reply names one.</Empty>;
  const current = data.quotas.filter((quota) => !["reset", "stale"].includes(quota.state));
  const inUse = current.filter(isNamed);
  const unnamed = current.filter((quota) => !isNamed(quota));
  const others = data.quotas.filter((quota) => ["reset", "stale"].includes(quota.state));
  const ending = inUse.filter((quota) => quotaEnd(quota, now).tone === "danger").length;
  return (
    <>
      <p class="summary" role="status">
        {plural(inUse.length, "quota")} in use{inUse.length > 0 && (ending === 0 ? "; at this pace, none is exhausted before it resets" : `, of which ${plural(ending, "is", "are")} exhausted, or will be before the reset`)}
      </p>
      <Cards quotas={inUse} data={data} now={now} />
      {unnamed.length > 0 && <Unnamed quotas={unnamed} now={now} isOpen={inUse.length === 0} />}
      {others.length > 0 && (
        <Folded open={current.length === 0} summary={`${plural(others.length, "quota")} reset since, or not reported for a day`}>
          {() => <Cards quotas={others} data={data} now={now} />}
        </Folded>
      )}
    </>
  );
}

/** Some servers report that a limit is reached, but neither its name nor its size. */
function isNamed(quota: QuotaRow): boolean {
  return quota.quota_metric !== null || quota.quota_limit !== null;
}

function Unnamed({ quotas, now, isOpen }: { quotas: Row[]; now: number; isOpen: boolean }) {
  const { link, range } = useRoute();
  const from = resolve(range, now).from;
  return (
    <Folded open={isOpen} summary={`${plural(quotas.length, "limit")} without a name`}>{() => (
      <DataTable label="Limits without a name" dense columns={[
        { key: "service", title: "Service" }, { key: "client", title: "Client" }, { key: "state", title: "State" }, { key: "last", title: "Last report" },
      ]}>
        {quotas.map((quota) => (
          <tr key={keyOf(quota)}>
            <td><Text value={quota.service} /></td>
            <td><a href={link(["events"], quotaEvents(quota, from))}>{quota.client ?? "none named"}</a></td>
            <td>{quotaEnd(quota, now).text}</td>
            <td><Ago time={quota.observed_at} now={now} /></td>
          </tr>
        ))}
      </DataTable>
    )}</Folded>
  );
}

/** So many at first: each may have a chart. */
const CARDS = 24;

function Cards({ quotas, data, now }: { quotas: Row[]; data: Quotas; now: number }) {
  const [shown, showAll] = useFirst(quotas, CARDS);
  return (
    <>
      <div class="cards">{shown.map((quota) => <Card key={keyOf(quota)} quota={quota} data={data} now={now} />)}</div>
      <MoreButton showAll={showAll} />
    </>
  );
}

function keyOf(quota: QuotaRow): string {
  return `${quota.service} ${quota.client} ${quota.quota_metric}`;
}

function Card({ quota, data, now }: { quota: Row; data: Quotas; now: number }) {
  const { link } = useRoute();
  const { text, tone } = quotaEnd(quota, now);
  const events = quotaEvents(quota, Date.parse(data.range.from));
  const hasTrend = quota.trend.filter((value) => value !== null).length > 1;
  return (
    <article class="card" data-tone={tone}>
      <h2><a href={link(["events"], events)}>{words(quota.quota_metric ?? "quota")}</a></h2>
      <p class="sub"><Text value={quota.service} /> · <Text value={quota.client} /></p>
      <Gauge quota={quota} now={now} />
      <p class={tone === "danger" ? "tone-danger" : ""}>{text}</p>
      <p class="sub">
        {quota.growth_per_hour !== null && quota.growth_per_hour > 0 && <>{count(Math.round(quota.growth_per_hour * 10) / 10)} an hour, by {plural(quota.samples, "sample")} · </>}
        last report <Ago time={quota.observed_at} now={now} />
      </p>
      {hasTrend && (
        <TimeChart label={`Use of ${words(quota.quota_metric ?? "quota")}`} kind="lines" summable={false} legend={false} height={90}
          time={data.time} range={data.range} max={Math.max(quota.quota_limit ?? 0, ...quota.trend.map((value) => value ?? 0)) * 1.05}
          series={[{ key: "used", label: "Used", color: tone === "danger" ? "--danger-fill" : "--accent-fill", values: quota.trend }]}
          bucketLink={(from, to) => link(["events"], { ...events, from, to })} />
      )}
    </article>
  );
}
