/** What fails, and how much of it no other dashboard shows. */

import type { Overview, OverviewSeries, ResolvedRange, Totals } from "../api";
import { Loaded, Empty } from "../components/states";
import { BarList, Num, Panel } from "../components/parts";
import { TimeChart } from "../components/chart";
import type { Series } from "../components/chart-data";
import { change, count, percent, plural, ratio } from "../core/format";
import { useEndpoint, useNow, useRoute, useTitle } from "../core/hooks";
import { filtersOf } from "../core/url";
import { CATEGORIES, categoryColor, categoryName, faultColor, FAULTS } from "../core/words";
import { IngestPanel } from "./overview-ingest";
import { LoopsPanel, NewGroupsPanel, QuotasPanel } from "./overview-lists";

const FILTERS = ["from", "to", "service", "environment"];

export function OverviewView() {
  useTitle("Overview");
  const { route } = useRoute();
  const endpoint = useEndpoint<Overview>("overview", filtersOf(route, FILTERS));
  return (
    <>
      <h1>Overview</h1>
      <Loaded endpoint={endpoint} rows={10}>{(data) => <Body data={data} />}</Loaded>
    </>
  );
}

function Body({ data }: { data: Overview }) {
  const now = useNow(5);
  const { totals } = data;
  if (totals.calls === 0 && totals.errors === 0) return <Nothing data={data} now={now} />;
  return (
    <>
      <NotCaptured services={data.not_captured} />
      {!data.ingest.ready && <p class="banner banner-danger" role="alert">{data.ingest.message ?? "The server takes nothing in at present."}</p>}
      <Difference totals={totals} previous={data.previous} series={data.series} range={data.range} />
      <Categories data={data} />
      <div class="masonry">
        <FaultPanel data={data} />
        <CodesPanel data={data} />
        <ServicesPanel data={data} />
        <NewGroupsPanel groups={data.new_groups} now={now} />
        <LoopsPanel loops={data.retry_loops} now={now} />
        <QuotasPanel quotas={data.quotas} now={now} />
        <IngestPanel ingest={data.ingest} now={now} />
      </div>
    </>
  );
}

function Nothing({ data, now }: { data: Overview; now: number }) {
  const { here } = useRoute();
  return (
    <>
      <Empty title="Nothing arrived in this time">
        No call and no failure was reported. <a href={here({ from: "-7d", to: "now" })}>Look at the last 7 days</a>, or send
        something: <code>faultline demo</code> shows a believable world, and any OpenTelemetry SDK can send to port 4317 or 4318.
      </Empty>
      <div class="grid"><IngestPanel ingest={data.ingest} now={now} /></div>
    </>
  );
}

/** Services that the banner names; the others are counted. */
const NAMED = 3;

/** Without the replies a service looks better than it is, so its numbers cannot be trusted. */
function NotCaptured({ services }: { services: Overview["not_captured"] }) {
  if (services.length === 0) return null;
  const blind = services.filter(({ capture }) => capture === "not_captured");
  const partial = services.filter(({ capture }) => capture === "partial");
  return (
    <p class="banner banner-warn" role="status">
      <strong>{plural(services.length, "service")} may fail unseen.</strong>
      {blind.length > 0 && <> No replies are captured of <Named services={blind} />.</>}
      {partial.length > 0 && <> Only some replies are captured of <Named services={partial} />.</>}
    </p>
  );
}

function Named({ services }: { services: Overview["not_captured"] }) {
  const { link } = useRoute();
  const [named, more] = [services.slice(0, NAMED), services.length - NAMED];
  return (
    <>
      {named.map(({ service }, place) => (
        <span key={service}>
          {place > 0 && (place === named.length - 1 && more <= 0 ? " and " : ", ")}
          <a href={link(["services"], { service })}>{service}</a>
        </span>
      ))}
      {more > 0 && <> and <a href={link(["services"])}>{count(more)} more</a></>}
    </>
  );
}

/**
 * The promise of the product, side by side. The rates are those of calls, which are stored by the minute; the numbers and the
 * charts are failures, so that each of them equals the events that it leads to.
 */
