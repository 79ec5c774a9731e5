/** Each service: calls, open and hidden failures, latency, findings and capture status. */

import type { CallStats, OperationRow, ServiceRow, Services } from "../api";
import { Num, Panel, Text } from "../components/parts";
import { Sparkline } from "../components/sparkline";
import { TimeChart } from "../components/chart";
import { Loaded, Empty } from "../components/states";
import { DataTable } from "../components/table";
import { count, milliseconds, percent, plural, ratio } from "../core/format";
import { useEndpoint, useRoute, useTitle } from "../core/hooks";
import { filtersOf } from "../core/url";
import { findingName } from "../core/words";

export function ServicesView() {
  useTitle("Services");
  const { route, all, here } = useRoute();
  const isOne = all("service").length === 1;
  const query = { ...filtersOf(route, ["from", "to", "service", "environment"]), ...(isOne ? {} : { buckets: 40 }) };
  const endpoint = useEndpoint<Services>("services", query);
  return (
    <>
      {isOne && <p class="crumbs"><a href={here({ service: null })}>All services</a></p>}
      <h1>{isOne ? (all("service")[0] || "No service named") : "Services"}</h1>
      <Loaded endpoint={endpoint} rows={10}>{(data) => {
        const [only] = data.services;
        if (only === undefined) return <Empty title="No service was active in this time">Choose a longer time, or another environment.</Empty>;
        return isOne ? <One data={data} service={only} /> : <Many data={data} />;
      }}</Loaded>
    </>
  );
}

const CALL_COLUMNS = [
  { key: "calls", title: "Calls", right: true, minor: true },
  { key: "failed", title: "Failures", right: true },
  { key: "hidden", title: "Hidden", right: true },
];

const LATENCY_COLUMNS = [
  { key: "p50", title: "Median", right: true, minor: true },
  { key: "p95", title: "p95", right: true, minor: true },
  { key: "p99", title: "p99", right: true, minor: true },
];

function Many({ data }: { data: Services }) {
  const { here } = useRoute();
  return (
    <DataTable label="Services" columns={[
      { key: "service", title: "Service" }, ...CALL_COLUMNS, { key: "trend", title: "Failures over time", minor: true }, ...LATENCY_COLUMNS,
      { key: "findings", title: "Findings", minor: true },
    ]}>
      {data.services.map((service) => (
        <tr key={service.service ?? ""}>
          <td class="cell-main">
            <a href={here({ service: service.service ?? "" })}>{service.service ?? "none named"}</a>
            <span class="sub"><Capture service={service} /> {service.dialects.join(", ")} <CallsNote calls={service.calls} /></span>
          </td>
          <CallCells stats={service} filter={{ service: service.service ?? "" }} capture={service.capture} />
          <td class="cell-trend minor"><Sparkline values={service.trend.errors} over={service.trend.hidden} color="--open-fill" /></td>
          <LatencyCells stats={service} />
          <td class="minor">
            {service.findings.filter(({ finding }) => finding !== "hidden_failure").slice(0, 2).map((finding) => (
              <span key={`${finding.finding} ${finding.dialect}`} class="sub">
                {findingName(finding.finding)} ({percent(finding.share)}{service.dialects.length > 1 && <> of {finding.dialect}</>})
              </span>
            ))}
          </td>
        </tr>
      ))}
    </DataTable>
  );
}

/** The calls, which have no column on a narrow screen. */
function CallsNote({ calls }: { calls: number }) {
  return <span class="narrow-only">{plural(calls, "call")}</span>;
}

/** Calls and failures. The share under the failures is that of calls, which are stored by the minute. */
function CallCells({ stats, filter, capture }: { stats: CallStats; filter: Record<string, string>; capture: ServiceRow["capture"] }) {
  const { link } = useRoute();
  const failed = ratio(stats.failed_calls, stats.calls);
  const hidden = ratio(stats.hidden, stats.errors);
  return (
    <>
      <td class="right minor">{count(stats.calls)}</td>
      <td class="right">
        <Num value={stats.errors} href={link(["events"], { kind: "error", ...filter })} label="failures" />
        <span class="sub">{percent(failed)}</span>
      </td>
      <td class="right">
        {stats.hidden > 0
          ? <a class="num num-hidden" href={link(["events"], { kind: "error", hidden: "true", ...filter })}>{percent(hidden)}</a>
          : <span class="muted">{isUnseen({ ...stats, capture }) ? "unknown" : percent(hidden)}</span>}
      </td>
    </>
  );
}

/** Whether nobody knows how many failures are hidden, because no reply is captured. */
function isUnseen({ hidden, capture }: Pick<ServiceRow, "hidden" | "capture">): boolean {
  return hidden === 0 && capture === "not_captured";
}

function LatencyCells({ stats }: { stats: CallStats }) {
  return (
    <>
      <td class="right minor">{milliseconds(stats.p50_ms)}</td>
      <td class="right minor">{milliseconds(stats.p95_ms)}</td>
      <td class="right minor">{milliseconds(stats.p99_ms)}</td>
    </>
  );
}