function Difference({ totals, previous, series, range }: {
  totals: Totals;
  previous: Totals;
  series: OverviewSeries;
  range: ResolvedRange;
}) {
  const { link } = useRoute();
  const visible = totals.errors - totals.hidden;
  const open: Series = {
    key: "open", label: "Failed openly", color: "--open-fill",
    values: series.errors.map((failed, place) => failed - (series.hidden[place] ?? 0)),
  };
  const hidden: Series = { key: "hidden", label: "Failed inside a success", color: "--hidden-fill", values: series.hidden };
  const share = ratio(totals.hidden, totals.errors);
  const top = Math.max(1, ...series.errors) * 1.08;
  const bucket = (query: Record<string, string>) => (from: string, to: string) =>
    link(["events"], { kind: "error", from, to, ...query });
  return (
    <div class="pair">
      <section class="panel">
        <header class="panel-head"><h2>What other dashboards show</h2></header>
        <p class="big">{percent(ratio(totals.failed_calls - totals.hidden_calls, totals.calls))} <span class="big-unit">of calls fail</span></p>
        <p class="big-note">
          <Num value={visible} href={link(["events"], { kind: "error", hidden: "false" })} label="open failures" /> open failures, {plural(totals.calls, "call")}
        </p>
        <TimeChart label="Open failures" time={series.time} range={range} series={[open]} max={top} height={120}
          legend={false} bucketLink={bucket({ hidden: "false" })} />
      </section>
      <section class="panel panel-hidden">
        <header class="panel-head"><h2>What really failed</h2></header>
        <p class="big">{percent(ratio(totals.failed_calls, totals.calls))} <span class="big-unit">of calls fail</span></p>
        <p class="big-note">
          <Num value={totals.errors} href={link(["events"], { kind: "error" })} label="failures" /> failures, of which{" "}
          <Num value={totals.hidden} href={link(["events"], { kind: "error", hidden: "true" })} label="hidden failures" tone="hidden" />{" "}
          {share !== null && <>({percent(share)}) </>}inside replies that say success
          <Trend now={totals.errors} before={previous.errors} />
        </p>
        <TimeChart label="All failures" time={series.time} range={range} series={[open, hidden]} max={top} height={120}
          legend={false} bucketLink={bucket({})} />
      </section>
    </div>
  );
}

function Trend({ now, before }: { now: number; before: number }) {
  const text = change(now, before);
  return text === null ? null : <span class="muted"> · {text}{text === "as before" ? "" : " against the time before"}</span>;
}

function Categories({ data }: { data: Overview }) {
  const { link } = useRoute();
  const series = CATEGORIES.flatMap((category): Series[] => {
    const values = data.series.by_category[category];
    if (values === undefined) return [];
    const href = link(["events"], { kind: "error", category });
    return [{ key: category, label: categoryName(category), color: categoryColor(category), values, href }];
  });
  return (
    <Panel title="Failures by category" wide
      about="Drag to zoom, click a bar for its events."
      actions={
        <span>
          <Num value={data.totals.errors} href={link(["events"], { kind: "error" })} label="failures" /> failures in{" "}
          <Num value={data.totals.groups} href={link(["groups"])} label="groups" /> groups
        </span>
      }>
      <TimeChart label="Failures by category" time={data.series.time} range={data.range} series={series} height={230}
        bucketLink={(from, to) => link(["events"], { kind: "error", from, to })} />
    </Panel>
  );
}

function FaultPanel({ data }: { data: Overview }) {
  const { link } = useRoute();
  if (data.faults === null || data.faults === undefined || data.faults.length === 0) return null;
  const items = data.faults.map(({ fault, errors }) => ({
    key: fault ?? "none",
    label: fault === null ? "Not known" : <span title={FAULTS[fault]?.about}>{FAULTS[fault]?.name ?? fault}</span>,
    note: fault === null ? "" : FAULTS[fault]?.about,
    value: errors,
    color: faultColor(fault),
    href: link(["events"], { kind: "error", fault: fault ?? "" }),
  }));
  return (
    <Panel title="Failures by fault">
      <BarList items={items} unit="failures" />
    </Panel>
  );
}

function CodesPanel({ data }: { data: Overview }) {
  const { link } = useRoute();
  const items = data.codes.map((code) => ({
    key: code.canonical,
    label: <><span class="swatch" style={{ "--color": `var(${categoryColor(code.category)})` }} aria-hidden="true" /> <a class="plain mono" href={link(["codes", code.canonical])}>{code.canonical}</a></>,
    note: change(code.errors, code.previous) ?? "new",
    value: code.errors,
    hidden: code.hidden,
    color: categoryColor(code.category),
    href: link(["events"], { kind: "error", code: code.canonical }),
  }));
  return (
    <Panel title="Most frequent codes" about={<HiddenKey />} actions={<a href={link(["codes"])}>All codes</a>}>
      {items.length === 0 ? <Empty title="No failure in this time" /> : <BarList items={items} unit="failures" />}
    </Panel>
  );
}

function HiddenKey() {
  return <><span class="swatch swatch-hidden" aria-hidden="true" /> of them hidden</>;
}

function ServicesPanel({ data }: { data: Overview }) {
  const { link } = useRoute();
  const items = data.services.map((service) => ({
    key: service.service ?? "",
    label: <a class="plain" href={link(["services"], { service: service.service ?? "" })}>{service.service ?? "none named"}</a>,
    note: `${percent(ratio(service.failed_calls, service.calls))} of ${count(service.calls)} calls`,
    value: service.errors,
    hidden: service.hidden,
    color: "--open-fill",
    href: link(["events"], { kind: "error", service: service.service ?? "" }),
  }));
  return (
    <Panel title="Services that fail most" about={<HiddenKey />}
      actions={<a href={link(["services"])}>All services</a>}>
      {items.length === 0 ? <Empty title="No failure in this time" /> : <BarList items={items} unit="failures" />}
    </Panel>
  );
}