const CAPTURE: Record<ServiceRow["capture"], { text: string; tone: string; about: string }> = {
  captured: { text: "replies captured", tone: "ok", about: "Replies are looked into: hidden failures are found." },
  partial: { text: "some replies captured", tone: "warn", about: "Some replies are not captured: hidden failures in them are not found." },
  not_captured: { text: "replies not captured", tone: "danger", about: "Replies are not captured: hidden failures are not found." },
  unknown: { text: "", tone: "none", about: "" },
};

function Capture({ service }: { service: ServiceRow }) {
  const { text, tone, about } = CAPTURE[service.capture] ?? CAPTURE.unknown;
  return text === "" ? null : <span class={`state state-${tone}`} title={about}>{text}</span>;
}

function One({ data, service }: { data: Services; service: ServiceRow }) {
  const { link } = useRoute();
  const filter = { service: service.service ?? "" };
  const { about, tone } = CAPTURE[service.capture] ?? CAPTURE.unknown;
  const open = service.trend.errors.map((failed, place) => failed - (service.trend.hidden[place] ?? 0));
  const ok = service.trend.calls.map((calls, place) => Math.max(0, calls - (service.trend.failed_calls[place] ?? 0)));
  return (
    <>
      {(tone === "danger" || tone === "warn") && <p class="banner banner-warn" role="status">{about}</p>}
      <p class="tags"><Capture service={service} /> <span>{service.dialects.join(", ")}</span>
        {service.versions.length > 0 && <span class="muted">versions {service.versions.join(", ")}</span>}
        {service.environments.length > 0 && <span class="muted">in {service.environments.join(", ")}</span>}
      </p>
      <dl class="stats">
        <Stat name="Calls">{count(service.calls)}</Stat>
        <Stat name="Failures"><Num value={service.errors} href={link(["events"], { kind: "error", ...filter })} label="failures" /> <small>{percent(ratio(service.failed_calls, service.calls))}</small></Stat>
        <Stat name="Of them hidden">{isUnseen(service) ? <span class="muted">unknown</span> : (
          <><Num value={service.hidden} tone="hidden" href={link(["events"], { kind: "error", hidden: "true", ...filter })} label="hidden failures" /> <small>{percent(ratio(service.hidden, service.errors))}</small></>
        )}</Stat>
        <Stat name="Groups"><Num value={service.groups} href={link(["groups"], filter)} label="groups" /></Stat>
        <Stat name="Median">{milliseconds(service.p50_ms)}</Stat>
        <Stat name="p99">{milliseconds(service.p99_ms)}</Stat>
      </dl>
      <div class="grid">
        <Panel title="Calls" wide>
          <TimeChart label="Calls of this service" time={data.time} range={data.range} height={180}
            series={[
              { key: "hidden", label: "Failed inside a success", color: "--hidden-fill", values: service.trend.hidden, href: link(["events"], { kind: "error", hidden: "true", ...filter }) },
              { key: "open", label: "Failed openly", color: "--open-fill", values: open, href: link(["events"], { kind: "error", hidden: "false", ...filter }) },
              { key: "ok", label: "Worked", color: "--ok-fill", values: ok },
            ]}
            bucketLink={(from, to) => link(["events"], { from, to, ...filter })} />
        </Panel>
        <Panel title="Operations" wide>
          <Operations rows={data.operations ?? []} service={service} />
        </Panel>
        <Panel title="Conformance findings" wide about="What would make its errors easier to understand for callers.">
          <Findings service={service} />
        </Panel>
      </div>
    </>
  );
}

function Stat({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function Operations({ rows, service }: { rows: OperationRow[]; service: ServiceRow }) {
  if (rows.length === 0) return <Empty title="No call in this time" />;
  return (
    <DataTable label="Operations" dense columns={[{ key: "operation", title: "Operation" }, ...CALL_COLUMNS, ...LATENCY_COLUMNS]}>
      {rows.map((row) => (
        <tr key={row.operation ?? ""}>
          <td class="cell-main"><Text value={row.operation} /><span class="sub"><CallsNote calls={row.calls} /></span></td>
          <CallCells stats={row} filter={{ service: service.service ?? "", operation: row.operation ?? "" }} capture={service.capture} />
          <LatencyCells stats={row} />
        </tr>
      ))}
    </DataTable>
  );
}

function Findings({ service }: { service: ServiceRow }) {
  const { link } = useRoute();
  if (service.findings.length === 0) return <Empty title="Nothing was found">What is seen of its errors is as the specification wants it.</Empty>;
  return (
    <DataTable label="Findings" dense columns={[
      { key: "finding", title: "Finding" }, { key: "errors", title: "Failures", right: true }, { key: "share", title: "Share", right: true },
      { key: "example", title: "Example" },
    ]}>
      {service.findings.map((finding) => (
        <tr key={`${finding.finding} ${finding.dialect}`}>
          <td class="cell-finding">{findingName(finding.finding)}<span class="sub">{finding.dialect}</span></td>
          <td class="right"><Num value={finding.errors} label="failures" href={link(["events"], { kind: "error", service: service.service ?? "", finding: finding.finding, dialect: finding.dialect })} /></td>
          <td class="right">{percent(finding.share)}</td>
          <td class="cell-main">
            {finding.example_event_id === null ? <Text value={finding.example} />
              : <a class="clip-2" href={link(["events", finding.example_event_id])}>{finding.example ?? "without a message"}</a>}
          </td>
        </tr>
      ))}
    </DataTable>
  );
}
